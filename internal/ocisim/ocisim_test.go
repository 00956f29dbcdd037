package ocisim_test

import (
	"database/sql"
	"testing"

	"github.com/aqueduct-engine/aqueduct/internal/ocisim"
	_ "github.com/godror/godror"
)

// open gives an empty database, through godror.
func open(t *testing.T) (*ocisim.Database, *sql.DB) {
	t.Helper()
	d := ocisim.Start(t).NewDatabase(t)
	db, err := sql.Open("godror", d.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return d, db
}

func TestConnects(t *testing.T) {
	_, db := open(t)
	var v string
	if err := db.QueryRow("SELECT 'a'||USER FROM DUAL").Scan(&v); err != nil || v != "aAPP" {
		t.Fatal(v, err)
	}
}
