package storetest

import (
	"errors"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
)

// insideCases are those of changes that are made in the transaction that commits them.
var insideCases = map[string]func(*testCase){
	"a change is made inside its transaction": func(k *testCase) {
		k.commit(turn("a", 1))
		k.send(store.Send{Queue: store.Signals, Body: []byte("{}")})
		d := k.receive(k.s, store.Signals)
		inside := func(c store.Change, then error) store.Change {
			return store.Change{Snapshot: c.Snapshot, Over: c.Over, Inside: func(do store.Perform) (store.Change, error) {
				if _, _, err := do("sql/none", []byte("{}")); problem.CodeOf(err) != "step.unknown" {
					k.Errorf("a step that nobody has listed: %v", err)
				}
				return c, then
			}}
		}
		refused := errors.New("refused inside")
		k.is(d.Commit(k.ctx, inside(turn("a", 2), refused)), refused)
		stale := turn("a", 3)
		k.is(d.Commit(k.ctx, inside(stale, nil)), store.ErrStale)
		several := turn("a", 4) // by three decisions
		several.Over = 1
		k.ok(d.Commit(k.ctx, inside(several, nil)))
		got, err := k.s.Writer.Load(k.ctx, "a")
		k.ok(err)
		equal(k, got.Version, 4)
		first := turn("b", 3)
		first.Over = -1
		k.ok(k.s.Writer.Commit(k.ctx, inside(first, nil)))
		k.is(k.s.Writer.Commit(k.ctx, inside(first, nil)), store.ErrDuplicate)
		row, err := k.s.Instances.Instance(k.ctx, "b")
		k.ok(err)
		equal(k, row.Version, 3)
	},
}
