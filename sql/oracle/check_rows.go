package oracle

import (
	"encoding/hex"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store/survey"
)

// What a check says of the rows: it reads each that can be told to be
// damaged, as the nodes would.

func (x *checker) contents() {
	states, actors := survey.NewStates(), survey.NewActors()
	derived(x, "checksums", "state_all", states.Row, states.Findings)
	derived(x, "task-actors", "task_actor_all", actors.Row, actors.Findings)
	damaged[projections.EntryRow](x, "streams", "stream_select")
	damaged[lists.TaskRow](x, "tasks", "task_select")
	damaged[lists.TaskEventRow](x, "task-events", "task_event_all")
	damaged[messageRow](x, "messages", "message_all_signal", "message_all_schedule", "message_all_command")
	s := survey.Table{Check: "definitions"}
	if checkRows(x, s.Check, "definition_all", func(r *definition.Record, _ error) error { return s.Row(x.e.Verify(*r)) }) {
		x.list = append(x.list, s.Finding())
	}
}

// derived reads rows beside what they repeat.
func derived[T any](x *checker, check, query string, row func(T) error, findings func() []survey.Finding) {
	if checkRows(x, check, query, func(item *T, _ error) error { return row(*item) }) {
		x.list = append(x.list, findings()...)
	}
}

// damaged counts rows that are not as they were written.
func damaged[T any](x *checker, check string, queries ...string) {
	s := survey.Table{Check: check}
	for _, query := range queries {
		if !checkRows(x, check, query, func(_ *T, damage error) error { return s.Row(damage) }) {
			return
		}
	}
	x.list = append(x.list, s.Finding())
}

// checkRows reads every row of a query, or says that the check could not.
func checkRows[T any](x *checker, check, query string, each func(*T, error) error) bool {
	found, err := x.db.QueryContext(x.ctx, text(query))
	if err == nil {
		err = rows.Each(found, func(item *T, damage error) (bool, error) { return true, each(item, damage) })
	}
	if err != nil {
		x.unread(check, "as the owner: 50_grants.sql "+x.user, err)
	}
	return err == nil
}

type messageRow struct {
	ID      []byte `db:"MSG_ID"`
	Body    []byte `db:"USER_DATA"`
	Payload []byte `db:"DATA"` // of a message that refers to it
}

// Verify implements rows.Verifier.
func (r *messageRow) Verify() error {
	id, body := hex.EncodeToString(r.ID), r.Body
	if c, ok := claimOf(body); ok {
		if body = r.Payload; len(body) != c.Bytes {
			return problem.New(problem.Internal, reasonClaimLost, "message %s: its payload %s has %d bytes of %d", id, c.ID, len(body), c.Bytes)
		}
	}
	return survey.VerifyMessage(id, body)
}
