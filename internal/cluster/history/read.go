package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
)

// Tables of the test's own, beside those of the engine. The trigger notes every
// version in the transaction that writes it.
const (
	MakeOrders = `create table TEST_ORDERS (ORDER_ID VARCHAR2(64 CHAR) NOT NULL, INSTANCE_ID VARCHAR2(128 CHAR) NOT NULL, ` +
		`CONSTRAINT TEST_ORDERS_PK PRIMARY KEY (ORDER_ID))`
	MakeVersions = `create table TEST_VERSIONS (INSTANCE_ID VARCHAR2(128 CHAR) NOT NULL, FORMER_VERSION NUMBER(18) NOT NULL, ` +
		`STATE_VERSION NUMBER(18) NOT NULL)`
	// In a literal, for outside it the driver takes :NEW for a bind.
	MakeTrigger = `begin execute immediate 'create or replace trigger TEST_VERSIONS_T after insert or update of STATE_VERSION ` +
		`on WF_RUNTIME_STATES for each row begin insert into TEST_VERSIONS (INSTANCE_ID, FORMER_VERSION, STATE_VERSION) ` +
		`values (:NEW.INSTANCE_ID, nvl(:OLD.STATE_VERSION, 0), :NEW.STATE_VERSION); end;'; end;`
)

// Read reads what is left. Effects are the caller's: they happened elsewhere.
func Read(ctx context.Context, db *sql.DB, effects map[string]int) (State, error) {
	s := State{Orders: map[string]bool{}, Instances: map[string]Instance{}, Messages: map[string]int{}}
	r := reader{ctx: ctx, db: db}
	r.each("select ORDER_ID from TEST_ORDERS", func(scan func(...any)) {
		var id string
		scan(&id)
		s.Orders[id] = true
	})
	r.each("select INSTANCE_ID, STATE_VERSION, RUNTIME_STATUS, STATE_JSON from WF_RUNTIME_STATES", func(scan func(...any)) {
		var id string
		var document []byte
		i := Instance{}
		scan(&id, &i.Version, &i.Status, &document)
		i.Seen, i.Effects = seen(document), effects[id]
		s.Instances[id] = i
	})
	r.each("select INSTANCE_ID, FORMER_VERSION, STATE_VERSION from TEST_VERSIONS", func(scan func(...any)) {
		var id string
		var v Version
		scan(&id, &v.Former, &v.Number)
		i := s.Instances[id]
		i.Versions = append(i.Versions, v)
		s.Instances[id] = i
	})
	r.each("select INSTANCE_ID, POSITION, TYPE, SIGNAL_ID from WF_STREAM order by INSTANCE_ID, POSITION", func(scan func(...any)) {
		var id string
		var kind, signal sql.NullString
		var n int64
		scan(&id, &n, &kind, &signal)
		i := s.Instances[id]
		i.Positions = append(i.Positions, n)
		if kind.String == "ExternalSignal" {
			i.Received = append(i.Received, signal.String)
		}
		s.Instances[id] = i
	})
	for _, q := range []string{"WF_SIGNAL", "WF_SCHEDULE", "WF_COMMAND", "WF_DLQ"} {
		s.Messages[q] = r.count("select count(*) from AQ$" + q + "_QTAB")
	}
	r.each("select REASON, DETAIL from WF_DEAD_LETTERS", func(scan func(...any)) {
		var reason, detail sql.NullString
		scan(&reason, &detail)
		s.DeadLetters = append(s.DeadLetters, reason.String+": "+detail.String)
	})
	s.Locks = r.count("select count(*) from WF_STREAM where PROCESSED = 0 and CLAIMED_BY is not null")
	return s, r.err
}

// seen is what the workflow has collected in its state, by its definition.
func seen(document []byte) []string {
	var d struct {
		State struct {
			Output struct{ Seen []string }
		} `json:"workflowState"`
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return []string{"unreadable: " + err.Error()}
	}
	return d.State.Output.Seen
}

// reader runs queries until one fails.
type reader struct {
	ctx context.Context
	db  *sql.DB
	err error
}

func (r *reader) each(query string, take func(scan func(...any))) {
	if r.err != nil {
		return
	}
	rows, err := r.db.QueryContext(r.ctx, query)
	if err != nil {
		r.err = fmt.Errorf("%s: %w", query, err)
		return
	}
	defer rows.Close()
	for rows.Next() {
		take(func(to ...any) {
			if err := rows.Scan(to...); err != nil && r.err == nil {
				r.err = fmt.Errorf("%s: %w", query, err)
			}
		})
	}
	if err := rows.Err(); err != nil && r.err == nil {
		r.err = fmt.Errorf("%s: %w", query, err)
	}
}

func (r *reader) count(query string) (n int) {
	r.each(query, func(scan func(...any)) { scan(&n) })
	return n
}
