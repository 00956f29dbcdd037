package storetest

import (
	"context"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
)

// absent stands for a part that a store may lack: a case that uses it is skipped.
type absent struct {
	*testCase
	part string
}

// fill has the cases of the parts that a store lacks skipped.
func (k *testCase) fill(p store.Parts) store.Parts {
	if p.Ledger == nil {
		p.Ledger = absent{k, "Ledger"}
	}
	if p.Locks == nil {
		p.Locks = absent{k, "Locks"}
	}
	if p.Retention == nil {
		p.Retention = absent{k, "Retention"}
	}
	if p.Inbox == nil {
		p.Inbox = absent{k, "Inbox"}
	}
	if p.Backlog == nil {
		p.Backlog = absent{k, "Backlog"}
	}
	if p.Prober == nil {
		p.Prober = absent{k, "Prober"}
	}
	return p
}

func (a absent) skip() {
	a.Helper()
	a.Skipf("the store has no part %s", a.part)
}

func (a absent) Enter(store.Delivery) { a.skip() }
func (a absent) Leave(store.Delivery) { a.skip() }

func (a absent) Strays(context.Context, func(string) bool) (n int, err error) {
	a.skip()
	return
}

func (a absent) Lock(context.Context, string, time.Duration) (ok bool, err error) {
	a.skip()
	return
}

func (a absent) Unlock(context.Context, string) (err error) {
	a.skip()
	return
}

func (a absent) Purge(context.Context, time.Time, int) (n int, err error) {
	a.skip()
	return
}

func (a absent) KeepEvent(context.Context, store.Event) (err error) {
	a.skip()
	return
}

func (a absent) DropEvent(context.Context, string) (err error) {
	a.skip()
	return
}

func (a absent) KeptEvents(context.Context, string, time.Time, store.Event) (events []store.Event, err error) {
	a.skip()
	return
}

func (a absent) PurgeEvents(context.Context, time.Time, int) (n int, err error) {
	a.skip()
	return
}

func (a absent) Queues(context.Context) (queues []projections.Queue, err error) {
	a.skip()
	return
}

func (a absent) Gaps(context.Context) (gaps projections.Gaps, err error) {
	a.skip()
	return
}

func (a absent) Probe(context.Context) (err error) {
	a.skip()
	return
}
