// Package audit says who has done something, as a row that is written by the commit
// of the act. What a refusal and an act without a commit of its own come to, [Log]
// writes.
//
// Starts, signals, events and acknowledgements are in the stream of their instance,
// and what people do with tasks is in the events of those, each with its actor: they
// have no second row.
package audit

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Row is the audit of what whoever acts in a context does to a target; instance is
// that of which the target is, or "".
func Row(ctx context.Context, now time.Time, action, target, instance string) store.Audit {
	p := principal.Of(ctx)
	return store.Audit{
		ID: uuid.NewString(), At: now.UTC().Truncate(time.Microsecond), Action: action, Target: clip(target, 128), InstanceID: clip(instance, 128),
		User: Name(p.Name), Claimed: clip(p.Claimed, 64), Kind: string(p.Kind), Via: string(p.Via),
		Reason: clip(p.Reason, 1000), Request: clip(p.Request, 64),
	}
}

// Because is a context in which whoever acts does it for a reason.
func Because(ctx context.Context, reason string) context.Context {
	p := principal.Of(ctx)
	p.Reason = reason
	return principal.With(ctx, p)
}

// Within is a context in which whoever acts does it as a part of a request, for a reason.
func Within(ctx context.Context, request, reason string) context.Context {
	p := principal.Of(ctx)
	p.Request, p.Reason = request, reason
	return principal.With(ctx, p)
}

// As is a row that says in whose name it was done, where nothing has said it yet.
func As(a store.Audit, actor string) store.Audit {
	if a.Claimed == "" && Name(actor) != a.User {
		a.Claimed = clip(actor, 64)
	}
	return a
}

// Name is who has done something as columns hold it: of a name that is longer the beginning.
func Name(who string) string { return clip(who, 128) }

// Silent says whether who acts is known to the node, and does not say why.
func Silent(ctx context.Context) bool {
	p := principal.Of(ctx)
	return p.Roles != nil && p.Reason == ""
}

// Over has a change written with a row, which says of which version and to which.
func Over(c *store.Change, a store.Audit) {
	if c.Snapshot != nil {
		a.Before, a.After = c.Base(), c.Snapshot.Version
	}
	c.Audit = append(c.Audit, a)
}

// clip shortens a text to a number of characters, and leaves out what is none.
func clip(s string, most int) string {
	s = strings.ToValidUTF8(s, "?")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most])
}

// How many refusals of one name are written: so many at once, then one each refusedEvery.
const (
	refusedAtOnce = 20
	refusedEvery  = time.Second
	refusedNames  = 1000
)

// Log writes rows that are no part of another commit.
type Log struct {
	Writer store.Writer
	Now    func() time.Time

	mu    sync.Mutex
	until map[string]time.Time // by name: when all of its refusals so far are paid for
}

// Note writes what somebody has done, or with a code what they were refused. Of those
// who are refused again and again not every time is written; of whom nobody knows
// who they are, none.
func (l *Log) Note(ctx context.Context, action, target, instance, code string) error {
	p := principal.Of(ctx)
	now := l.Now()
	if code != "" && (p.Name == "" || !l.pays(p.Name, now)) {
		return nil
	}
	a := Row(ctx, now, action, target, instance)
	a.Result = clip(code, 256)
	return l.Writer.Commit(ctx, store.Change{Audit: []store.Audit{a}})
}

// pays says whether one more refusal of a name is written.
func (l *Log) pays(name string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until == nil || len(l.until) >= refusedNames {
		l.until = map[string]time.Time{}
	}
	until := l.until[name]
	if until.Before(now) {
		until = now
	}
	if until.Sub(now) >= refusedAtOnce*refusedEvery {
		return false
	}
	l.until[name] = until.Add(refusedEvery)
	return true
}

// By is who acts in a context, as a signal says who has sent it: {kind, name, groups}.
// Who runs a command on the database itself is of the group os:NAME.
func By(ctx context.Context) json.RawMessage {
	p := principal.Of(ctx)
	groups := slices.Clone(p.Groups)
	if p.Kind == principal.User && p.Via == principal.CLI {
		groups = append(groups, "os:"+p.Name)
	}
	raw, _ := json.Marshal(struct { // of texts
		Kind   principal.Kind `json:"kind"`
		Name   string         `json:"name,omitempty"`
		Groups []string       `json:"groups,omitempty"`
	}{p.Kind, p.Name, groups})
	return raw
}
