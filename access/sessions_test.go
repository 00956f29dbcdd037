package access

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/model/memory"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// sessions are those of two nodes on one database, with the tokens of one.
func sessions(t *testing.T) (a, b *Sessions, k *Tokens, of *counted) {
	t.Helper()
	k, _, of = nodes(t)
	log := slog.New(slog.DiscardHandler)
	return NewSessions(of, time.Hour, 12*time.Hour, time.Now, log), NewSessions(of, time.Hour, 12*time.Hour, time.Now, log), k, of
}

func sessionOf(t *testing.T, s *Sessions, who principal.Principal) string {
	t.Helper()
	bearer, err := s.Begin(t.Context(), who)
	if err != nil {
		t.Fatal(err)
	}
	return bearer
}

var anna = principal.Principal{Name: "anna", Kind: principal.User, Roles: []Role{Operator, Viewer}, Groups: []string{"ops"}}

// A session is a person on every node, until its end, or until nobody has used it for a
// while, or until it is ended: within a second everywhere. An idle node reads nothing.
func TestASessionEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b, k, of := sessions(t)
		code := func(s *Sessions, bearer string) string {
			if _, err := s.Verify(t.Context(), bearer); err != nil {
				return problem.CodeOf(err)
			}
			return ""
		}
		first := sessionOf(t, a, anna)
		want := anna
		want.Via = principal.Console
		if who, err := b.Verify(t.Context(), first); err != nil || !reflect.DeepEqual(who, want) {
			t.Fatalf("%+v, %v", who, err)
		}
		for i := range 13 { // each use puts the end off, but not for ever
			if pass(50 * time.Minute); code(a, first) != "" {
				t.Fatal("it ended although it was used", i)
			}
		}
		if pass(50 * time.Minute); code(a, first) != "" {
			t.Fatal("it ended before its end")
		}
		if pass(50 * time.Minute); code(a, first) != "access.token-refused" {
			t.Error("it outlived its end")
		}
		idle := sessionOf(t, a, anna)
		if pass(time.Hour); code(b, idle) != "access.token-refused" {
			t.Error("it went on although nobody had used it")
		}
		looked := sessionOf(t, a, anna)
		for range 7 { // a page that is open is no use of it
			if _, err := a.Verify(principal.Unattended(t.Context()), looked); err != nil {
				t.Fatal(err)
			}
			pass(8 * time.Minute)
		}
		if pass(4 * time.Minute); code(b, looked) != "access.token-refused" {
			t.Error("it went on although nobody but a page had used it")
		}
		out := sessionOf(t, a, anna)
		if code(b, out) != "" || a.End(t.Context(), out) != nil || code(a, out) != "access.token-refused" {
			t.Error("it goes on where it was ended")
		}
		if pass(time.Second); code(b, out) != "access.token-refused" {
			t.Error("it goes on elsewhere")
		}
		if err := errors.Join(a.End(t.Context(), out), b.End(t.Context(), "x"), b.End(t.Context(), "aq_0123456789abcdef_"+strings.Repeat("a", secretChars))); err != nil {
			t.Error("what has ended is none to end:", err)
		}
		ended := sessionOf(t, a, anna)
		id, _, _ := strings.Cut(strings.TrimPrefix(ended, prefix), "_")
		if err := k.Revoke(t.Context(), id); err != nil {
			t.Error(err)
		}
		if pass(time.Second); code(a, ended) != "access.token-refused" || code(b, ended) != "access.token-refused" {
			t.Error("an administrator does not end it")
		}
		reads := of.reads.Load()
		if pass(time.Hour); of.reads.Load() != reads {
			t.Error("an idle node asks the database")
		}
	})
}

// A session and a token are two things although they are kept alike.
func TestASessionIsNoToken(t *testing.T) {
	t.Parallel()
	a, _, k, of := sessions(t)
	session := sessionOf(t, a, anna)
	_, token := made(t, k, Wanted{Name: "shop", Roles: []Role{Application}})
	if _, err := k.Verify(t.Context(), session); !errors.Is(err, ErrOther) {
		t.Error("a session is a token:", err)
	}
	if _, err := a.Verify(t.Context(), token); !errors.Is(err, ErrOther) {
		t.Error("a token is a session:", err)
	}
	forged := session[:len(session)-3] + "aaa"
	if _, err := a.Verify(t.Context(), forged); problem.CodeOf(err) != "access.token-refused" {
		t.Error("a forged one:", err)
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(session, prefix), "_")
	row, err := of.Token(t.Context(), id)
	if err != nil || strings.Contains(string(row.Hash), session) || strings.Contains(session, string(row.Hash)) || row.Name != "anna" {
		t.Errorf("%+v, %v", row, err)
	}
	if other := sessionOf(t, a, anna); other == session {
		t.Error("two are one")
	}
}

// While the database is away nobody knows whether a session counts.
func TestSessionsWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	a, _, _, of := sessions(t)
	session := sessionOf(t, a, anna)
	of.err = errors.New("away")
	if _, err := a.Verify(t.Context(), session); problem.CodeOf(err) != "access.unavailable" {
		t.Error(err)
	}
	if err := a.End(t.Context(), session); problem.CodeOf(err) != "access.unavailable" {
		t.Error("it is said to have ended:", err)
	}
}

// Who cannot be kept whole does not log in.
func TestWhoCannotLogIn(t *testing.T) {
	t.Parallel()
	a, _, _, _ := sessions(t)
	for name, who := range map[string]principal.Principal{
		"no name":      {},
		"a long name":  {Name: strings.Repeat("ä", MaxName+1)},
		"lines":        {Name: "a\nb"},
		"large groups": {Name: "anna", Groups: []string{strings.Repeat("g", MaxSessionGroups)}},
	} {
		if _, err := a.Begin(t.Context(), who); problem.CodeOf(err) != "access.login-failed" {
			t.Errorf("%s: %v", name, err)
		}
	}
	most := principal.Principal{Name: strings.Repeat("ä", MaxName), Groups: []string{strings.Repeat("g", MaxSessionGroups-4)}}
	if who, err := a.Verify(t.Context(), sessionOf(t, a, most)); err != nil || !reflect.DeepEqual(who.Groups, most.Groups) {
		t.Error(err)
	}
}

// The audit says who has logged in and out, by a page.
func TestLoginsAreInTheAudit(t *testing.T) {
	t.Parallel()
	s, err := memory.New(nil).Open("a")
	if err != nil {
		t.Fatal(err)
	}
	a := NewSessions(s.Parts().Tokens, time.Hour, time.Hour, time.Now, slog.New(slog.DiscardHandler))
	session := sessionOf(t, a, anna)
	if err := a.End(context.Background(), session); err != nil {
		t.Fatal(err)
	}
	p, err := s.Parts().Audit.Audit(t.Context(), backend.AuditQuery{})
	if err != nil || len(p.Items) != 2 {
		t.Fatalf("%+v, %v", p, err)
	}
	for i, action := range []string{"log-out", "log-in"} {
		if got := p.Items[i]; got.Action != action || got.User != "anna" || got.Kind != "user" || got.Via != "console" || !strings.Contains(session, got.Target) {
			t.Errorf("%+v", got)
		}
	}
}
