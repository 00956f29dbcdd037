// Package replay makes an instance again from its stream: with the pure engine, each
// turn on what the one before has left, by what its entries and their basis say. What
// comes of it is compared, entry by entry, with the stream, and at its end with the
// snapshot.
//
// It writes nothing and calls nobody. A node does not need it: without this package
// nobody can prove that a stream and a snapshot belong together.
package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Definitions finds what instances ran; definition.Past is one.
type Definitions interface {
	// Under finds exactly what an instance runs, as it was with a version of its policy;
	// "" = with none.
	Under(ctx context.Context, ref snapshot.Definition, policy string) (engine.Definition, error)
}

// Verdict says what became of an instance that was made again.
type Verdict string

// Verdicts.
const (
	Equal        Verdict = "equal"
	Different    Verdict = "different"
	Unverifiable Verdict = "unverifiable" // from a position on it cannot be said
)

// Finding is what a replay of one instance came to.
type Finding struct {
	Instance string  `json:"instance"`
	Verdict  Verdict `json:"verdict"`
	Turns    int     `json:"turns"`   // that were made again, and came to what is stored
	Through  int64   `json:"through"` // position of the last entry of those

	Position int64  `json:"position,omitempty"` // where it differs, or from which on it is unverifiable
	Path     string `json:"path,omitempty"`     // what differs there: a column of the entry, or "snapshot", and in JSON a pointer
	Stored   string `json:"stored,omitempty"`
	Replayed string `json:"replayed,omitempty"`
	Engine   string `json:"engine,omitempty"` // version of the program that made the turn
	Why      string `json:"why,omitempty"`    // it is unverifiable, or a turn cannot be made again
}

// String says it in one line.
func (f Finding) String() string {
	switch {
	case f.Verdict == Equal:
		return fmt.Sprintf("%s: equal, %d turns through position %d", f.Instance, f.Turns, f.Through)
	case f.Verdict == Unverifiable && f.Turns == 0 && f.Position > 1:
		return fmt.Sprintf("%s: unverifiable before %d: %s", f.Instance, f.Position, f.Why)
	case f.Verdict == Unverifiable && f.Through == 0:
		return fmt.Sprintf("%s: unverifiable: %s", f.Instance, f.Why)
	case f.Verdict == Unverifiable:
		return fmt.Sprintf("%s: equal through position %d, unverifiable at %d: %s", f.Instance, f.Through, f.Position, f.Why)
	case f.Why != "":
		return fmt.Sprintf("%s: different at %d (engine %s): %s", f.Instance, f.Position, f.Engine, f.Why)
	}
	return fmt.Sprintf("%s: different at %d, %s (engine %s): stored %s, replayed %s", f.Instance, f.Position, f.Path, f.Engine, f.Stored, f.Replayed)
}

// Replayer makes instances again. Its key is that of the database.
type Replayer struct {
	Definitions Definitions
	Key         []byte
}

// Stream is an instance's, from its first entry, as a store has it at one moment.
type Stream = iter.Seq2[projections.Entry, error]

// Verify makes an instance again and compares it with what is stored of it: the bytes
// of the snapshot, and the stream that was read with them, in which a row that is not as
// it was written has the problem stream.corrupt. An error says that something could not
// be read.
func (r Replayer) Verify(ctx context.Context, id string, stored []byte, stream Stream) (Finding, error) {
	p := r.player(id, stored)
	if err := p.play(ctx, stream, 0); err != nil || p.found.Verdict != Equal {
		return p.found, err
	}
	if p.found.Turns == 0 {
		p.unverifiable(1, "its stream is empty")
		return p.found, nil
	}
	p.compareSnapshot(stored)
	p.byRules()
	return p.found, nil
}

// At is the state of an instance after the turn of a position, and what was found on
// the way there. Problem: stream.position, when no turn has it.
func (r Replayer) At(ctx context.Context, id string, stored []byte, position int64, stream Stream) (snapshot.Snapshot, Finding, error) {
	if position < 1 {
		return snapshot.Snapshot{}, Finding{}, problem.New(problem.NotFound, "stream.position", "instance %s has no entry %d: its stream begins at 1", id, position)
	}
	p := r.player(id, stored)
	if err := p.play(ctx, stream, position); err != nil {
		return snapshot.Snapshot{}, p.found, err
	}
	if p.found.Verdict == Equal && p.found.Through < position {
		return snapshot.Snapshot{}, p.found, problem.New(problem.NotFound, "stream.position", "instance %s has no entry %d: its stream ends at %d", id, position, p.found.Through)
	}
	return p.snap, p.found, nil
}

// row is an entry of the stream, with its metadata read.
type row struct {
	projections.Entry
	meta engine.Meta
}

// player makes one instance again.
type player struct {
	Replayer
	snap     snapshot.Snapshot        // after the last turn
	commands map[int64]engine.Command // that are open, or of which nobody knows what became
	given    json.RawMessage          // as the snapshot has it, byte for byte
	policed  bool                     // a turn was decided by a policy
	others   bool                     // a turn was decided by rules that are not this program's
	found    Finding
}

