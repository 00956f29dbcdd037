package definition

import (
	"github.com/aqueduct-engine/aqueduct/engine"
)

// kept is a version that is in memory, or nil. Every turn asks, so the id is not
// made on the heap.
func (c *Catalogue) kept(name, version string) engine.Definition {
	var buf [128]byte
	id := append(append(append(buf[:0], name...), '@'), version...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if def := c.code[string(id)]; def != nil {
		return def
	}
	e := c.compiled[string(id)]
	if e == nil {
		return nil
	}
	c.used.MoveToFront(e)
	return e.Value.(*compiled).def
}

func (c *Catalogue) keep(id string, def engine.Definition, document int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.compiled[id]; e != nil {
		c.used.MoveToFront(e)
		return
	}
	size := int64(document) * CompiledFactor
	c.compiled[id] = c.used.PushFront(&compiled{id: id, def: def, bytes: size})
	c.kepts += size
	c.shrink(1)
}

// shrink drops definitions, but for so many, until there is room for what is
// kept and what is being compiled; c.mu is held.
func (c *Catalogue) shrink(least int) {
	for c.kepts+c.making > c.keeps && c.used.Len() > least {
		old := c.used.Remove(c.used.Back()).(*compiled)
		c.kepts -= old.bytes
		delete(c.compiled, old.id)
	}
}
