package oracle

import (
	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/history"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
)

// Histories reads the instances of a schema, beside nodes or without, each in a
// transaction that only reads.
func Histories(e CheckOptions) (*history.Reader, error) {
	db, err := aq.Open(aq.Options{DSN: e.DSN, Password: e.Password, Schema: e.Schema})
	if err != nil {
		return nil, explain(err)
	}
	return &history.Reader{
		DB: db.Shared(historySessions), Done: db.Close, Explain: explain, Key: keyName, State: "state_load", Read: read,
		Behind: func(r *rows.Select, id string, after int64) { behindPosition(r, id, after, projections.MaxLimit) },
	}, nil
}

// historySessions are one for the instance that is read, and one for its definition.
const historySessions = 2
