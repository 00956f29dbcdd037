package sqlite

import (
	"embed"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/embedded/schema"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
)

// queued is the store with what a benchmark asks of it: messages and changes.
type queued struct{ *Store }

func (s queued) Parts() backend.Parts {
	return backend.Parts{Queue: s, Writer: s, Joins: true, Ledger: s, Nodes: s, Clock: s}
}

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) backend.Store {
		s, err := Open(b.Context(), Options{Schema: schema.Tables{}, Path: filepath.Join(b.TempDir(), "a.db"), Node: "node-a"})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			b.Logf("N=%d %+v", b.N, s.Stats())
			s.Close()
		})
		return queued{s}
	})
}

// BenchmarkBaseline is the bare loop that a step is measured against: the same rows, written by one goroutine with
// prepared statements, a commit for every 64 of them. Preparing the values is not counted.
func BenchmarkBaseline(b *testing.B) {
	for _, group := range []int{64, 1} {
		b.Run(fmt.Sprint("step-", group), func(b *testing.B) { baseline(b, group) })
	}
}

func baseline(b *testing.B, group int) {
	s, err := Open(b.Context(), Options{Schema: schema.Tables{}, Path: filepath.Join(b.TempDir(), "a.db"), Node: "node-a"})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	w := newWriter(s, must(OpenWriter(Options{Path: s.path, Cache: DefaultCache, Statements: []embed.FS{Statements}})), Options{Batch: 64})
	defer w.c.Close()
	const instances = 512
	list := make([]*snapshot.Snapshot, instances)
	for i := range list {
		list[i] = &snapshot.Snapshot{InstanceID: fmt.Sprintf("0190%032d", i), Status: snapshot.Waiting,
			State: snapshot.State{Context: storetest.StepState}, Definition: snapshot.Definition{Name: "default/d", Version: "1.0.0", Digest: "00"}}
		c := storetest.Step(list[i], "node-a")
		if err := s.Commit(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
	check := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += group {
		b.StopTimer()
		changes := make([]store.Change, group)
		for j := range changes {
			changes[j] = storetest.Step(list[(i+j)%instances], "node-a")
		}
		b.StartTimer()
		_, _, err := w.c.Exec("begin")
		check(err)
		for j := range changes {
			bare(w.c, &changes[j], int64((i+j)%instances+1), check)
		}
		_, _, err = w.c.Exec("commit")
		check(err)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

func bare(c *conn.Conn, m *store.Change, no int64, check func(error)) {
	s, r := m.Snapshot, m.Runtime
	run := func(name string, args ...any) {
		_, n, err := c.Exec(name, args...)
		check(err)
		if n != 1 {
			check(fmt.Errorf("%s changed %d rows", name, n))
		}
	}
	run("state_update", s.Version, nil, nil, r.LastSignalID, r.ExecutedBy, r.ExecutedAt.UnixMicro(), r.ExecutedAt.UnixMicro(),
		projections.Sum(m.Encoded), m.Encoded, no, s.InstanceID, s.Version-1)
	run("stream_settle", r.ExecutedAt.UnixMicro(), no<<PositionBits|m.Rows.Settled[0].Position, false)
	i := m.Rows.Instance
	run("instance_update", i.DefVersion, i.Status, i.Position, i.Version, nil, nil, i.UpdatedAt.UnixMicro(), nil, no)
	for j := range m.Rows.Stream {
		e := &m.Rows.Stream[j]
		var processed, owner any
		if e.Processed != nil {
			processed, owner = int64(0), int64(1)
		}
		run("stream_insert", no<<PositionBits|e.Position, e.Kind, e.Direction, e.Type, conn.Text(e.SignalID), e.CreatedAt.UnixMicro(), processed, nil,
			owner, int64(0), nil, nil, e.Data, nil)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
