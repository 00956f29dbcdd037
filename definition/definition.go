// Package definition is the catalogue of what instances run: documents are
// parsed by kind, published once under name@version, and never change.
package definition

import (
	"context"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Record is a published definition.
type Record struct {
	Name        string    `db:"NAME"` // namespace/name
	Version     string    `db:"VERSION"`
	Digest      string    `db:"DIGEST"` // hex SHA-256 of Document
	Kind        string    `db:"KIND"`   // which parser reads it, such as "openworkflow"
	Title       string    `db:"TITLE"`
	Source      []byte    `db:"SOURCE"`   // what the author wrote
	Document    []byte    `db:"DOCUMENT"` // canonical JSON
	PublishedAt time.Time `db:"PUBLISHED_ON_UTC"`
}

// Repository keeps records. Stores implement it.
type Repository interface {
	// PutDefinition stores r and returns the stored record; created is false
	// when the same name@version with the same digest was there before. With
	// another digest it is the problem definition.conflict.
	PutDefinition(ctx context.Context, r Record) (stored Record, created bool, err error)
	// Definition returns name@version, or the problem definition.unknown.
	Definition(ctx context.Context, name, version string) (Record, error)
	// Versions returns the records of a name, without Source and Document.
	Versions(ctx context.Context, name string) ([]Record, error)
	// Definitions returns records without Source and Document, in order of
	// name and version, behind after ("name@version").
	Definitions(ctx context.Context, after string, limit int) ([]Record, error)
}

// Parsed is a document that a parser accepted.
type Parsed struct {
	Definition engine.Definition
	Ref        snapshot.Definition
	Title      string
	Document   []byte // canonical JSON: what the digest is of
}

// Parser reads one kind of document. Its error is a problem that lists every
// finding with file, line, column and pointer.
type Parser func(file string, source []byte) (Parsed, error)
