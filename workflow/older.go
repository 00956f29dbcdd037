package workflow

import (
	"encoding/json"
	"errors"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// older is a definition as instances of an older version of it see it: their next turn
// takes them to the present one.
type older struct {
	*Definition
	ref   snapshot.Definition
	chain chain
}

// entryMigrated is the stream's record of a migration, as that of a document.
const entryMigrated = "DefinitionMigrated"

// From is how the instances of an older version go on in this one; false: no upcast
// leads from there to here.
func (d *Definition) From(ref snapshot.Definition) (engine.Definition, bool) {
	c, ok := d.upcasts[ref.Version]
	if !ok || ref.Name != d.ref.Name {
		return nil, false
	}
	return &older{Definition: d, ref: ref, chain: c}, true
}

// Ref is the older version.
func (o *older) Ref() snapshot.Definition { return o.ref }

// Successor is the present version.
func (o *older) Successor() engine.Definition { return o.Definition }

// Begin begins an instance, in the present version: nobody has the code of the older.
func (o *older) Begin(t *engine.Turn, input json.RawMessage) error {
	if err := o.migrated(t); err != nil {
		return err
	}
	return o.Definition.Begin(t, input)
}

// Resume goes on in the present version. What compensates asks no function, and needs no
// state of the present version; nor does the end of a child that was left.
func (o *older) Resume(t *engine.Turn, w snapshot.Wait, res engine.Result) error {
	if t.Snap.Compensating == nil && w.Left <= 0 {
		if err := o.upcast(t); err != nil {
			return o.unable(t, w, res, err)
		}
	}
	return o.Definition.Resume(t, w, res)
}

// unable halts an instance whose state cannot be made that of the present version, with what
// came for w. A pause that is over is no result: the step is still to be asked for again.
func (o *older) unable(t *engine.Turn, w snapshot.Wait, res engine.Result, err error) error {
	var f *fault
	if !errors.As(err, &f) {
		return err
	}
	r, err := o.at(t)
	if err != nil {
		return err
	}
	engine.Adopt(t, w, res.Compensations)
	switch w.Kind {
	case snapshot.WaitRetry:
		r.halt(w.Pointer, f)
		return nil
	case snapshot.WaitTimeout:
		res = timedOut(w.Pointer)
	}
	return r.broken(arrival{pointer: w.Pointer, item: w.Arm, result: res}, f)
}

// Recover goes on in the present version.
func (o *older) Recover(t *engine.Turn, op engine.Operation, output json.RawMessage) error {
	if t.Snap.Compensating != nil {
		return o.Definition.Recover(t, op, output)
	}
	var f *fault
	err := o.upcast(t)
	if errors.As(err, &f) {
		(&run{t: t}).halt("", f)
		return nil
	}
	if err != nil {
		return err
	}
	return o.Definition.Recover(t, op, output)
}

// upcast makes an instance one of the present version.
func (o *older) upcast(t *engine.Turn) (err error) {
	b := t.Snap.Branch(0)
	if t.Snap.Definition != o.ref || b == nil {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
	}()
	state := b.Data
	for _, u := range o.chain {
		if state, err = u.do(state); err != nil {
			return err
		}
	}
	if err := o.migrated(t); err != nil {
		return err
	}
	b.Data = state
	return nil
}

// migrated notes that an instance is one of the present version.
func (o *older) migrated(t *engine.Turn) error {
	data, err := encode(map[string]snapshot.Definition{"from": o.ref, "to": o.Definition.ref})
	if err != nil {
		return err
	}
	t.Snap.Definition = o.Definition.ref
	t.Append(engine.Entry{Kind: engine.KindEvent, Dir: engine.In, Type: entryMigrated, Data: data})
	return nil
}