func (r Replayer) player(id string, stored []byte) *player {
	p := &player{Replayer: r, commands: map[int64]engine.Command{}, found: Finding{Instance: id, Verdict: Equal}}
	if s, err := snapshot.Decode(stored); err == nil {
		p.given = s.State.Input
	}
	return p
}

// play makes turn after turn, until one has a position; 0 = all.
func (p *player) play(ctx context.Context, stream Stream, until int64) error {
	var group []row // the entries of one decision
	turn := func() error {
		if len(group) == 0 {
			return nil
		}
		p.others = p.others || group[0].meta.Basis.Rules != engine.Rules
		err := p.turn(ctx, group)
		p.byRules()
		group = group[:0]
		return err
	}
	done := func() bool { return p.found.Verdict != Equal || until > 0 && p.found.Through >= until }
	next := int64(1)
	for e, err := range stream {
		x := row{Entry: e}
		if problem.CodeOf(err) == "stream.corrupt" {
			p.damaged(x, err)
			return nil
		}
		if err != nil {
			return err
		}
		if len(e.Metadata) > 0 {
			if err := json.Unmarshal(e.Metadata, &x.meta); err != nil {
				p.differs(x, "METADATA", "no JSON", err.Error())
				return nil
			}
		}
		if x.meta.Basis != nil {
			if err := turn(); err != nil || done() {
				return err
			}
		}
		if !p.begins(x, next, len(group)) {
			return nil
		}
		if next = e.Position + 1; p.found.Verdict == Equal {
			group = append(group, x)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.found.Verdict != Equal {
		return nil
	}
	return turn()
}

// begins holds the stream to its order: it has no gap, and begins with a turn that
// says what it was decided on. Of what is older it is only said where that ends.
func (p *player) begins(x row, next int64, group int) bool {
	switch {
	case p.found.Verdict == Unverifiable: // it looks for the first turn with a basis
		p.found.Position = x.Position + 1
		if x.meta.Basis != nil {
			p.found.Position = x.Position
			return false
		}
	case x.Position != next && next == 1:
		p.unverifiable(x.Position, "the stream does not begin at 1: what was before has been deleted")
		return false
	case x.Position != next:
		p.differs(x, "POSITION", fmt.Sprint(x.Position), fmt.Sprint(next))
		return false
	case group == 0 && x.meta.Basis == nil:
		p.unverifiable(x.Position+1, "the turns before were made by an engine that did not record what it decided on")
	}
	return true
}

// differs notes the first difference.
func (p *player) differs(x row, path, stored, replayed string) {
	p.found.Verdict, p.found.Position, p.found.Path = Different, x.Position, path
	p.found.Stored, p.found.Replayed = clip(stored), clip(replayed)
	if x.meta.Basis != nil {
		p.found.Engine = x.meta.Basis.Engine
	}
}

// damaged notes a row that is not as it was written.
func (p *player) damaged(x row, err error) {
	p.differs(x, "", "", "")
	p.found.Why = err.Error()
}

func (p *player) unverifiable(position int64, format string, args ...any) {
	p.found.Verdict, p.found.Position, p.found.Why = Unverifiable, position, fmt.Sprintf(format, args...)
}

// byRules takes a difference back where a turn was decided by other rules than this
// program's: nothing need be wrong with it.
func (p *player) byRules() {
	f := &p.found
	if f.Verdict != Different || !p.others {
		return
	}
	why := cmp.Or(f.Why, fmt.Sprintf("%s is %s, and is now decided as %s", f.Path, f.Stored, f.Replayed))
	p.unverifiable(f.Position, "an engine with other rules has decided some of it: %s", why)
}

// turn makes one decision again, and compares its entries with those stored.
func (p *player) turn(ctx context.Context, group []row) error {
	out, err := p.decide(ctx, group)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if u, ok := err.(*unverifiable); ok {
			p.unverifiable(group[0].Position, "%s", u.why)
			return nil
		}
		p.differs(group[0], "", "", "")
		p.found.Why = "the turn was made, and cannot be made again: " + err.Error()
		return nil
	}
	if !p.compareEntries(group, out) {
		return nil
	}
	p.snap = out.Snapshot
	p.found.Turns++
	p.found.Through = p.snap.Position
	p.remember(out)
	return nil
}

// remember keeps the commands that an operator may have sent again.
func (p *player) remember(out *engine.Outcome) {
	for _, e := range out.Entries {
		if e.Command != nil && e.Command.Token != "" {
			p.commands[e.Position] = *e.Command
		}
	}
	needed := map[int64]engine.Command{}
	for _, w := range p.snap.Waits {
		if c, ok := p.commands[w.Command]; ok {
			needed[w.Command] = c
		}
	}
	for _, e := range p.snap.Effects {
		if c, ok := p.commands[e.Command]; ok {
			needed[e.Command] = c
		}
	}
	p.commands = needed
}

// commandIn reads a command of the stream, which has durations.
func commandIn(data []byte) (*engine.Command, error) {
	var c engine.Command
	err := json.Unmarshal(data, &c)
	return &c, err
}
