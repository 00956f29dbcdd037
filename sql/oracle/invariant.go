package oracle

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/store/survey"
)

// Verify looks for what breaks the invariants of package store, up to limit
// violations of each. It reads one moment in a read-only transaction, beside
// nodes, as the user of the nodes; ctx ends it.
func Verify(ctx context.Context, e CheckOptions, limit int) ([]survey.Violation, error) {
	db, err := aq.Open(aq.Options{DSN: e.DSN, Schema: e.Schema})
	if err != nil {
		return nil, explain(err)
	}
	defer db.Close()
	tx, err := db.Shared(1).BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, explain(err)
	}
	defer func() { _ = tx.Rollback() }() // it has written nothing
	var list []survey.Violation
	for _, i := range survey.Invariants {
		if list, err = violations(ctx, tx, i.Name, limit, list); err != nil {
			return list, explain(fmt.Errorf("invariant %s: %w", i.Name, err))
		}
	}
	return list, nil
}

// violations appends what breaks one invariant.
func violations(ctx context.Context, tx *sql.Tx, name string, limit int, list []survey.Violation) ([]survey.Violation, error) {
	rows, err := tx.QueryContext(ctx, text(invariantQuery(name)), limit)
	if err != nil {
		return list, err
	}
	defer rows.Close()
	for rows.Next() {
		var about, found sql.NullString
		if err := rows.Scan(&about, &found); err != nil {
			return list, err
		}
		list = append(list, survey.Violation{Invariant: name, About: about.String, Found: found.String})
	}
	return list, rows.Err()
}

func invariantQuery(name string) string { return "invariant_" + strings.ReplaceAll(name, "-", "_") }
