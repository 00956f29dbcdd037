package ctk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/embedded"
	"github.com/aqueduct-engine/aqueduct/sql/oracle"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// nodeVariable makes the test binary a node that does one job.
const nodeVariable = "AQUEDUCT_CTK_NODE"

// TestMain lets the test binary be a node: a process that can be killed.
func TestMain(m *testing.M) {
	if os.Getenv(nodeVariable) == "" {
		os.Exit(m.Run())
	}
	if err := child(); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

// job is what one process does: it publishes a definition, begins an instance
// of it unless that was done before, and works until the instance has ended or
// the process has made so many commits.
type job struct {
	Place      string // a path of SQLite, or a data source name of Oracle
	Stub       string // address of what the kit calls
	Definition string
	Instance   string
	Input      json.RawMessage
	KillAfter  int64 // commits; 0 = none
}

// limit bounds one process.
const limit = 10 * time.Minute

// errKilled says that a process was killed where its job said.
var errKilled = errors.New("killed")

// process runs a job in a process of its own.
func (j job) process(ctx context.Context) error {
	in, err := json.Marshal(j)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), nodeVariable+"=1")
	cmd.Stdin = bytes.NewReader(in)
	var said bytes.Buffer
	cmd.Stderr = &said
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == -1 && j.KillAfter > 0 {
		return errKilled
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	return nil
}

// child is that process.
func child() error {
	var j job
	if err := json.NewDecoder(os.Stdin).Decode(&j); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	db, err := openDatabase(ctx, j.Place)
	if err != nil {
		return err
	}
	defer db.Close()
	performer := activity.New(activity.Config{Transport: toStub(j.Stub)})
	defer performer.Close()
	catalogue := definition.New(db, openworkflow.Parsers(), time.Now)
	catalogue.ResolveWith(performer)
	stored, _, err := catalogue.Publish(ctx, "scenario.yaml", []byte(j.Definition))
	if err != nil {
		return err
	}
	parts := db.Parts()
	m := &mortal{Receiver: parts.Queue, Writer: parts.Writer, Ledger: parts.Ledger, after: j.KillAfter}
	parts.Queue, parts.Writer, parts.Ledger = m, m, m
	rt, err := runtime.New(ctx, runtime.Config{
		Store: parts, Definitions: catalogue, Performer: performer, Now: time.Now,
		SignalConsumers: 2, ScheduleConsumers: 2, CommandConsumers: 2,
	})
	if err != nil {
		return err
	}
	work, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- rt.Run(work) }()
	start := signal.Start{Definition: stored.Name, Version: stored.Version, Input: j.Input}
	if _, _, err = rt.Start(ctx, j.Instance, start, nil); err == nil {
		err = ended(ctx, db, j.Instance)
	}
	stop()
	return errors.Join(err, <-done)
}

// ended waits until an instance has ended.
func ended(ctx context.Context, db database, id string) error {
	for {
		s, err := db.Parts().Writer.Load(ctx, id)
		if err != nil || s.Status.Closed() || s.Status == snapshot.Faulted {
			return err
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("instance %s is %s and has not ended: %w", id, s.Status, ctx.Err())
		}
	}
}

// database is what a node needs of its store.
type database interface {
	backend.Store
	definition.Repository
}

func openDatabase(ctx context.Context, place string) (database, error) {
	if strings.HasPrefix(place, "user=") {
		return oracle.Open(ctx, oracle.Options{
			DSN: place, Consumers: 2, Wait: time.Second, Heartbeat: 200 * time.Millisecond, DeadAfter: time.Second,
		})
	}
	return embedded.Open(ctx, sqlite.Options{Path: place})
}

// mortal is a store that kills the process after so many commits.
type mortal struct {
	store.Receiver
	store.Writer
	store.Ledger
	made  atomic.Int64
	after int64
}

func (m *mortal) count(err error) error {
	if err == nil && m.made.Add(1) == m.after {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return err
}

func (m *mortal) Commit(ctx context.Context, c store.Change) error {
	return m.count(m.Writer.Commit(ctx, c))
}

func (m *mortal) Receive(ctx context.Context, q store.Queue, arrived func(store.Message)) (store.Delivery, error) {
	d, err := m.Receiver.Receive(ctx, q, arrived)
	if err != nil {
		return nil, err
	}
	return &mortalDelivery{d, m}, nil
}

func (m *mortal) Enter(d store.Delivery) { m.Ledger.Enter(d.(*mortalDelivery).Delivery) }
func (m *mortal) Leave(d store.Delivery) { m.Ledger.Leave(d.(*mortalDelivery).Delivery) }

type mortalDelivery struct {
	store.Delivery
	m *mortal
}

func (d *mortalDelivery) Commit(ctx context.Context, c store.Change) error {
	return d.m.count(d.Delivery.Commit(ctx, c))
}
