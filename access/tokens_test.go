package access

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/model/memory"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

type kept = backend.Tokens

// counted counts what is asked of a store, and fails when it is told to.
type counted struct {
	kept
	reads, uses atomic.Int64
	err         error
}

func (c *counted) Token(ctx context.Context, id string) (backend.Token, error) {
	c.reads.Add(1)
	if c.err != nil {
		return backend.Token{}, c.err
	}
	return c.kept.Token(ctx, id)
}

func (c *counted) UsedToken(ctx context.Context, id string, at time.Time) error {
	c.uses.Add(1)
	return c.kept.UsedToken(ctx, id, at)
}

// nodes are two nodes on one database.
func nodes(t *testing.T) (a, b *Tokens, of *counted) {
	t.Helper()
	db := memory.New(nil)
	var out []*Tokens
	for _, name := range []string{"a", "b"} {
		s, err := db.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		of = &counted{kept: s.Parts().Tokens}
		out = append(out, NewTokens(of, time.Now, slog.New(slog.DiscardHandler)))
	}
	return out[0], out[1], of
}

func made(t *testing.T, k *Tokens, w Wanted) (id, secret string) {
	t.Helper()
	token, secret, err := k.Create(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	return token.ID, secret
}

// pass lets time pass, in a bubble.
func pass(d time.Duration) { <-time.After(d) }

// verify says who bears a token, or with which code they are refused.
func verify(t *testing.T, k *Tokens, bearer string) string {
	t.Helper()
	p, err := k.Verify(t.Context(), bearer)
	if err != nil {
		return problem.CodeOf(err)
	}
	return p.Name
}

// TestARevokedTokenIsRefusedWithinASecond on every node; and a node that nobody asks
// reads nothing.
func TestARevokedTokenIsRefusedWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, reads := nodes(t)
		id, secret := made(t, a, Wanted{Name: "ann", Roles: []Role{Viewer}, Groups: []string{"clerks"}})
		for range 100 {
			if got := verify(t, b, secret); got != "ann" {
				t.Fatal(got)
			}
		}
		if n := reads.reads.Load(); n != 1 {
			t.Errorf("%d reads for a hundred requests at once", n)
		}
		pass(time.Hour)
		if n := reads.reads.Load(); n != 1 {
			t.Errorf("an idle node has read %d times", n)
		}
		verify(t, b, secret)
		if err := a.Revoke(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if got := verify(t, a, secret); got != "access.token-refused" {
			t.Errorf("where it was revoked: %s", got)
		}
		pass(time.Second)
		if got := verify(t, b, secret); got != "access.token-refused" {
			t.Errorf("on another node, a second later: %s", got)
		}
		if err := a.Revoke(t.Context(), id); problem.CodeOf(err) != "access.unknown" {
			t.Errorf("revoked again: %v", err)
		}
	})
}

// TestTokensAreRefused: whatever is wrong with one, the answer is the same.
func TestTokensAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _ := nodes(t)
		_, secret := made(t, a, Wanted{Name: "ann", Roles: []Role{Viewer}, Life: time.Hour})
		_, other := made(t, a, Wanted{Name: "bob", Roles: []Role{Viewer}})
		id := secret[:len(prefix)+2*idBytes+1]
		for what, bearer := range map[string]string{
			"another's secret": id + other[len(id):], "half": secret[:len(secret)-1], "more": secret + "0", "no secret": id, "nothing": prefix,
			"unknown": prefix + strings.Repeat("0", 2*idBytes) + "_" + secret[len(id):], "capitals": strings.ToUpper(secret[:len(id)]) + secret[len(id):],
		} {
			if got := verify(t, a, bearer); got != "access.token-refused" && what != "capitals" || got == "ann" {
				t.Errorf("%s: %s", what, got)
			}
		}
		if _, err := a.Verify(t.Context(), "eyJhbGciOiJub25lIn0.e30."); !errors.Is(err, ErrOther) {
			t.Errorf("of another kind: %v", err)
		}
		pass(time.Hour - time.Second)
		if got := verify(t, a, secret); got != "ann" {
			t.Errorf("before it expires: %s", got)
		}
		pass(time.Second)
		if got := verify(t, a, secret); got != "access.token-refused" {
			t.Errorf("when it has expired: %s", got)
		}
	})
}

