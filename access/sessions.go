package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"

	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// MaxSessionGroups is how much the names of the groups of who logs in may have together,
// in bytes of JSON: what is kept of a token has room for that.
const MaxSessionGroups = 4000

// sessionMark begins the id of a session, which no other token's does: theirs are
// hexadecimal.
const sessionMark = "s"

func isSession(rest string) bool { return strings.HasPrefix(rest, sessionMark) }

// Sessions are of people who have logged in with a browser. One is kept as a token is: by
// the hash of its secret, ended on every node within a second, listed, and deleted when it
// has been over for a while; but it has an end of its own when nobody uses it. Its bearer
// is a person, whom somebody else has vouched for when it began.
type Sessions struct {
	tokens *Tokens
	life   time.Duration
}

// NewSessions are those that a store keeps. One ends when nobody has used it for idle, to
// a minute, and after life in any case.
func NewSessions(kept backend.Tokens, idle, life time.Duration, now func() time.Time, log *slog.Logger) *Sessions {
	t := NewTokens(kept, now, log)
	t.idle = idle
	return &Sessions{t, life}
}

// Life is how long one lasts at most.
func (s *Sessions) Life() time.Duration { return s.life }

// isIdle says whether a session has ended because nobody uses it.
func (t *Tokens) isIdle(v verdict, now time.Time) bool {
	last := v.used
	if last.Before(v.token.CreatedAt) {
		last = v.token.CreatedAt
	}
	return t.idle > 0 && now.Sub(last) >= t.idle
}

// Verify implements Verifier.
func (s *Sessions) Verify(ctx context.Context, bearer string) (principal.Principal, error) {
	who, err := s.tokens.bearer(ctx, bearer, principal.User)
	if problem.CodeOf(err) == "access.token-refused" {
		err = problem.New(problem.Denied, "access.token-refused", "the session is over: it has ended, or nobody has used it for long").WithHint("log in again")
	}
	if who.Via = principal.Console; err != nil {
		return principal.Principal{}, err
	}
	return who, nil
}

// Begin makes a session of somebody, always a new one. What it returns is shown to nobody
// but their browser. Problem: access.login-failed.
func (s *Sessions) Begin(ctx context.Context, who principal.Principal) (bearer string, err error) {
	w := Wanted{Name: who.Name, Roles: who.Roles, Groups: who.Groups, Life: s.life}
	switch n := len(list(w.Groups)); {
	case w.Name == "" || len([]rune(w.Name)) > MaxName || strings.ContainsFunc(w.Name, unicode.IsControl):
		return "", LoginFailed(fmt.Sprintf("the name %.40q has not 1 to %d characters", w.Name, MaxName))
	case len(list(w.Roles)) > maxRoles:
		return "", LoginFailed(fmt.Sprintf("their roles have more than %d bytes with their namespaces", maxRoles))
	case n > MaxSessionGroups:
		return "", LoginFailed(fmt.Sprintf("their groups have %d bytes, at most %d may be: let the provider send those of this service, in a claim that access.oidc-groups names", n, MaxSessionGroups))
	}
	who.Via = principal.Console
	id, text := mint()
	id = sessionMark + id[len(sessionMark):]
	_, bearer, err = s.tokens.keep(ctx, id, text, w, audit.Row(principal.With(ctx, who), s.tokens.now(), "log-in", id, ""))
	return bearer, err
}

// End ends a session, on every node within a second; one that has ended already is none.
func (s *Sessions) End(ctx context.Context, bearer string) error {
	who, err := s.Verify(ctx, bearer)
	if problem.KindOf(err) == problem.Denied || errors.Is(err, ErrOther) {
		return nil // the store does not know it, or no longer
	}
	if err == nil {
		id, _, _ := strings.Cut(strings.TrimPrefix(bearer, prefix), "_")
		err = s.tokens.end(principal.With(ctx, who), id, "log-out")
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil // somebody has been faster
	}
	return err
}

// LoginFailed is the refusal of somebody's login.
func LoginFailed(why string) *problem.Error {
	return problem.New(problem.Denied, "access.login-failed", "nobody is logged in: %s", why).WithHint("begin again at the console")
}
