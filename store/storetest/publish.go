package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aqueduct-engine/aqueduct/correlation"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

var publishCases = map[string]func(*testCase){
	"a version is published with the changes of instances": func(k *testCase) {
		repo := k.repository()
		k.commit(turn("old", 1))
		with := []store.Change{turn("old", 2), turn("new", 1)}
		with[1].Rows.Waits = []projections.Wait{{Token: "t", InstanceID: "new", EventType: "placed", Spec: "s", KeyHash: correlation.KeyHash("k"), CreatedAt: at}}
		with[1].Send = []store.Send{{Queue: store.Signals, Body: []byte("hello")}}
		k.commit(store.Change{Definition: publication("d", "1.0.0", 1), With: with})
		r, err := repo.Definition(k.ctx, "d", "1.0.0")
		k.ok(err)
		equal(k, r.Ordinal, 1)
		for id, version := range map[string]int64{"old": 2, "new": 1} {
			s, err := k.s.Writer.Load(k.ctx, id)
			k.ok(err)
			equal(k, s.Version, version)
		}
		specs, err := k.s.Waits.WaitSpecs(k.ctx, "placed")
		k.ok(err)
		equal(k, specs, []string{"s"})
		k.take(store.Signals, "hello")
	},
	"versions are published together, or none of them": func(k *testCase) {
		repo := k.repository()
		long := publication("d", "1.0.0", 1)
		long.Source = bytes.Repeat([]byte("Ω"), 200_000)
		all := []store.Change{
			{Definition: long, Audit: []store.Audit{audited(1)}},
			{Definition: publication("policy:d", "1.0.0", 1), Audit: []store.Audit{audited(2)}},
			{Definition: publication("d", "1.1.0", 2), Audit: []store.Audit{audited(3)}},
		}
		records := func() (n int) {
			for _, name := range []string{"d", "policy:d"} {
				r, err := repo.Versions(k.ctx, name, 0)
				k.ok(err)
				n += len(r)
			}
			return n
		}
		for _, clash := range []*store.Definition{publication("d", "1.0.0", 3), publication("d", "3.0.0", 2)} { // a version, an ordinal
			k.is(k.s.Writer.Commit(k.ctx, store.Change{With: append(slices.Clone(all), store.Change{Definition: clash})}), store.ErrDuplicate)
			created, err := repo.PutDefinitions(k.ctx, []definition.Record{record(all[0].Definition), record(all[1].Definition), record(all[2].Definition), record(clash)})
			k.ok(err)
			equal(k, created, false)
		}
		equal(k, records(), 0)
		k.commit(store.Change{With: all})
		equal(k, records(), 3)
		r, err := repo.Definition(k.ctx, "d", "1.0.0")
		k.ok(err)
		equal(k, len(r.Source), len(long.Source))
		page, err := k.s.Audit.Audit(k.ctx, backend.AuditQuery{})
		k.ok(err)
		equal(k, len(page.Items), 3)
		created, err := repo.PutDefinitions(k.ctx, []definition.Record{record(publication("d", "2.0.0", 3)), record(publication("e", "1.0.0", 1))})
		k.ok(err)
		equal(k, created, true)
		equal(k, records(), 4)
	},
	"a publication that is refused changes no instance": func(k *testCase) {
		k.repository()
		k.commit(turn("old", 1))
		k.commit(store.Change{Definition: publication("d", "1.0.0", 1)})
		hello := []store.Send{{Queue: store.Signals, Body: []byte("hello")}}
		for _, c := range []struct {
			change store.Change
			want   error
		}{
			{store.Change{Definition: publication("d", "1.0.0", 2), With: []store.Change{turn("old", 2)}, Send: hello}, store.ErrDuplicate},
			{store.Change{Definition: publication("d", "2.0.0", 1), With: []store.Change{turn("old", 2), turn("new", 1)}, Send: hello}, store.ErrDuplicate},
			{store.Change{Definition: publication("d", "2.0.0", 2), With: []store.Change{turn("new", 1), turn("old", 3)}, Send: hello}, store.ErrStale},
			{store.Change{Definition: publication("d", "2.0.0", 2), With: []store.Change{turn("old", 2), turn("old", 1)}, Send: hello}, store.ErrDuplicate},
		} {
			k.is(k.s.Writer.Commit(k.ctx, c.change), c.want)
		}
		s, err := k.s.Writer.Load(k.ctx, "old")
		k.ok(err)
		equal(k, s.Version, 1)
		_, err = k.s.Writer.Load(k.ctx, "new")
		k.is(err, store.ErrNotFound)
		k.empty(store.Signals)
		k.commit(store.Change{Definition: publication("d", "2.0.0", 2), With: []store.Change{turn("old", 2)}})
	},
	"a turn that was decided by an older policy is refused": func(k *testCase) {
		k.repository()
		by := func(c store.Change, ordinal int) store.Change {
			c.Rows.Policy = &engine.Policy{Name: "policy:d", Ordinal: ordinal}
			c.Send = []store.Send{{Queue: store.Signals, Body: []byte("hello")}}
			return c
		}
		k.commit(by(turn("a", 1), 0)) // there is none
		k.take(store.Signals, "hello")
		k.commit(store.Change{Definition: publication("policy:d", "1.0.0", 1)})
		k.commit(store.Change{Definition: publication("policy:other", "1.0.0", 1)})
		k.is(k.s.Writer.Commit(k.ctx, by(turn("a", 2), 0)), store.ErrStale)
		k.is(k.s.Writer.Commit(k.ctx, by(turn("b", 1), 0)), store.ErrStale) // the first turn of an instance, too
		_, err := k.s.Writer.Load(k.ctx, "b")
		k.is(err, store.ErrNotFound)
		k.empty(store.Signals)
		k.send(store.Send{Queue: store.Signals, Body: []byte("go")})
		d := k.receive(k.s, store.Signals)
		k.is(d.Commit(k.ctx, by(turn("a", 2), 0)), store.ErrStale)
		k.ok(d.Commit(k.ctx, by(turn("a", 2), 1))) // it still has its message
		k.commit(by(turn("b", 1), 1))
		s, err := k.s.Writer.Load(k.ctx, "a")
		k.ok(err)
		equal(k, s.Version, 2)
	},
	"versions that live are looked up, not counted": func(k *testCase) {
		for i, c := range []struct{ definition, version, status string }{
			{"d", "1.0.0", "completed"}, {"d", "1.1.0", "waiting"}, {"d", "1.1.0", "faulted"}, {"e", "1.2.0", "waiting"},
			{"d", "1.10.0", "suspended"}, {"d", "2.0.0", "running"}, {"d", "2.0.0", "completed"},
		} {
			change := turn(fmt.Sprint("a-", i), 1)
			row := change.Rows.Instance
			row.Definition, row.DefVersion, row.Status = c.definition, c.version, c.status
			if c.status == "completed" {
				row.EndedAt = at
			}
			k.commit(change)
		}
		versions := backend.LiveVersions(lookedUp{k.s.Instances})
		for definition, want := range map[string][]string{"d": {"1.1.0", "1.10.0", "2.0.0"}, "e": {"1.2.0"}, "f": nil} {
			got, err := versions(k.ctx, definition)
			k.ok(err)
			equal(k, got, want)
		}
		end := turn("a-4", 2)
		*end.Rows.Instance = projections.Instance{ID: "a-4", Definition: "d", DefVersion: "1.10.0", Status: "completed", Version: 2, StartedAt: at, UpdatedAt: at, EndedAt: at}
		k.commit(end)
		got, err := versions(k.ctx, "d")
		k.ok(err)
		equal(k, got, []string{"1.1.0", "2.0.0"})
	},
	"more versions than may live are refused": func(k *testCase) {
		got, err := backend.LiveVersions(endless{k.s.Instances})(k.ctx, "d")
		equal(k, got, nil)
		equal(k, problem.CodeOf(err), "definition.versions")
	},
	"of many first versions each has its own place": func(k *testCase) {
		const publishers = 8
		errs := make(chan error, publishers)
		for i := range publishers {
			go func() {
				errs <- k.s.Writer.Commit(k.ctx, store.Change{
					Definition: publication("d", string(rune('a'+i)), 1), With: []store.Change{turn(string(rune('a'+i)), 1)},
				})
			}()
		}
		won := 0
		for range publishers {
			if err := <-errs; err == nil {
				won++
			} else if !errors.Is(err, store.ErrDuplicate) {
				k.Error(err)
			}
		}
		equal(k, won, 1)
		page, err := k.s.Instances.Instances(k.ctx, backend.InstanceQuery{})
		k.ok(err)
		equal(k, len(page.Items), 1)
	},
}

