package audit

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// kept is a writer that keeps the rows it is given.
type kept struct{ rows []store.Audit }

func (k *kept) Commit(_ context.Context, c store.Change) error {
	k.rows = append(k.rows, c.Audit...)
	return nil
}

func (k *kept) Load(context.Context, string) (snapshot.Snapshot, error) {
	return snapshot.Snapshot{}, store.ErrNotFound
}

// TestRefusalsHaveARate: who is refused without end does not fill the database, keeps
// nobody else from being written, and is written again later.
func TestRefusalsHaveARate(t *testing.T) {
	t.Parallel()
	k, now := &kept{}, time.Unix(1000, 0)
	l := &Log{Writer: k, Now: func() time.Time { return now }}
	refuse := func(name string, times int) (written int) {
		t.Helper()
		before := len(k.rows)
		for range times {
			if err := l.Note(principal.With(t.Context(), principal.Principal{Name: name, Kind: principal.Token}), "discard", "l", "", "access.denied"); err != nil {
				t.Fatal(err)
			}
		}
		return len(k.rows) - before
	}
	if n := refuse("eve", 500); n != refusedAtOnce {
		t.Errorf("%d of 500 refusals were written", n)
	}
	if n := refuse("ann", 1); n != 1 {
		t.Error("another's refusal was not written")
	}
	if n := refuse("", 5); n != 0 {
		t.Errorf("%d refusals of nobody were written", n)
	}
	now = now.Add(5 * refusedEvery)
	if n := refuse("eve", 500); n != 5 {
		t.Errorf("%d refusals were written after five seconds", n)
	}
	if got := k.rows[0]; got.Result != "access.denied" || got.User != "eve" || got.Kind != "token" || got.Action != "discard" || got.Target != "l" {
		t.Errorf("%+v", got)
	}
	if err := l.Note(t.Context(), "reset-target", "h", "", ""); err != nil || k.rows[len(k.rows)-1].Kind != "node" {
		t.Errorf("%+v, %v", k.rows[len(k.rows)-1], err)
	}
}

// TestRowsFitTheirColumns: what somebody calls themselves is no reason to refuse what
// they may do.
func TestRowsFitTheirColumns(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Ω", 2000)
	a := Row(principal.With(t.Context(), principal.Principal{Name: long, Claimed: long, Reason: long, Request: "a\xffb"}), time.Now(), "publish", long, long)
	for text, want := range map[*string]int{&a.User: 128, &a.Claimed: 64, &a.Reason: 1000, &a.Target: 128, &a.InstanceID: 128} {
		if n := utf8.RuneCountInString(*text); n != want {
			t.Errorf("%d characters, want %d", n, want)
		}
	}
	if a.Request != "a?b" {
		t.Errorf("%q", a.Request)
	}
	if a = As(a, long); a.Claimed != strings.Repeat("Ω", 64) {
		t.Errorf("%+v", a)
	}
	if a = As(Row(principal.With(t.Context(), principal.Principal{Name: long}), time.Now(), "x", "y", ""), long); a.Claimed != "" {
		t.Errorf("who it is is taken for whom they name: %+v", a)
	}
	if a = As(Row(t.Context(), time.Now(), "x", "y", ""), "bob"); a.Claimed != "bob" {
		t.Errorf("%+v", a)
	}
}

// TestASignalSaysWhoHasSentIt: in the words that the definition of an event asks for.
func TestASignalSaysWhoHasSentIt(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]principal.Principal{
		`{"kind":"token","name":"ann","groups":["cashier"]}`: {Name: "ann", Kind: principal.Token, Via: principal.API, Groups: []string{"cashier"}, Claimed: "eve", Speaks: true},
		`{"kind":"user","name":"ann","groups":["os:ann"]}`:   {Name: "ann", Kind: principal.User, Via: principal.CLI},
		`{"kind":"user","name":"ann"}`:                       {Name: "ann", Kind: principal.User, Via: principal.API},
		`{"kind":"nobody"}`:                                  {Kind: principal.Nobody, Via: principal.API, Claimed: "ann"},
	} {
		if got := string(By(principal.With(t.Context(), p))); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := string(By(t.Context())); got != `{"kind":"node"}` {
		t.Errorf("the program itself: %s", got)
	}
}
