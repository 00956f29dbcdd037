package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// audited is a row of the audit, of that many seconds later.
func audited(n int) store.Audit {
	return store.Audit{
		ID: fmt.Sprintf("a-%02d", n), At: at.Add(time.Duration(n) * time.Second), Action: "discard", Target: "l", InstanceID: "i", User: "änn", Claimed: "eve",
		Kind: "token", Via: "api", Before: 7, After: 8, Result: "access.denied", Reason: "it's Ω", Request: "r-1",
	}
}

// auditOf lists the ids of the rows that are selected, page after page.
func (k *testCase) auditOf(q backend.AuditQuery) (ids []string) {
	k.Helper()
	for {
		p, err := k.s.Audit.Audit(k.ctx, q)
		k.ok(err)
		for _, a := range p.Items {
			ids = append(ids, a.ID)
		}
		if q.After = p.Next; q.After == "" {
			return ids
		}
	}
}

// keyed is a token.
func keyed(id string, n int) backend.Token {
	return backend.Token{
		ID: id, Name: "änn", Roles: `["viewer"]`, Groups: `["clerks"]`, Hash: []byte("0123456789abcdef0123456789abcdef"),
		CreatedAt: at.Add(time.Duration(n) * time.Second), CreatedBy: "root", ExpiresAt: at.Add(time.Hour),
	}
}

