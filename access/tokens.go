package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"math/big"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Limits of tokens.
const (
	MaxName   = 128                  // characters of the name of who bears one
	MaxGroups = 50                   // that one names, of 64 characters each
	MaxLife   = 366 * 24 * time.Hour // from its making until it expires
	Life      = 90 * 24 * time.Hour  // where nobody says how long

	maxGroup    = 64
	maxRoles    = 1000 // of JSON
	prefix      = "aq_"
	idBytes     = 8
	secretBytes = 32
	secretChars = 43 // 62^43 > 256^32
	base        = 62

	fresh       = time.Second     // how old a verdict may be that counts
	noteUse     = time.Minute     // between two notes of the last use
	patience    = 5 * time.Second // with the database
	readsAtOnce = 2
	maxVerdicts = 10_000
)

// Tokens are tokens of our own: aq_ID_SECRET. The database has a hash of the secret
// alone. It is asked again when a token is used and its last verdict is older than a
// second: a revoked one is refused on every node from then on, and a node that nobody
// asks does not ask.
type Tokens struct {
	store backend.Tokens
	now   func() time.Time
	log   *slog.Logger
	idle  time.Duration // after which a session ends that nobody uses

	mu       sync.Mutex
	verdicts map[string]verdict
	reads    singleflight.Group
	reading  *semaphore.Weighted // bounds what anybody who sends ids of no token can ask of the database
}

// NewTokens are the tokens that a store keeps; now is the clock of the database, by which
// they expire.
func NewTokens(store backend.Tokens, now func() time.Time, log *slog.Logger) *Tokens {
	return &Tokens{store: store, now: now, log: log, verdicts: map[string]verdict{}, reading: semaphore.NewWeighted(readsAtOnce)}
}

// verdict is what the database has said of an id.
type verdict struct {
	token backend.Token
	known bool
	asked time.Time // when it was asked, by the clock of this host
	used  time.Time // of the last note, by this node or another
}

// Verify implements Verifier.
func (t *Tokens) Verify(ctx context.Context, bearer string) (principal.Principal, error) {
	return t.bearer(ctx, bearer, principal.Token)
}

// bearer is who bears a token of a kind. That of a person is a session: see Sessions.
func (t *Tokens) bearer(ctx context.Context, bearer string, kind principal.Kind) (principal.Principal, error) {
	rest, ours := strings.CutPrefix(bearer, prefix)
	if !ours || isSession(rest) != (kind == principal.User) {
		return principal.Principal{}, ErrOther
	}
	id, secret, ok := strings.Cut(rest, "_")
	if !ok || len(id) != 2*idBytes || len(secret) != secretChars {
		return principal.Principal{}, refused()
	}
	v, err := t.verdict(ctx, id)
	if err != nil {
		return principal.Principal{}, err
	}
	hash, now := sha256.Sum256([]byte(secret)), t.now()
	if !v.known || subtle.ConstantTimeCompare(hash[:], v.token.Hash) != 1 || !v.token.RevokedAt.IsZero() || !now.Before(v.token.ExpiresAt) || t.isIdle(v, now) {
		return principal.Principal{}, refused()
	}
	if !principal.IsUnattended(ctx) {
		t.used(ctx, v, now)
	}
	return principal.Principal{Name: v.token.Name, Kind: kind, Roles: backend.Names(v.token.Roles), Groups: principal.Believed(backend.Names(v.token.Groups))}, nil
}

// verdict is what the database says of an id, or said within the last second.
func (t *Tokens) verdict(ctx context.Context, id string) (verdict, error) {
	t.mu.Lock()
	v, ok := t.verdicts[id]
	t.mu.Unlock()
	if ok && time.Since(v.asked) < fresh {
		return v, nil
	}
	answer := t.reads.DoChan(id, func() (any, error) { return t.read(context.WithoutCancel(ctx), id) })
	select {
	case <-ctx.Done():
		return verdict{}, ctx.Err()
	case r := <-answer:
		if r.Err != nil {
			return verdict{}, problem.Wrap(r.Err, problem.Unavailable, "access.unavailable", "the database does not say whether the token is valid")
		}
		return r.Val.(verdict), nil
	}
}

// read asks the database. It goes on when who asked has left: others may wait, too.
func (t *Tokens) read(ctx context.Context, id string) (verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := t.reading.Acquire(ctx, 1); err != nil {
		return verdict{}, err
	}
	defer t.reading.Release(1)
	v := verdict{asked: time.Now()}
	k, err := t.store.Token(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return v, err
	}
	v.token, v.known, v.used = k, err == nil, k.UsedAt
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.verdicts) >= maxVerdicts {
		t.verdicts = map[string]verdict{}
	}
	if old := t.verdicts[id].used; old.After(v.used) {
		v.used = old
	}
	t.verdicts[id] = v
	return v, nil
}

