package definition

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// kindGo is the kind of the record of a definition that is Go code: its document is
// what the code declares, and only programs with the code run it.
const kindGo = "go"

// coded is a definition that is Go code and says what it declares.
type coded interface {
	// Declared is what it says of itself, as JSON; its digest is of that.
	Declared() json.RawMessage
	// Functions are the names of the functions that it calls, by pointer.
	Functions() map[string]string
	// ListensOtherwise names the steps that listen for something else than those of the
	// same names in what an older version declared.
	ListensOtherwise(declared json.RawMessage) []string
	Newer
}

// Newer is a definition in which instances of older versions go on.
type Newer interface {
	// From is how those of one go on in it; false = they cannot.
	From(older snapshot.Definition) (engine.Definition, bool)
}

// PublishCode registers a definition that is Go code, and stores that there is such a
// version: a node without its code hands on what is for its instances. Instances of
// older versions go on in it, where it can; a program that has their code registers
// that first. Publishing the same again changes nothing.
//
// It asks which versions instances run, and which functions there are, of who has said so
// by LiveBy and CanBy: runtime.New says both, so a program publishes its code after that,
// and before the node runs.
//
// Problems: definition.invalid, definition.conflict, workflow.function-unknown,
// workflow.upcast-missing when instances run a version that leads nowhere, and
// workflow.event-changed when they may wait where this one listens for something else.
func (c *Catalogue) PublishCode(ctx context.Context, def engine.Definition) (created bool, err error) {
	ref := def.Ref()
	code, ok := def.(coded)
	if !ok {
		return false, problem.New(problem.Invalid, "definition.invalid", "definition %s is Go code that does not say what it declares", ID(ref.Name, ref.Version)).
			WithHint("register it on every node instead")
	}
	if err := functions(ref, code, c.can); err != nil {
		return false, err
	}
	older, err := olderVersions(ctx, c, ref, code)
	if err != nil {
		return false, err
	}
	if err := c.Register(def); err != nil {
		return false, err
	}
	declared := []byte(code.Declared())
	p := &candidate{parsed: Parsed{Definition: def, Ref: ref}, Published: Published{Record: Record{
		Name: ref.Name, Version: ref.Version, Digest: ref.Digest, Kind: kindGo, Source: declared, Document: declared,
		PublishedAt: c.now().UTC().Truncate(time.Microsecond),
	}}}
	if err := (publishing{c}).put(ctx, []*candidate{p}, findings{of: 1}); err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.Copy(c.code, older)
	return p.Created, nil
}

// CanBy says which functions the program has; activity.Performer.Can answers. It is called
// once, before use.
func (c *Catalogue) CanBy(can func(function string) bool) { c.can = can }

// functions refuses what calls functions that nobody has registered.
func functions(ref snapshot.Definition, def coded, can func(string) bool) error {
	called := def.Functions()
	var wrong []problem.Place
	for _, at := range slices.Sorted(maps.Keys(called)) {
		if f := called[at]; can != nil && !can(f) {
			wrong = append(wrong, problem.Place{Pointer: at, Code: "workflow.function-unknown", Detail: "the function " + f + " is not registered"})
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	e := problem.New(problem.Invalid, "workflow.function-unknown", "%s calls functions that this program does not have", ID(ref.Name, ref.Version)).
		WithHint("register them before the workflow")
	e.Where = wrong
	return e
}

// olderVersions are the versions that were Go code, and whose instances go on in def, by ID.
func olderVersions(ctx context.Context, c *Catalogue, ref snapshot.Definition, def coded) (map[string]engine.Definition, error) {
	records, err := c.repo.Versions(ctx, ref.Name, 0)
	if err != nil && problem.KindOf(err) != problem.NotFound {
		return nil, err
	}
	all := map[string]engine.Definition{}
	var without, from []string // versions from which no way leads, and whose instances come over
	for _, r := range records {
		id := ID(r.Name, r.Version)
		if have := c.registered(id); r.Kind != kindGo || compareVersions(r.Version, ref.Version) >= 0 || have != nil && have.Ref().Version == r.Version && !passedOn(have) {
			continue
		}
		if old, ok := def.From(snapshot.Definition{Name: r.Name, Version: r.Version, Digest: r.Digest}); ok {
			all[id] = old
			from = append(from, r.Version)
			continue
		}
		without = append(without, r.Version)
	}
	if slices.ContainsFunc(records, func(r Record) bool { return r.Version == ref.Version }) {
		from = nil // it goes on in it already
	}
	if len(without)+len(from) == 0 || c.policies.live == nil {
		return all, nil
	}
	live, err := c.policies.live(ctx, ref.Name)
	if err != nil {
		return nil, err
	}
	dead := func(v string) bool { return !slices.Contains(live, v) }
	if without = slices.DeleteFunc(without, dead); len(without) > 0 {
		e := problem.New(problem.Conflict, "workflow.upcast-missing", "%s cannot go on with instances of %d older versions", ID(ref.Name, ref.Version), len(without)).
			WithHint("add an upcast from each, or publish the code of these versions, too")
		for _, v := range without {
			e.Where = append(e.Where, problem.Place{Pointer: "/upcast/" + v, Code: e.Code, Detail: "instances run version " + v + ", and no upcast begins there"})
		}
		return nil, e
	}
	return all, listensAlike(ctx, c, ref, def, slices.DeleteFunc(from, dead))
}

// listensAlike refuses a version in which steps listen for something else than they did in
// those whose instances come over: who waits there has the key of before.
func listensAlike(ctx context.Context, c *Catalogue, ref snapshot.Definition, def coded, from []string) error {
	e := problem.New(problem.Conflict, "workflow.event-changed", "%s listens for something else where instances of older versions may wait", ID(ref.Name, ref.Version)).
		WithHint("keep these steps as they were, and listen at new ones")
	for _, v := range from {
		r, err := c.repo.Definition(ctx, ref.Name, v)
		if err != nil {
			return err
		}
		for _, name := range def.ListensOtherwise(r.Document) {
			e.Where = append(e.Where, problem.Place{Pointer: "/steps/" + name, Code: e.Code, Detail: "instances run version " + v + ", in which the step listens for something else"})
		}
	}
	if len(e.Where) == 0 {
		return nil
	}
	return e
}

// passedOn reports whether a definition has its instances go on in a newer version,
// which a still newer one may do in its place.
func passedOn(def engine.Definition) bool {
	_, ok := def.(engine.Superseded)
	return ok
}

func elsewhere(name, version string) error {
	return problem.New(problem.Unavailable, engine.CodeElsewhere, "definition %s is Go code, which this node does not have", ID(name, version)).
		WithHint("run the program that has it on a node, or ask that node; messages for its instances wait until then")
}

// verifyCode says what is wrong with the record of Go code.
func verifyCode(r Record) error {
	sum := sha256.Sum256(r.Document)
	if got := hex.EncodeToString(sum[:]); got != r.Digest {
		return problem.New(problem.Internal, "definition.digest", "definition %s is stored with the digest %.12s, and what it declares has %.12s", ID(r.Name, r.Version), r.Digest, got)
	}
	return nil
}