// TestTheDatabaseAway: nobody is let in by what it said before, and nobody is refused
// for good.
func TestTheDatabaseAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b, of := nodes(t)
		_, secret := made(t, b, Wanted{Name: "ann", Roles: []Role{Viewer}})
		verify(t, b, secret)
		of.err = errors.New("it does not answer")
		pass(time.Second)
		if got := verify(t, b, secret); got != "access.unavailable" {
			t.Error(got)
		}
		of.err = nil
		if got := verify(t, b, secret); got != "ann" {
			t.Error(got)
		}
	})
}

// TestTheLastUseIsNoted, once a minute and not with every request.
func TestTheLastUseIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b, of := nodes(t)
		id, secret := made(t, b, Wanted{Name: "ann", Roles: []Role{Viewer}})
		for range 300 {
			verify(t, b, secret)
			pass(time.Second)
		}
		if n := of.uses.Load(); n != 5 {
			t.Errorf("noted %d times in five minutes", n)
		}
		k, err := of.kept.Token(t.Context(), id)
		if err != nil || time.Since(k.UsedAt) > 2*time.Minute {
			t.Errorf("%s, %v", k.UsedAt, err)
		}
	})
}

// TestWhatIsKeptOfAToken: never its secret; who made it, and the audit of that.
func TestWhatIsKeptOfAToken(t *testing.T) {
	t.Parallel()
	a, _, of := nodes(t)
	ctx := principal.With(t.Context(), principal.Principal{Name: "root", Kind: principal.User, Via: principal.CLI})
	k, secret, err := a.Create(ctx, Wanted{Name: "ann", Roles: []Role{Viewer, Operator}})
	if err != nil || k.CreatedBy != "root" || k.ExpiresAt.Sub(k.CreatedAt) != Life || !strings.HasPrefix(secret, "aq_"+k.ID+"_") {
		t.Fatalf("%+v, %v", k, err)
	}
	p, err := a.Tokens(t.Context(), "", 10)
	if err != nil || len(p.Items) != 1 || strings.Contains(secret, string(p.Items[0].Hash)) || len(p.Items[0].Hash) != 32 {
		t.Errorf("%+v, %v", p, err)
	}
	got, err := of.kept.(backend.AuditReader).Audit(t.Context(), backend.AuditQuery{})
	if err != nil || len(got.Items) != 1 || got.Items[0].Action != "create-token" || got.Items[0].Target != k.ID || got.Items[0].User != "root" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWantedTokensAreChecked(t *testing.T) {
	t.Parallel()
	a, _, _ := nodes(t)
	for code, w := range map[string]Wanted{
		"access.name":  {Name: "a\nb", Roles: []Role{Viewer}},
		"access.role":  {Name: "a", Roles: []Role{"root"}},
		"access.group": {Name: "a", Roles: []Role{Viewer}, Groups: []string{""}},
		"access.life":  {Name: "a", Roles: []Role{Viewer}, Life: MaxLife + 1},
	} {
		if _, _, err := a.Create(t.Context(), w); problem.CodeOf(err) != code {
			t.Errorf("%+v: %v", w, err)
		}
	}
	for _, group := range []string{"os:root", "db:TILL"} { // which who bears a token is in by no admin's word
		if _, _, err := a.Create(t.Context(), Wanted{Name: "a", Roles: []Role{Viewer}, Groups: []string{"clerks", group}}); problem.CodeOf(err) != "access.group" {
			t.Errorf("%s: %v", group, err)
		}
	}
	if _, _, err := a.Create(t.Context(), Wanted{Name: "a"}); problem.CodeOf(err) != "access.role" {
		t.Error(err)
	}
}
