// Command chaos puts several nodes on one database into every trouble that it
// knows while clients work with them, lets them recover, and judges what has
// become of it: nothing that was acknowledged is lost, nothing is done twice,
// nobody is starved. See docs/verification.md.
//
//	go run ./internal/chaos -time 5m -seed 7 -store sqlite,oracle
//
// The seed decides what is done when, and to whom; the moments at which nodes
// and databases get to it are their own. Package judge, which shares no code
// with the engine, says what is wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

// Bounds of a run.
const (
	starvedAfter = time.Minute      // a small work, with every trouble and an open breaker (30 s) on its way
	settleMax    = 60 * time.Second // until everything is completed when the faults have ended
	fullRound    = 45 * time.Second // a run that is longer has everything in it
)

// clients is how many work at once, by kind.
var clients = map[string]int{small: 4, order: 2, retry: 1, mended: 1, human: 1, listening: 1, family: 1, fork: 1, each: 1}

func main() {
	length := flag.Duration("time", 5*time.Minute, "how long there is trouble, on all stores together")
	seed := flag.Uint64("seed", 0, "decides what is done when; 0: a random one")
	stores := flag.String("store", "sqlite,oracle", "stores, separated by commas")
	nodes := flag.Int("nodes", 3, "nodes on a database")
	memory := flag.Int64("memory", 512, "MiB that a node may have; the kernel sees to it where this user may make control groups")
	logs := flag.String("logs", "", "folder to keep what nodes log; empty: it is deleted")
	expected := flag.String("known", strings.Join(known, ","), "kinds of anomalies that are reported and do not fail the run, separated by commas")
	flag.Parse()
	if *seed == 0 {
		*seed = rand.Uint64N(1 << 32)
	}
	ok := true
	list := strings.Split(*stores, ",")
	var rows []string
	for _, name := range list {
		r, err := run(context.Background(), options{
			store: name, seed: *seed, length: *length / time.Duration(len(list)), nodes: *nodes, memory: *memory << 20, logs: *logs, known: strings.Split(*expected, ","),
		})
		if err != nil {
			fmt.Fprintf(os.Stderr, "chaos: %s: %v\n", name, err)
			os.Exit(1)
		}
		r.print(os.Stdout)
		ok = ok && r.ok()
		rows = append(rows, r.row())
	}
	fmt.Println(tableHead)
	fmt.Println(strings.Join(rows, "\n"))
	if !ok {
		os.Exit(1)
	}
}

// options say what a run is.
type options struct {
	store  string
	seed   uint64
	length time.Duration
	nodes  int
	memory int64 // of a node, in bytes
	logs   string
	known  []string
}

func run(ctx context.Context, o options) (*report, error) {
	dir, err := os.MkdirTemp("", "aqueduct-chaos-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	program, err := build(ctx, dir)
	if err != nil {
		return nil, err
	}
	var p place
	switch o.store {
	case "sqlite":
		p, err = newFile(dir, o.length)
	case "oracle":
		p, err = newSchema(ctx)
	default:
		err = fmt.Errorf("%q is no store: write sqlite or oracle", o.store)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := p.close(); err != nil {
			fmt.Fprintln(os.Stderr, "chaos:", err)
		}
	}()
	logs := dir
	if o.logs != "" {
		logs = o.logs
		if err := os.MkdirAll(logs, 0o700); err != nil {
			return nil, err
		}
	}
	b := newFixture(p, program, logs, o)
	r, err := b.play(ctx, o)
	for _, s := range b.slots {
		if e := s.close(); e != nil && err == nil {
			err = e
		}
	}
	return r, err
}

// play is the run: work, trouble, recovery, judgement.
func (b *fixture) play(ctx context.Context, o options) (*report, error) {
	defer b.a.server.Close()
	defer b.b.server.Close()
	starting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := b.deploy(starting); err != nil {
		return nil, err
	}
	fmt.Printf("chaos: %s: seed %d, %s, %d nodes\n", o.store, o.seed, o.length, o.nodes)
	ctx, over := context.WithTimeoutCause(ctx, 2*o.length+2*settleMax, errors.New("the run does not end: no node works again"))
	defer over()
	working, quit := context.WithCancel(ctx)
	finish, give := context.WithCancel(ctx)
	defer give()
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.employ(working, finish, o.seed)
	}()
	b.trouble(ctx, plan(o.seed, o.length, b.names()))
	quit()
	b.wake()
	begun := time.Now()
	select {
	case <-done:
	case <-time.After(settleMax):
		give()
		<-done
	}
	if err := b.settled(ctx, begun.Add(settleMax)); err != nil {
		return nil, err
	}
	settling := time.Since(begun)
	b.verify(ctx, "everything")
	b.remade(ctx)
	ending, cancel := context.WithTimeout(ctx, time.Minute+time.Duration(len(b.works))*10*time.Millisecond)
	defer cancel()
	h, err := b.history(ending)
	if err != nil {
		return nil, err
	}
	return b.report(o, h, settling), nil
}
