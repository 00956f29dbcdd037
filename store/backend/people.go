package backend

import (
	"context"
	"time"

	"github.com/aqueduct-engine/aqueduct/store"
)

// Tokens keeps the tokens by which programs and people are known to nodes.
type Tokens interface {
	// MakeToken keeps a token, with its audit; store.ErrDuplicate where its id is taken.
	MakeToken(ctx context.Context, t Token, by store.Audit) error
	Token(ctx context.Context, id string) (Token, error)
	// Tokens lists them, newest first, in pages by key.
	Tokens(ctx context.Context, after string, limit int) (Page[Token], error)
	// RevokeToken ends a token, with its audit; store.ErrNotFound where none is that
	// has not been revoked.
	RevokeToken(ctx context.Context, id string, by store.Audit) error
	// UsedToken notes when a token was used, unless one notes it now.
	UsedToken(ctx context.Context, id string, at time.Time) error
}

// Token is a token as it is kept: without its secret. A row of WF_TOKENS.
type Token struct {
	ID        string    `db:"TOKEN_ID" width:"32"`
	Name      string    `db:"NAME" width:"128"`        // who bears it
	Roles     string    `db:"ROLES" width:"1000"`      // JSON array
	Groups    string    `db:"MEMBER_OF" width:"4000B"` // JSON array: of tasks
	Hash      []byte    `db:"HASH"`                    // SHA-256 of the secret
	CreatedAt time.Time `db:"CREATED_ON_UTC"`
	CreatedBy string    `db:"CREATED_BY" width:"128"`
	ExpiresAt time.Time `db:"EXPIRES_ON_UTC"`
	RevokedAt time.Time `db:"REVOKED_ON_UTC"` // zero: it is not
	RevokedBy string    `db:"REVOKED_BY" width:"128"`
	UsedAt    time.Time `db:"LAST_USED_ON_UTC"` // about when; zero: never
}

// AuditReader reads who has done what.
type AuditReader interface {
	Audit(ctx context.Context, q AuditQuery) (Page[store.Audit], error)
}

// AuditDone is the result, of a query and for people, of what was not refused: a row says nothing.
const AuditDone = "done"

// AuditQuery selects rows of the audit, newest first. Empty fields do not restrict.
type AuditQuery struct {
	User, Action, Target, InstanceID, Result string    // of Result the code of a refusal, or AuditDone
	From, To                                 time.Time // from on, and before
	After                                    string
	Limit                                    int
}
