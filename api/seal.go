package api

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// markBytes is of what a sealed mark is a multiple, or its length would tell of the number.
const markBytes = 32

// seal hides where a page ends from who is limited to some namespaces: it is the number of
// a row among those of all, so that who starts an instance now and then could count what
// others start. Every node of a database opens what another has sealed.
type seal struct{ cipher.AEAD }

// newSeal makes a seal of the secret of the database.
func newSeal(secret []byte) (seal, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "aqueduct: ends of pages", 32)
	if err != nil {
		return seal{}, fmt.Errorf("api: Secret: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return seal{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return seal{aead}, err
}

// about is what the end of a page belongs to: nobody else's page, and no other list's.
func about(list string, scope backend.Scope) []byte {
	return []byte(list + "\n" + strings.Join(scope, "\n"))
}

// open reads in place the mark that somebody has sent. Problem: page.invalid.
func (s seal) open(ctx context.Context, list string, mark *string) error {
	scope := scopeOf(ctx)
	if scope == nil || *mark == "" {
		return nil
	}
	sealed, err := base64.RawURLEncoding.DecodeString(*mark)
	if err == nil {
		sealed, err = s.Open(nil, nil, sealed, about(list, scope))
	}
	if err != nil {
		return problem.New(problem.Invalid, "page.invalid", "%s is not the end of a page", clip(*mark))
	}
	*mark = strings.TrimLeft(string(sealed), " ")
	return nil
}

// close hides in place the mark that somebody gets.
func (s seal) close(ctx context.Context, list string, mark *string) {
	if scope := scopeOf(ctx); scope != nil && *mark != "" {
		padded := strings.Repeat(" ", -len(*mark)&(markBytes-1)) + *mark // a mark begins with a number
		*mark = base64.RawURLEncoding.EncodeToString(s.Seal(nil, nil, []byte(padded), about(list, scope)))
	}
}

// sealed reads a page of a list of which somebody may see a part.
func sealed[T any](ctx context.Context, s seal, list string, after *string, read func() (backend.Page[T], error)) (backend.Page[T], error) {
	if err := s.open(ctx, list, after); err != nil {
		return backend.Page[T]{}, err
	}
	p, err := read()
	s.close(ctx, list, &p.Next)
	return p, err
}
