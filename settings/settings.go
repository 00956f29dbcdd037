// Package settings has the nodes of a database agree on what they must do alike. The
// first node records how it is set; one that is set otherwise does not begin. Whoever
// changes a setting says so once, for all ([Accept]); nothing that is recorded is
// overwritten without.
package settings

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Book is where it is recorded.
type Book struct {
	Kept backend.Settings // nil = the store keeps none, and nobody is compared
	Now  func() time.Time // the clock of the database
}

// tries is how often somebody may be faster.
const tries = 10

// Join has a node begin with its settings, by key, as text without secrets. What is
// recorded of none of them yet it records, in the name of the node. What is recorded
// and the node does not have, it does not mind: it may be of another version. Problem:
// settings.differ, which says where.
func (b *Book) Join(ctx context.Context, node string, mine map[string]string) error {
	_, err := b.agree(ctx, node, mine, false)
	return err
}

// Accept records settings in the place of those that are there, with who has done it.
// Nodes that run keep theirs; each that begins from now on must have these. It returns
// what is new.
func (b *Book) Accept(ctx context.Context, by string, wanted map[string]string) ([]backend.Setting, error) {
	return b.agree(ctx, by, wanted, true)
}

// agree compares with what is recorded, and records what is new; what differs only where
// that is accepted.
func (b *Book) agree(ctx context.Context, by string, mine map[string]string, accept bool) ([]backend.Setting, error) {
	if b.Kept == nil {
		return nil, nil
	}
	for range tries {
		known, err := b.Kept.Settings(ctx)
		if err != nil {
			return nil, fmt.Errorf("settings: %w", err)
		}
		recorded := backend.Recorded{}
		for _, s := range known {
			recorded[s.Key] = s
		}
		var fresh, differ []backend.Setting
		var audits []store.Audit
		now := b.Now()
		for _, key := range slices.Sorted(maps.Keys(mine)) {
			old, ok := recorded[key]
			switch {
			case ok && old.Value == mine[key]:
				continue
			case ok && !accept:
				differ = append(differ, old)
			}
			fresh = append(fresh, backend.Setting{Key: key, Number: old.Number + 1, Value: mine[key], By: by, At: now})
			if accept {
				audits = append(audits, audit.Row(ctx, now, "accept-setting", key, ""))
			}
		}
		if len(differ) > 0 {
			return nil, refused(differ, mine)
		}
		if len(fresh) == 0 {
			return nil, nil
		}
		if err = b.Kept.Record(ctx, fresh, audits...); !errors.Is(err, store.ErrDuplicate) {
			return fresh, err
		}
	}
	return nil, problem.New(problem.Unavailable, "settings.busy", "others record settings without end").WithHint("try again")
}

func refused(differ []backend.Setting, mine map[string]string) error {
	what := "one setting differs"
	if len(differ) > 1 {
		what = fmt.Sprintf("%d settings differ", len(differ))
	}
	p := problem.New(problem.Conflict, "settings.differ", "%s from what the nodes of this database agree on", what).
		WithHint("set this node as the others; or have the new ones hold for all, with the same settings as this node: engine-node config accept")
	for _, s := range differ {
		p.Where = append(p.Where, problem.Place{Code: "settings.differ", Detail: fmt.Sprintf("%s is %s here, and %s in the database since %s, by %s",
			s.Key, strconv.Quote(mine[s.Key]), strconv.Quote(s.Value), s.At.Format(time.RFC3339), s.By)})
	}
	return p
}