func (k *testCase) repository() definition.Repository {
	repo, is := k.s.Store.(definition.Repository)
	if !is {
		k.Skip("the store keeps no definitions")
	}
	return repo
}

func record(d *store.Definition) definition.Record {
	return definition.Record{
		Name: d.Name, Version: d.Version, Digest: d.Digest, Kind: d.Kind, Source: d.Source, Document: d.Document, PublishedAt: d.PublishedAt, Ordinal: d.Ordinal,
	}
}

func publication(name, version string, ordinal int) *store.Definition {
	return &store.Definition{
		Name: name, Version: version, Digest: "aa", Kind: "openworkflow", Source: []byte("src"), Document: []byte(`{}`),
		PublishedAt: at, Ordinal: ordinal,
	}
}

// lookedUp reads no lists of instances.
type lookedUp struct{ backend.InstanceReader }

// Instances implements backend.InstanceReader.
func (lookedUp) Instances(context.Context, backend.InstanceQuery) (backend.Page[projections.Instance], error) {
	return backend.Page[projections.Instance]{}, errors.New("instances are listed")
}

// endless has a version behind every other.
type endless struct{ backend.InstanceReader }

// NextLive implements backend.InstanceReader.
func (endless) NextLive(_ context.Context, _, after string) (string, error) {
	if len(after) > 2*backend.MaxLiveVersions {
		return "", errors.New("nobody has stopped")
	}
	return after + "1", nil
}
