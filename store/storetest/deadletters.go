package storetest

import (
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// edit is one of dead letter l.
func edit(no int64, what string, body []byte) backend.DeadLetterEdit {
	return backend.DeadLetterEdit{DeadLetterID: "l", No: no, InstanceID: "i", What: what, At: at, By: "änn", Reason: "CHG-17", Body: body}
}

func editsOf(k *testCase, after string, limit int) backend.Page[backend.DeadLetterEdit] {
	k.Helper()
	p, err := k.s.DeadLetters.DeadLetterEdits(k.ctx, "l", after, limit)
	k.ok(err)
	return p
}

func died(k *testCase, body []byte) {
	k.Helper()
	k.commit(store.Change{DeadLetter: &projections.DeadLetter{ID: "l", Queue: "schedule", InstanceID: "i", Envelope: body, Reason: "r", DiedAt: at}})
}

var deadLetterCases = map[string]func(*testCase){
	"edits of a dead letter stay beside what died": func(k *testCase) {
		body := []byte("\x00 what died Ω")
		died(k, body)
		equal(k, editsOf(k, "", 10).Items, []backend.DeadLetterEdit{})
		k.is(k.s.DeadLetters.EditDeadLetter(k.ctx, edit(2, backend.EditEnvelope, []byte("x"))), store.ErrStale)
		k.ok(k.s.DeadLetters.EditDeadLetter(k.ctx, edit(1, backend.EditEnvelope, []byte("{}")), audited(1)))
		k.is(k.s.DeadLetters.EditDeadLetter(k.ctx, edit(1, backend.EditEnvelope, []byte("[]")), audited(2)), store.ErrStale)
		k.ok(k.s.DeadLetters.EditDeadLetter(k.ctx, edit(2, backend.EditOriginal, nil), audited(3)))
		k.ok(k.s.DeadLetters.EditDeadLetter(k.ctx, edit(3, backend.EditEnvelope, []byte("Ω"))))
		equal(k, k.auditOf(backend.AuditQuery{}), []string{"a-03", "a-01"})
		original := backend.DeadLetterEdit{DeadLetterID: "l", InstanceID: "i", What: backend.EditOriginal, At: at, Body: body}
		all := []backend.DeadLetterEdit{edit(3, backend.EditEnvelope, []byte("Ω")), edit(2, backend.EditOriginal, nil), edit(1, backend.EditEnvelope, []byte("{}")), original}
		equal(k, editsOf(k, "", 10).Items, all)
		p := editsOf(k, "", 1)
		equal(k, p.Items, all[:1])
		equal(k, editsOf(k, p.Next, 10).Items, all[1:])
		l, err := k.s.DeadLetters.DeadLetter(k.ctx, "l")
		k.ok(err)
		equal(k, l.Envelope, body)
		gone := edit(1, backend.EditEnvelope, []byte("{}"))
		gone.DeadLetterID = "gone"
		k.is(k.s.DeadLetters.EditDeadLetter(k.ctx, gone), store.ErrNotFound)
	},
	"a replay is of the newest edit, and leaves the edits": func(k *testCase) {
		died(k, []byte("what died"))
		k.is(k.s.DeadLetters.Replay(k.ctx, "l", 1, nil), store.ErrStale)
		k.ok(k.s.DeadLetters.EditDeadLetter(k.ctx, edit(1, backend.EditEnvelope, []byte("edited"))))
		k.is(k.s.DeadLetters.Replay(k.ctx, "l", 0, nil, audited(1)), store.ErrStale)
		k.empty(store.Schedule)
		k.ok(k.s.DeadLetters.Replay(k.ctx, "l", 1, []byte("edited"), audited(2)))
		k.take(store.Schedule, "edited")
		k.empty(store.Schedule)
		equal(k, k.auditOf(backend.AuditQuery{}), []string{"a-02"})
		equal(k, len(editsOf(k, "", 10).Items), 2)
		k.is(k.s.DeadLetters.EditDeadLetter(k.ctx, edit(2, backend.EditEnvelope, []byte("x"))), store.ErrNotFound)
	},
	"a dead letter whose message is sent otherwise goes alone": func(k *testCase) {
		died(k, []byte("what died"))
		k.ok(k.s.DeadLetters.Replay(k.ctx, "l", 0, []byte{}))
		_, err := k.s.DeadLetters.DeadLetter(k.ctx, "l")
		k.is(err, store.ErrNotFound)
		k.empty(store.Schedule)
	},
	"a discard takes the edits with it": func(k *testCase) {
		died(k, []byte("what died"))
		k.is(k.s.DeadLetters.Discard(k.ctx, "l", 1, nil), store.ErrStale)
		k.ok(k.s.DeadLetters.EditDeadLetter(k.ctx, edit(1, backend.EditEnvelope, []byte("edited"))))
		k.is(k.s.DeadLetters.Discard(k.ctx, "l", 0, nil), store.ErrStale) // it is not what was seen
		equal(k, len(editsOf(k, "", 10).Items), 2)
		k.ok(k.s.DeadLetters.Discard(k.ctx, "l", 1, nil))
		equal(k, editsOf(k, "", 10).Items, []backend.DeadLetterEdit{})
	},
	"edits are purged with the instance of their dead letter": func(k *testCase) {
		ended := turn("i", 1)
		ended.Rows.Instance.Status, ended.Rows.Instance.EndedAt = "completed", at
		k.commit(ended)
		died(k, []byte("what died"))
		k.ok(k.s.DeadLetters.EditDeadLetter(k.ctx, edit(1, backend.EditEnvelope, []byte("edited"))))
		k.ok(k.s.DeadLetters.Replay(k.ctx, "l", 1, []byte("edited")))
		n, err := k.s.Retention.Purge(k.ctx, at.Add(time.Hour), 10)
		k.ok(err)
		equal(k, n, 1)
		equal(k, editsOf(k, "", 10).Items, []backend.DeadLetterEdit{})
	},
	"edits of a dead letter without an instance are purged when it is gone": func(k *testCase) {
		k.commit(store.Change{DeadLetter: &projections.DeadLetter{ID: "l", Queue: "schedule", Envelope: []byte("what died"), Reason: "r", DiedAt: at}})
		e := edit(1, backend.EditEnvelope, []byte("edited"))
		e.InstanceID = ""
		k.ok(k.s.DeadLetters.EditDeadLetter(k.ctx, e))
		purged := func(before time.Time, left int) {
			k.Helper()
			n, err := k.s.Retention.Purge(k.ctx, before, 10)
			k.ok(err)
			equal(k, n, 0)
			equal(k, len(editsOf(k, "", 10).Items), left)
		}
		purged(at.Add(time.Hour), 2) // its letter waits
		k.ok(k.s.DeadLetters.Replay(k.ctx, "l", 1, []byte("edited")))
		purged(e.At, 2) // it is young
		purged(at.Add(time.Hour), 0)
	},
	"a dead letter has as many edits as it may": func(k *testCase) {
		died(k, []byte("what died"))
		for no := int64(1); no <= backend.MaxDeadLetterEdits; no++ {
			k.ok(k.s.DeadLetters.EditDeadLetter(k.ctx, edit(no, backend.EditEnvelope, fmt.Append(nil, no))))
		}
		k.is(k.s.DeadLetters.EditDeadLetter(k.ctx, edit(backend.MaxDeadLetterEdits+1, backend.EditEnvelope, nil)), backend.ErrEdited)
	},
	"a command that is given up is not processed": func(k *testCase) {
		c := turn("a", 1)
		c.Rows.Stream = []projections.Entry{command("a", 1, ""), command("a", 2, ""), command("a", 3, "")}
		k.commit(c)
		claim := func(position int64, m store.Claim) {
			k.Helper()
			m.InstanceID, m.Position = "a", position
			k.commit(store.Change{Claims: []store.Claim{m}})
		}
		row := func(position int64) (processed bool, givenUp time.Time) {
			k.Helper()
			rows, err := k.s.Streams.Stream(k.ctx, "a", position-1, 1)
			k.ok(err)
			return *rows[0].Processed, rows[0].GivenUpAt
		}
		is := func(position int64, processed bool, givenUp time.Time) {
			k.Helper()
			p, g := row(position)
			equal(k, p, processed)
			equal(k, g.UTC(), givenUp)
		}
		for position := range int64(3) {
			is(position+1, false, time.Time{})
			claim(position+1, store.Claim{GivenUp: at, Error: "gone"})
			is(position+1, false, at)
		}
		claim(1, store.Claim{Done: true, GivenUp: at.Add(time.Minute)}) // discarded
		is(1, true, at.Add(time.Minute))
		claim(2, store.Claim{Done: true}) // processed after all
		is(2, true, time.Time{})
		claim(3, store.Claim{Owner: "node-a"}) // tried again
		is(3, false, time.Time{})
		claim(3, store.Claim{Expect: "node-a", GivenUp: at})
		settled := turn("a", 2)
		settled.Rows.Settled = []engine.Settled{{Position: 3}}
		k.commit(settled)
		is(3, true, time.Time{})
	},
}