// used notes about when a token was used last.
func (t *Tokens) used(ctx context.Context, v verdict, now time.Time) {
	if now.Sub(v.used) < noteUse {
		return
	}
	t.mu.Lock()
	last := t.verdicts[v.token.ID]
	mine := now.Sub(last.used) >= noteUse
	if mine {
		last.used = now
		t.verdicts[v.token.ID] = last
	}
	t.mu.Unlock()
	if !mine {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := t.store.UsedToken(ctx, v.token.ID, now.UTC().Truncate(time.Microsecond)); err != nil {
		t.log.Warn("the last use of a token is not noted", "token", v.token.ID, "error", err)
	}
}

// Wanted is a token that is to be made.
type Wanted struct {
	Name   string
	Roles  []Role
	Groups []string      // of tasks
	Life   time.Duration // 0 = Life
}

func (w *Wanted) check() error {
	if w.Name == "" || len([]rune(w.Name)) > MaxName || strings.ContainsFunc(w.Name, unicode.IsControl) {
		return problem.New(problem.Invalid, "access.name", "%.40q is no name of who bears a token: it has 1 to %d characters, and no control character", w.Name, MaxName)
	}
	if len(w.Groups) > MaxGroups {
		return problem.New(problem.Invalid, "access.group", "%d groups are named, at most %d may be", len(w.Groups), MaxGroups)
	}
	for _, g := range w.Groups {
		if principal.Reserved(g) {
			return problem.New(problem.Invalid, "access.group", "group %.40q is reserved: os: is the account on a host, db: the user of a database", g).
				WithHint("give the group another name, or have them come that way")
		}
		if g == "" || len(g) > maxGroup {
			return problem.New(problem.Invalid, "access.group", "%.40q is no name of a group: it has 1 to %d bytes", g, maxGroup)
		}
	}
	if w.Life < time.Minute || w.Life > MaxLife {
		return problem.New(problem.Invalid, "access.life", "a token lasts from a minute to %d days, not %s", MaxLife/(24*time.Hour), w.Life)
	}
	return CheckRoles(w.Roles)
}

// Create makes a token. Its secret is in the answer, and never again. Problems:
// access.name, access.role, access.group, access.life.
func (t *Tokens) Create(ctx context.Context, w Wanted) (k backend.Token, secret string, err error) {
	if w.Life == 0 {
		w.Life = Life
	}
	if err := w.check(); err != nil {
		return k, "", err
	}
	id, text := mint()
	by := audit.Row(ctx, t.now(), "create-token", id, "")
	return t.keep(ctx, id, text, w, by)
}

// mint makes an id and a secret.
func mint() (id, text string) {
	raw := make([]byte, idBytes+secretBytes)
	_, _ = rand.Read(raw) // it never fails
	text = new(big.Int).SetBytes(raw[idBytes:]).Text(base)
	return hex.EncodeToString(raw[:idBytes]), strings.Repeat("0", secretChars-len(text)) + text
}

func (t *Tokens) keep(ctx context.Context, id, text string, w Wanted, by store.Audit) (k backend.Token, secret string, err error) {
	hash := sha256.Sum256([]byte(text))
	k = backend.Token{
		ID: id, Name: w.Name, Roles: list(w.Roles), Groups: list(w.Groups), Hash: hash[:],
		CreatedAt: by.At, CreatedBy: by.User, ExpiresAt: by.At.Add(w.Life),
	}
	return k, prefix + id + "_" + text, t.store.MakeToken(ctx, k, by)
}

// list is a JSON array of texts.
func list(texts []string) string {
	b, _ := json.Marshal(append([]string{}, texts...)) // texts
	return string(b)
}

// Revoke ends a token, on every node within a second. Problem: access.unknown.
func (t *Tokens) Revoke(ctx context.Context, id string) error {
	err := t.end(ctx, id, "revoke-token")
	if errors.Is(err, store.ErrNotFound) {
		return problem.Wrap(err, problem.NotFound, "access.unknown", "there is no token %.16q that has not been revoked", strings.TrimPrefix(id, "aq_")).
			WithHint("the ID of aq_ID_SECRET stands in the list of tokens")
	}
	return err
}

func (t *Tokens) end(ctx context.Context, id, action string) error {
	err := t.store.RevokeToken(ctx, id, audit.Row(ctx, t.now(), action, id, ""))
	t.mu.Lock()
	delete(t.verdicts, id)
	t.mu.Unlock()
	return err
}

// Tokens lists them, newest first, in pages by key.
func (t *Tokens) Tokens(ctx context.Context, after string, limit int) (backend.Page[backend.Token], error) {
	return t.store.Tokens(ctx, after, limit)
}
