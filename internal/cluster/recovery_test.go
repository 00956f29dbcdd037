package cluster

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// recovery is a way to fail and to come back. Times are counted from the event
// where others go on, and from the return where nobody could.
type recovery struct {
	name   string
	breaks bool // the server, which no test does to a named database
	event  func(*fleet)
	back   func(*fleet) // nil = the others go on
}

// fleet is the nodes of a recovery test; a node that died is not replaced
// unless the test does it.
type fleet struct {
	b     *testCluster
	nodes []*node
	made  int
}

func (f *fleet) start(n int) {
	for range n {
		f.made++
		f.nodes = append(f.nodes, f.b.must(fmt.Sprintf("n%d", f.made)))
	}
}

func (f *fleet) kill(n int) {
	for _, node := range f.nodes[:n] {
		node.Signal(syscall.SIGKILL)
	}
	for _, node := range f.nodes[:n] {
		<-node.Ended
	}
	f.nodes = f.nodes[n:]
}

func (f *fleet) halt() {
	if err := f.b.server.Halt(f.b.t.Context()); err != nil {
		f.b.t.Fatal(err)
	}
}

func (f *fleet) resume() {
	if err := f.b.server.Resume(f.b.t.Context()); err != nil {
		f.b.t.Fatal(err)
	}
}

// downtime is how long things stay down.
const downtime = 2 * time.Second

// A12: after every failure the cluster goes on by itself, and nothing is lost
// or applied twice. The times are printed, not asserted: a test that fails on a
// slow machine proves nothing.
func TestRecovery(t *testing.T) {
	t.Parallel()
	_, seed := settings(t)
	b := newTestCluster(t)
	f := &fleet{b: b}
	f.start(3)
	all := b.produce(2, seed, 20*time.Millisecond)
	for _, r := range []recovery{
		{name: "one node down", event: func(f *fleet) { f.kill(1) }},
		{name: "all nodes down", event: func(f *fleet) { f.kill(len(f.nodes)) }, back: func(f *fleet) { f.start(1) }},
		{name: "database down", breaks: true, event: (*fleet).halt, back: (*fleet).resume},
		{name: "everything down", breaks: true, event: func(f *fleet) { f.halt(); f.kill(len(f.nodes)) },
			back: func(f *fleet) { f.resume(); f.start(1) }},
	} {
		if r.breaks && b.server == nil {
			t.Logf("report: recovery: %s: NOT TRIED on a named database", r.name)
			continue
		}
		f.recover(r, all)
		f.start(3 - len(f.nodes))
	}
	log := all.stop()
	b.settled(time.Minute)
	for _, n := range f.nodes {
		n.stop(b)
	}
	b.judge(log)
	if left := b.sessionsLeft(); left != "0" {
		t.Errorf("%s sessions are left behind", left)
	}
}

// recover lets things fail, and measures until a signal is applied again, and
// until everything is applied whose commit was confirmed before.
func (f *fleet) recover(r recovery, all *producers) {
	f.b.t.Helper()
	f.b.eventually("signals are applied", time.Minute, func() bool { return f.b.applied() > 50 })
	before := all.committed()
	r.event(f)
	from := time.Now()
	if r.back != nil {
		time.Sleep(downtime)
		from = time.Now()
		r.back(f)
	}
	last := f.b.applied()
	f.b.eventually(r.name+": the next signal", time.Minute, func() bool {
		n := f.b.applied()
		if last < 0 {
			last = n // the database has only now answered
		}
		return last >= 0 && n > last
	})
	first := time.Since(from)
	f.b.eventually(r.name+": all that was committed before", time.Minute, func() bool { return f.b.received(before) })
	f.b.t.Logf("report: recovery: %s: next signal applied %.2f s after it, all %d committed before applied after %.2f s",
		r.phrase(), first.Seconds(), len(before), time.Since(from).Seconds())
}

func (r recovery) phrase() string {
	if r.back == nil {
		return r.name
	}
	return r.name + " for " + downtime.String() + " and back"
}

// applied counts the signals in all streams; -1 while the database is down.
func (b *testCluster) applied() int {
	return b.count("select count(*) from WF_STREAM where TYPE = 'ExternalSignal'")
}

// received says whether all these signals are in streams.
func (b *testCluster) received(ids map[string]bool) bool {
	rows, err := b.pool.Query("select SIGNAL_ID from WF_STREAM where TYPE = 'ExternalSignal'")
	if err != nil {
		return false
	}
	defer rows.Close()
	found := 0
	for rows.Next() {
		var id string
		if rows.Scan(&id) != nil {
			return false
		}
		if ids[id] {
			found++
		}
	}
	return rows.Err() == nil && found == len(ids)
}
