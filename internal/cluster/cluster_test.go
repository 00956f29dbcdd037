package cluster

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/cluster/history"
)

// Bounds of the steady node's memory. Growth is between the middle of the
// second quarter of the run and of the last: Go collects when its heap has
// grown fourfold, so that single samples jump.
const (
	residentMax = 256 // MiB, of any node at any time
	grownMax    = 32  // MiB
)

// Three nodes, three producers, and trouble: two of the nodes are killed again
// and again, all sessions break in the server, the server restarts twice. In the
// end every committed signal was applied exactly once.
func TestCluster(t *testing.T) {
	t.Parallel()
	length, seed := settings(t)
	b := newTestCluster(t)
	slots := []*slot{b.slot("a"), b.slot("b"), b.slot("steady")}
	all := b.produce(3, seed, 50*time.Millisecond)
	memory := watch(slots)
	begun := time.Now()
	n := b.trouble(slots[:2], seed, length)
	log := all.stop()
	active := time.Since(begun)
	settling := b.settled(2 * time.Minute)
	samples := memory()
	var stops []time.Duration
	for _, s := range slots {
		stops = append(stops, s.stop())
	}
	state := b.judge(log)
	left := b.sessionsLeft()
	if left != "0" {
		t.Errorf("%s sessions are left behind", left)
	}
	steady := slots[2]
	if steady.lives != 1 {
		t.Errorf("the node that nobody killed has ended %d times: %s", steady.lives-1, steady.last)
	}
	flat(t, samples)
	outcomes := map[history.Outcome]int{}
	for _, s := range log {
		outcomes[s.Outcome]++
	}
	applied := 0
	for _, i := range state.Instances {
		applied += len(i.Received)
	}
	t.Logf("report: cluster: seed %d, %.0f s of trouble, settled %.1f s later", seed, active.Seconds(), settling.Seconds())
	t.Logf("report: cluster: %d signals committed, %d rolled back, %d of unknown outcome; %d applied to %d instances, %.0f a second",
		outcomes[history.Committed], outcomes[history.RolledBack], outcomes[history.Unknown], applied, len(state.Instances), float64(applied)/active.Seconds())
	t.Logf("report: cluster: %d nodes killed, sessions killed %d times, server restarted %d times; %d starts failed meanwhile; stops took %s",
		n.nodes, n.sessions, n.restarts, slots[0].fails+slots[1].fails, stops)
	if n.nodes == 0 || applied < 100 {
		t.Errorf("%d nodes killed and %d signals applied prove nothing", n.nodes, applied)
	}
}

// settings are the length of the run and its seed.
func settings(t *testing.T) (time.Duration, uint64) {
	t.Helper()
	seconds := 60
	if testing.Short() {
		seconds = 20
	}
	seed := rand.Uint64()
	for name, set := range map[string]func(uint64){
		"AQUEDUCT_CLUSTER_SECONDS": func(n uint64) { seconds = int(n) },
		"AQUEDUCT_CLUSTER_SEED":    func(n uint64) { seed = n },
	} {
		text := os.Getenv(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		set(n)
	}
	t.Logf("AQUEDUCT_CLUSTER_SEED=%d AQUEDUCT_CLUSTER_SECONDS=%d", seed, seconds)
	return time.Duration(seconds) * time.Second, seed
}

// troubles counts what was done to the cluster.
type troubles struct{ nodes, sessions, restarts int }

// trouble lasts for a time. The server restarts after a third and two thirds.
func (b *testCluster) trouble(slots []*slot, seed uint64, length time.Duration) troubles {
	b.t.Helper()
	random := rand.New(rand.NewPCG(seed, 1000))
	var n troubles
	begun := time.Now()
	for time.Since(begun) < length {
		time.Sleep(time.Duration(500+random.IntN(2500)) * time.Millisecond)
		due := int(3 * time.Since(begun) / length)
		switch {
		case b.server != nil && n.restarts < min(due, 2):
			b.restart(time.Duration(random.IntN(2000)) * time.Millisecond)
			n.restarts++
		case b.server != nil && random.IntN(3) == 0:
			if _, err := b.standIn.Kill(b.t.Context()); err != nil {
				b.t.Fatal(err)
			}
			n.sessions++
		default:
			if node := slots[random.IntN(len(slots))].now(); node != nil {
				node.Kill()
				n.nodes++
			}
		}
	}
	return n
}

// restart stops the server for a time and starts it again.
func (b *testCluster) restart(down time.Duration) {
	b.t.Helper()
	if err := b.server.Halt(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	time.Sleep(down)
	if err := b.server.Resume(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// watch samples the memory of nodes twice a second until the result is called:
// one series for each slot.
func watch(slots []*slot) func() [][]float64 {
	series := make([][]float64, len(slots))
	quit := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			for i, s := range slots {
				if n := s.now(); n != nil {
					series[i] = append(series[i], float64(n.Resident())/(1<<20))
				}
			}
		}
	})
	return func() [][]float64 { close(quit); done.Wait(); return series }
}

// flat checks the memory: no node ever had more than the limit, and the one that
// lived all the time has not grown.
func flat(t *testing.T, series [][]float64) {
	t.Helper()
	most := 0.0
	for _, s := range series {
		most = max(most, slices.Max(append(s, 0)))
	}
	steady := series[len(series)-1]
	if len(steady) < 8 {
		t.Fatalf("only %d samples of the steady node", len(steady))
	}
	quarter := len(steady) / 4
	early, late := median(steady[quarter:2*quarter]), median(steady[3*quarter:])
	t.Logf("report: cluster: memory of the node that lived throughout: %.0f MiB in the second quarter, %.0f MiB in the last (bound: %d MiB more); most of any node %.0f MiB (bound %d)",
		early, late, grownMax, most, residentMax)
	if late-early > grownMax || most > residentMax {
		t.Errorf("memory is not flat: %s", fmt.Sprint(steady))
	}
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
