package replay

import (
	"context"
	"errors"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Source is a database whose instances are made again; history.Reader of both stores
// is one.
type Source interface {
	// Secret is the key from which tokens are derived.
	Secret(ctx context.Context) ([]byte, error)
	// IDs lists instances in the order of their ids, behind one.
	IDs(ctx context.Context, after string, limit int) ([]string, error)
	// History gives read a snapshot and its stream as they were at one moment.
	History(ctx context.Context, id string, read func(stored []byte, stream Stream) error) error
}

// pageOf is how many ids are read at once.
const pageOf = 500

// One verifies an instance. Problem: instance.unknown.
func One(ctx context.Context, from Source, defs Definitions, id string) (found Finding, err error) {
	key, err := from.Secret(ctx)
	if err != nil {
		return found, err
	}
	return one(ctx, from, Replayer{defs, key}, id)
}

func one(ctx context.Context, from Source, r Replayer, id string) (found Finding, err error) {
	err = from.History(ctx, id, func(stored []byte, stream Stream) error {
		found, err = r.Verify(ctx, id, stored, stream)
		return err
	})
	if problem.CodeOf(err) == "snapshot.corrupt" {
		return Finding{Instance: id, Verdict: Different, Path: "snapshot", Why: err.Error()}, nil
	}
	return found, err
}

// All verifies every instance, and tells each what was found. One that is deleted
// meanwhile is passed over.
func All(ctx context.Context, from Source, defs Definitions, each func(Finding) error) error {
	key, err := from.Secret(ctx)
	if err != nil {
		return err
	}
	r := Replayer{defs, key}
	for after := ""; ; {
		ids, err := from.IDs(ctx, after, pageOf)
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			found, err := one(ctx, from, r, id)
			if problem.CodeOf(err) == "instance.unknown" {
				continue
			}
			if err = errors.Join(err, ctx.Err()); err != nil {
				return err
			}
			if err := each(found); err != nil {
				return err
			}
		}
		after = ids[len(ids)-1]
	}
}