var peopleCases = map[string]func(*testCase){
	"the newest record of each setting is known, and each record is made once": func(k *testCase) {
		kept := func(s *opened, want ...backend.Setting) {
			k.Helper()
			got, err := s.Settings.Settings(k.ctx)
			k.ok(err)
			equal(k, got, want)
		}
		setting := func(key string, n int, value string) backend.Setting {
			return backend.Setting{Key: key, Number: n, Value: value, By: "node-ä", At: at.Add(time.Duration(n) * time.Second)}
		}
		kept(k.s)
		sink, mode := setting("events.sink", 1, ""), setting("events.sink-mode", 1, "binary")
		k.ok(k.s.Settings.Record(k.ctx, []backend.Setting{mode, sink}))
		kept(k.s, sink, mode)
		b, next := k.open("node-b"), setting("events.sink", 2, "https://x.example/Ω")
		kept(b, sink, mode)
		k.ok(b.Settings.Record(k.ctx, []backend.Setting{next}, audited(1)))
		kept(k.s, next, mode)
		equal(k, k.auditOf(backend.AuditQuery{}), []string{"a-01"})

		late := setting("events.ttl", 1, "1h")
		k.is(k.s.Settings.Record(k.ctx, []backend.Setting{late, next}, audited(2)), store.ErrDuplicate)
		kept(k.s, next, mode) // nothing of it
		equal(k, k.auditOf(backend.AuditQuery{}), []string{"a-01"})
		long := setting("events.ttl", 1, strings.Repeat("x", backend.MaxFact))
		if problem.CodeOf(k.s.Settings.Record(k.ctx, []backend.Setting{long})) != "settings.long" {
			k.Fatal("what has no room is recorded")
		}
	},
	"who has had a change made is written with it, or not at all": func(k *testCase) {
		k.send(sig("x"))
		d := k.receive(k.s, store.Signals)
		k.ok(d.Commit(k.ctx, store.Change{Audit: []store.Audit{audited(1)}}))
		p, err := k.s.Audit.Audit(k.ctx, backend.AuditQuery{})
		k.ok(err)
		equal(k, p.Items, []store.Audit{audited(1)})
		c := store.Change{Audit: []store.Audit{audited(2)}, Claims: []store.Claim{{InstanceID: "nobody", Position: 1, Owner: "node-a"}}}
		k.is(k.s.Writer.Commit(k.ctx, c), store.ErrTaken)
		k.commit(store.Change{With: []store.Change{{Audit: []store.Audit{{ID: "a-03", At: at, Action: "publish", Target: "d"}}}}})
		equal(k, k.auditOf(backend.AuditQuery{}), []string{"a-01", "a-03"})
		p, err = k.s.Audit.Audit(k.ctx, backend.AuditQuery{Action: "publish"})
		k.ok(err)
		equal(k, p.Items, []store.Audit{{ID: "a-03", At: at, Action: "publish", Target: "d"}})
	},
	"the audit of a dead letter goes with it": func(k *testCase) {
		k.commit(dead("l1"))
		k.commit(dead("l2"))
		k.ok(k.s.DeadLetters.Discard(k.ctx, "l1", backend.AnyEdit, nil, audited(1)))
		k.ok(k.s.DeadLetters.Replay(k.ctx, "l2", 0, nil, audited(2)))
		k.is(k.s.DeadLetters.Discard(k.ctx, "l1", backend.AnyEdit, nil, audited(3)), store.ErrNotFound)
		k.is(k.s.DeadLetters.Replay(k.ctx, "l2", 0, nil, audited(4)), store.ErrNotFound)
		equal(k, k.auditOf(backend.AuditQuery{}), []string{"a-02", "a-01"})
	},
	"the audit is selected and paged": func(k *testCase) {
		for n := range 7 {
			a := audited(n / 2) // two of a moment
			a.ID = fmt.Sprintf("a-%02d", n)
			if n == 3 {
				a.User, a.Action, a.Target, a.InstanceID, a.Result = "bob", "replay", "m", "j", ""
			}
			k.commit(store.Change{Audit: []store.Audit{a}})
		}
		equal(k, k.auditOf(backend.AuditQuery{Limit: 2}), []string{"a-06", "a-05", "a-04", "a-03", "a-02", "a-01", "a-00"})
		for _, q := range []backend.AuditQuery{{User: "bob"}, {Action: "replay"}, {Target: "m"}, {InstanceID: "j"}, {Result: backend.AuditDone}} {
			equal(k, k.auditOf(q), []string{"a-03"})
		}
		equal(k, len(k.auditOf(backend.AuditQuery{Result: "access.denied"})), 6)
		equal(k, k.auditOf(backend.AuditQuery{From: at.Add(time.Second), To: at.Add(3 * time.Second), Limit: 1}), []string{"a-05", "a-04", "a-03", "a-02"})
		if _, err := k.s.Audit.Audit(k.ctx, backend.AuditQuery{After: "x"}); err == nil {
			k.Fatal("a page behind nothing")
		}
	},
	"tokens are kept, found, listed and revoked, with who does it": func(k *testCase) {
		k.ok(k.s.Tokens.MakeToken(k.ctx, keyed("t1", 1), audited(1)))
		k.ok(k.s.Tokens.MakeToken(k.ctx, keyed("t2", 1), audited(2)))
		k.ok(k.s.Tokens.MakeToken(k.ctx, keyed("t3", 0), audited(3)))
		k.is(k.s.Tokens.MakeToken(k.ctx, keyed("t1", 1), audited(4)), store.ErrDuplicate)
		b := k.open("node-b")
		got, err := b.Tokens.Token(k.ctx, "t1")
		k.ok(err)
		equal(k, got, keyed("t1", 1))
		_, err = b.Tokens.Token(k.ctx, "t9")
		k.is(err, store.ErrNotFound)
		p, err := b.Tokens.Tokens(k.ctx, "", 2)
		k.ok(err)
		equal(k, p.Items, []backend.Token{keyed("t2", 1), keyed("t1", 1)})
		p, err = b.Tokens.Tokens(k.ctx, p.Next, 2)
		k.ok(err)
		equal(k, p, backend.Page[backend.Token]{Items: []backend.Token{keyed("t3", 0)}})
		k.ok(b.Tokens.UsedToken(k.ctx, "t1", at.Add(time.Minute)))
		k.ok(b.Tokens.RevokeToken(k.ctx, "t1", audited(5)))
		k.is(b.Tokens.RevokeToken(k.ctx, "t1", audited(6)), store.ErrNotFound)
		k.is(b.Tokens.RevokeToken(k.ctx, "t9", audited(7)), store.ErrNotFound)
		got, err = k.s.Tokens.Token(k.ctx, "t1")
		k.ok(err)
		want := keyed("t1", 1)
		want.UsedAt, want.RevokedAt, want.RevokedBy = at.Add(time.Minute), at.Add(5*time.Second), "änn"
		equal(k, got, want)
		equal(k, k.auditOf(backend.AuditQuery{}), []string{"a-05", "a-03", "a-02", "a-01"})
	},
}
