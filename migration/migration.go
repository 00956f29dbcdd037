// Package migration is what a definition says when its instances are to go on in
// another version of it.
package migration

import (
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Migratable is a definition whose instances can go on in another version.
// Absent: they end in the one that they began in.
type Migratable interface {
	// Document is what the author wrote, as any JSON, to show what has changed.
	Document() any
	// MigrateTo says how, by a map of old pointers to new ones. A Move that is nil,
	// without an error: to is of another kind, which takes none of these.
	MigrateTo(to engine.Definition, pointers map[string]string) (Move, error)
}

// Move rewrites a snapshot for the other version, and lists where the instance
// is live, in order of pointers. With a problem the snapshot is spoilt.
type Move func(s *snapshot.Snapshot) []Position

// Position is a task at which an instance is live: it has begun and not ended,
// or is the next to run.
type Position struct {
	Pointer string
	To      string // where it goes on; "" = nowhere
	Problem string // why it cannot
	Passing bool   // the problem ends by itself, and holds up no other instance
}
