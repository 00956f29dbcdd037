package pump

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/store"
)

// TestEveryFaultHasItsOwnerAndItsEnd: the table of docs/guarantees.md, row for
// row: whose fault an error is, and what becomes of a message that is new, has
// used up its retries, or the patience of the node.
func TestEveryFaultHasItsOwnerAndItsEnd(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)
	r := Retries{Max: 5, Delay: time.Second, DelayMax: 5 * time.Minute, Patience: 24 * time.Hour, OrderGrace: 10 * time.Second}
	r.Now = func() time.Time { return now }
	r.Blame = func(p *problem.Error) Blame { // as those who have such codes would say
		return map[string]Blame{
			"task.not-yours": {Sender: true}, "lifecycle.refused": {Sender: true, Overtaken: true}, "lifecycle.in-transition": {Sender: true, Passing: true},
		}[p.Code]
	}
	p := func(kind problem.Kind, code string) error { return problem.New(kind, code, "x") }
	seen := map[string]bool{}
	for _, c := range []struct {
		by                 owner
		err                error
		fresh, tried, late fate
	}{
		{bySender, p(problem.Invalid, "signal.invalid"), deadLettered, deadLettered, deadLettered},
		{bySender, p(problem.TooLarge, "limit.buffer"), deadLettered, deadLettered, deadLettered},
		{bySender, p(problem.Denied, "task.not-yours"), deadLettered, deadLettered, deadLettered},
		{bySender, p(problem.Conflict, "lifecycle.refused"), refused, deadLettered, deadLettered},
		{byAbsence, p(problem.Conflict, "lifecycle.in-transition"), repeated, deadLettered, deadLettered},
		{byAbsence, p(problem.NotFound, "instance.unknown"), repeated, deadLettered, deadLettered},
		{byAbsence, p(problem.Invalid, "store.value"), repeated, deadLettered, deadLettered},
		{byAuthor, turn.Output(p(problem.TooLarge, "limit.snapshot")), deadLettered, deadLettered, deadLettered},
		{byAuthor, turn.Output(p(problem.Invalid, "store.value")), deadLettered, deadLettered, deadLettered},
		{byAuthor, turn.Output(p(problem.TooLarge, "store.too-big")), deadLettered, deadLettered, deadLettered},
		{byDatabase, p(problem.Unavailable, "store.full"), released, released, released},
		{byDatabase, p(problem.Internal, "store.corrupt"), released, released, released},
		{byDatabase, fmt.Errorf("commit: %w", store.ErrClosed), released, released, released},
		{byDatabase, fmt.Errorf("commit: %w", context.Canceled), released, released, released},
		{byNode, p(problem.Unavailable, memory.CodeBusy), waited, waited, waited},
		{byLock, p(problem.Unavailable, "store.locked"), waited, waited, waited},
		{byUpgrade, p(problem.Unavailable, "snapshot.newer"), waited, waited, waited},
		{byUpgrade, p(problem.Unavailable, "definition.elsewhere"), waited, waited, waited},
		{byDamage, p(problem.Internal, "snapshot.corrupt"), deadLettered, deadLettered, deadLettered},
		{byDamage, p(problem.Internal, "stream.corrupt"), deadLettered, deadLettered, deadLettered},
		{byDamage, fmt.Errorf("commit: %w", store.ErrTaken), deadLettered, deadLettered, deadLettered},
		{byUs, p(problem.Internal, "message.panic"), repeated, repeated, deadLettered},
		{byUs, p(problem.Internal, "store.sql"), repeated, repeated, deadLettered},
		{byUs, p(problem.Unavailable, "instance.contended"), repeated, repeated, deadLettered},
		{byUs, p(problem.Internal, "instance.unwritable"), repeated, repeated, deadLettered},
		{byUs, errors.New("nobody has thought of it"), repeated, repeated, deadLettered},
	} {
		seen[Owners[c.by]] = true
		if got := r.ownerOf(c.err); got != c.by {
			t.Errorf("%v: %s, want %s", c.err, Owners[got], Owners[c.by])
		}
		for attempts, want := range map[int]fate{0: c.fresh, 5: c.tried, 400: c.late} {
			if got := r.fate(messageOf(attempts, now.Add(-25*time.Hour)), c.err); got != want {
				t.Errorf("%v after %d attempts: %d, want %d", c.err, attempts, got, want)
			}
		}
		if got, want := r.fate(messageOf(0, now), &turn.Behind{Cause: c.err}), followed; got != want {
			t.Errorf("behind %v: %d, want %d", c.err, got, want)
		}
	}
	bug := p(problem.Internal, "message.panic")
	if got := r.fate(messageOf(400, now.Add(-23*time.Hour)), bug); got != repeated {
		t.Errorf("400 times in 23 hours, by the trouble of a database: %d", got)
	}
	if got := r.fate(messageOf(5, now.Add(-48*time.Hour)), bug); got != repeated {
		t.Errorf("an old message that failed a few times: %d", got)
	}
	r.Patience = -1
	if got := r.fate(messageOf(100_000, now.Add(-48*time.Hour)), bug); got != repeated {
		t.Errorf("without an end to the patience: %d", got)
	}
	page, err := os.ReadFile("../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| [^|]+ \\| [^|]+ \\|$").FindAllSubmatch(page, -1) {
		rows[string(m[1])] = true
	}
	if names := slices.Sorted(maps.Values(Owners)); !slices.Equal(slices.Sorted(maps.Keys(rows)), names) || len(seen) != len(names) {
		t.Errorf("the page has %v, the code %v, looked at were %v", rows, names, seen)
	}
}

// messageOf is a message that was sent at a moment and has been tried so often.
func messageOf(attempts int, sent time.Time) store.Message {
	body := fmt.Sprintf(`{"signalId":"s","workflowInstanceId":"i","runtimeProvider":"aqueduct","signalType":"ExternalSignal","occurredAtUtc":%q,"payload":{}}`, sent.Format(time.RFC3339))
	return store.Message{ID: "1", Queue: store.Signals, Body: []byte(body), Attempts: attempts}
}

// noBlame is what extras say that know of no problem.
func noBlame(*problem.Error) Blame { return Blame{} }
