// Package tracing makes spans of what a node does: one of each turn that is over, one of
// each attempt at a command, and one without length of the start and of the end of an
// instance. No span is open while an instance waits: each is made when it is over, of a
// turn after its commit.
//
// The spans of an instance are one trace: that of the start request, where it has one,
// else one whose id is made of the database's key, the instance and its incarnation. So
// every node, and the one that comes after a crash, has the same. Spans have ids of what
// they are of, too: a turn that was committed has one, however often it is told.
//
// A span names the instance, its definition, the task, the type of the signal and the
// kind of an error: never what instances work on, nor the words of an error.
//
// What becomes of spans is for a [Sink] to say; it must not block.
package tracing

import (
	"math/rand/v2"
	"time"
)

// Kind says what part its node had in a span, in the numbers of OpenTelemetry.
type Kind int

// The kinds that there are here.
const (
	Internal Kind = 1
	Client   Kind = 3
	Consumer Kind = 5
)

// MaxLinks bounds the links of one span: a turn may decide more signals.
const MaxLinks = 64

// Span is something that is over.
type Span struct {
	Trace      [16]byte
	ID         [8]byte
	Parent     [8]byte // zeros = it has none
	Name       string
	Kind       Kind
	Start, End time.Time
	Attributes []Attribute
	Links      []Link
	Unlinked   int // links that are left out, above MaxLinks
	Failed     bool
}

// Link names a span that has led to this one.
type Link struct {
	Trace [16]byte
	ID    [8]byte
}

// Attribute says something of a span: a text, or a number where Number is set.
type Attribute struct {
	Key    string
	Text   string
	Number int64
	IsText bool
}

// Sink takes spans.
type Sink func(spans ...Span)

// Config is what a Tracer is made of.
type Config struct {
	Key    []byte  // of the database: ids are made of it, the same on every node
	Ratio  float64 // of the instances without a trace of their own that are sampled, from 0 to 1
	System string  // the messaging system that queues are of
	Sink   Sink
	Now    func() time.Time // of the database: spans of all nodes have one clock
}

// Tracer makes spans. Its methods may be called from many goroutines.
type Tracer struct{ Config }

// New makes a tracer.
func New(c Config) *Tracer { return &Tracer{c} }

// text is an attribute, or none when it is empty.
//
//go:noinline
func (s *Span) text(key, text string) {
	if text != "" {
		s.Attributes = append(s.Attributes, Attribute{Key: key, Text: text, IsText: true})
	}
}

//go:noinline
func (s *Span) number(key string, n int64) {
	s.Attributes = append(s.Attributes, Attribute{Key: key, Number: n})
}

// failed makes the span one of an error.
func (s *Span) failed(kind string) {
	s.Failed = true
	s.text("error.type", kind)
}

// link adds a link, once.
func (s *Span) link(trace [16]byte, id [8]byte) {
	to := Link{trace, id}
	for _, l := range s.Links {
		if l == to {
			return
		}
	}
	if len(s.Links) == MaxLinks {
		s.Unlinked++
		return
	}
	s.Links = append(s.Links, to)
}

// anyID is one that nobody can make again: of what is not committed, and may be done over.
func anyID() (id [8]byte) {
	for id == [8]byte{} {
		n := rand.Uint64()
		for i := range id {
			id[i] = byte(n >> (8 * i))
		}
	}
	return id
}
