package definition

import (
	"container/list"
	"context"
	"sync"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// shelf has the compiled definitions that a catalogue keeps, and bounds their bytes and
// those of what is being compiled, together.
type shelf struct {
	most int64 // bytes
	take Taker // of memory; nil = as much as there is

	mu       sync.Mutex
	compiled map[string]*list.Element // of *compiled, by name@version
	used     list.List                // the last used first
	kept     int64                    // bytes that there are
	making   int64                    // taken for what is being compiled
}

type compiled struct {
	id    string
	def   engine.Definition
	bytes int64
}

// compiling takes the memory for a document that is going to be compiled. What
// is kept makes room for it.
func (s *shelf) compiling(ctx context.Context, document int) (release func(), err error) {
	if s.take == nil {
		return func() {}, nil
	}
	bytes := int64(document) * CompilingFactor
	free, err := s.take(ctx, bytes)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.making += bytes
	s.shrink(0)
	return func() {
		s.mu.Lock()
		s.making -= bytes
		s.mu.Unlock()
		free()
	}, nil
}

// hold makes room for a compiled definition that is not published yet, beside what is
// being compiled and a document that comes; false = there is none.
func (s *shelf) hold(document, coming int) (release func(), ok bool) {
	if s.take == nil {
		return func() {}, true
	}
	bytes := int64(document) * CompiledFactor
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.making+bytes+int64(coming)*CompilingFactor > s.most {
		return func() {}, false
	}
	s.making += bytes
	s.shrink(0)
	var once sync.Once
	return func() {
		once.Do(func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.making -= bytes
		})
	}, true
}

// bounded is a parser that takes memory for as long as it works: neither while
// documents are fetched nor while a definition is stored, which may wait for
// turns that wait for a definition.
func (s *shelf) bounded(ctx context.Context, parse Parser) Parser {
	return func(file string, source []byte, given ...Resource) (Parsed, error) {
		n := len(source)
		for i := range given {
			n += len(given[i].Content)
		}
		release, err := s.compiling(ctx, n)
		if err != nil {
			return Parsed{}, err
		}
		defer release()
		return parse(file, source, given...)
	}
}

// compilable refuses what this node could not compile within its memory.
func (s *shelf) compilable(document int) error {
	if need := int64(document) * CompilingFactor; s.take != nil && need > s.most {
		return problem.New(problem.TooLarge, "definition.memory", "a definition of %d bytes takes about %d MiB to compile, and this node has %d MiB for that",
			document, need>>20, s.most>>20).WithHint("divide the definition, or give the node more memory (memory.limit)")
	}
	return nil
}

// kept is a version that is in memory, or nil. Every turn asks, so the id is not
// made on the heap.
func (c *Catalogue) kept(name, version string) engine.Definition {
	var buf [128]byte
	id := append(append(append(buf[:0], name...), '@'), version...)
	c.mu.Lock()
	def := c.code[string(id)]
	c.mu.Unlock()
	if def != nil {
		return def
	}
	return c.shelf.find(id)
}

func (s *shelf) find(id []byte) engine.Definition {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.compiled[string(id)]
	if e == nil {
		return nil
	}
	s.used.MoveToFront(e)
	return e.Value.(*compiled).def
}

func (s *shelf) keep(id string, def engine.Definition, document int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.compiled[id]; e != nil {
		s.used.MoveToFront(e)
		return
	}
	size := int64(document) * CompiledFactor
	s.compiled[id] = s.used.PushFront(&compiled{id: id, def: def, bytes: size})
	s.kept += size
	s.shrink(1)
}

// shrink drops definitions, but for so many, until there is room for what is
// kept and what is being compiled; s.mu is held.
func (s *shelf) shrink(least int) {
	for s.kept+s.making > s.most && s.used.Len() > least {
		old := s.used.Remove(s.used.Back()).(*compiled)
		s.kept -= old.bytes
		delete(s.compiled, old.id)
	}
}
