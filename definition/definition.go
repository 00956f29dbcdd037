// Package definition is the catalogue of what instances run: documents are
// parsed by kind, published once under name@version, and never change.
package definition

import (
	"context"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
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
	Ordinal     int       `db:"ORDINAL"` // 1 = the first version of its name that was published

	// Warnings are what the parser found that is allowed and probably not
	// meant. Publish gives them; they are not stored.
	Warnings []problem.Place `db:"-"`
}

// Repository keeps records. Stores implement it.
type Repository interface {
	// PutDefinitions stores records, all of them or none, unless the version of one
	// is there or another version of its name has its ordinal: created is false then.
	PutDefinitions(ctx context.Context, records []Record) (created bool, err error)
	// Definition returns name@version, or the problem definition.unknown.
	Definition(ctx context.Context, name, version string) (Record, error)
	// Versions returns the records of a name behind an ordinal, in order of it,
	// without Source and Document. Those before it cost nothing.
	Versions(ctx context.Context, name string, after int) ([]Record, error)
	// Definitions returns records without Source and Document, in order of
	// name and version, behind after ("name@version"). Policies are among them when
	// after has [PolicyPrefix], and then nothing else is.
	Definitions(ctx context.Context, after string, limit int) ([]Record, error)
}

// Parsed is a document that a parser accepted.
type Parsed struct {
	Definition engine.Definition // nil as long as something is needed, and of a policy
	Ref        snapshot.Definition
	Title      string
	Document   []byte          // canonical JSON, with the resources it uses: what the digest is of
	Needs      []Need          // documents it refers to that were not given
	Warnings   []problem.Place // what is allowed and probably not meant

	// Functions are those that a program has to register: the language does not
	// have them, and the document does not say what they are. The place is that
	// of the first call.
	Functions map[string]problem.Place
	Known     []string // the functions of the language and of the document

	Steps []Called // in the transactions of its turns

	// Unknown are the names of the policy that was given with a lifecycle which this
	// version of it does not know: with what it says of them left out. Warnings of what
	// the policy makes of this version are among them.
	Unknown []problem.Place

	file string // what findings call it
}

// Parser reads one kind of document, given the documents that it refers to. Its
// error is a problem that lists every finding with file, line, column and
// pointer.
type Parser func(file string, source []byte, given ...Resource) (Parsed, error)
