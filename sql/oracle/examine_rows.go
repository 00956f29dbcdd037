package oracle

import (
	"database/sql"
	"encoding/hex"
	"reflect"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/survey"
)

// What an examination says of the rows: it reads each that can be told to be
// damaged, as the nodes would.

func (x *examiner) contents() {
	states, actors := survey.NewStates(), survey.NewActors()
	x.derived("checksums", "state_all", ofRow(states.Row), states.Findings)
	x.derived("task-actors", "task_actor_all", ofRow(actors.Row), actors.Findings)
	for _, t := range []struct {
		check   string
		queries []string
		read    func(*sql.Rows) error
	}{
		{"streams", []string{"stream_select"}, ofRow(func(r entryRow) error { return r.Check(r.Data, r.Sum) })},
		{"tasks", []string{"task_select"}, ofRow(func(r taskRow) error { return r.Check(r.TaskSums) })},
		{"task-events", []string{"task_event_all"}, ofRow(func(r taskEventRow) error { return r.Check(r.Sum) })},
		{"messages", []string{"message_all_signal", "message_all_schedule", "message_all_command"}, ofRow(messageRow.verify)},
		{"definitions", []string{"definition_all"}, ofRow(x.e.Verify)},
	} {
		s := survey.Table{Check: t.check}
		var err error
		for _, query := range t.queries {
			if err == nil {
				err = eachRow(x, query, func(rows *sql.Rows) error { return s.Row(t.read(rows)) })
			}
		}
		if err != nil {
			x.unread(t.check, "as the owner: 50_grants.sql "+x.user, err)
			continue
		}
		x.list = append(x.list, s.Finding())
	}
}

// derived reads rows beside what they repeat.
func (x *examiner) derived(check, query string, read func(*sql.Rows) error, findings func() []store.Finding) {
	if err := eachRow(x, query, read); err != nil {
		x.unread(check, "as the owner: 50_grants.sql "+x.user, err)
		return
	}
	x.list = append(x.list, findings()...)
}

func eachRow(x *examiner, query string, read func(*sql.Rows) error) error {
	rows, err := x.db.QueryContext(x.ctx, text(query))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// ofRow scans a row into the fields whose db tags are its columns, and verifies
// what is there.
func ofRow[T any](verify func(T) error) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		var item T
		to, err := fields(reflect.ValueOf(&item).Elem(), columns)
		if err == nil {
			err = rows.Scan(to...)
		}
		if err != nil {
			return err
		}
		return verify(item)
	}
}

type messageRow struct {
	ID      []byte `db:"MSG_ID"`
	Body    []byte `db:"USER_DATA"`
	Payload []byte `db:"DATA"` // of a message that refers to it
}

func (r messageRow) verify() error {
	id, body := hex.EncodeToString(r.ID), r.Body
	if c, ok := claimOf(body); ok {
		if body = r.Payload; len(body) != c.Bytes {
			return problem.New(problem.Internal, ReasonClaimLost, "message %s: its payload %s has %d bytes of %d", id, c.ID, len(body), c.Bytes)
		}
	}
	return survey.VerifyMessage(id, body)
}
