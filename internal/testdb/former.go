package testdb

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
	"github.com/aqueduct-engine/aqueduct/sql/embedded/schema"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
)

// FileVersions are the version of the schema that a file has, 0 for none, and the one
// that this program knows.
func FileVersions(place string) (have, known int, err error) {
	c, err := conn.Open(place, "")
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	return schema.Versions(c, place)
}

// FormerOracle makes of a place on Oracle, on which no node runs, one of a former
// version.
func FormerOracle(ctx context.Context, place string, version int) error {
	db, err := sql.Open("godror", place)
	if err != nil {
		return err
	}
	defer db.Close()
	versions := slices.Sorted(maps.Keys(oracletest.Former))
	for _, v := range slices.Backward(versions) {
		if v < version {
			break
		}
		if _, err := db.ExecContext(ctx, oracletest.Former[v]); err != nil {
			return err
		}
	}
	return nil
}
