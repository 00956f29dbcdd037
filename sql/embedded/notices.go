package embedded

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// notices implements backend.Notices. A trigger of the schema writes them with their
// dead letters.
type notices struct{ *sqlite.Store }

// noticeEvery is how often who waits looks: a process cannot hear what another
// one on the file commits.
const noticeEvery = time.Second

// Next implements backend.Notices.
func (s notices) Next(ctx context.Context, wait time.Duration) (backend.Notice, error) {
	until := time.Now().Add(wait)
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return backend.Notice{}, ctx.Err()
		case <-again.C:
		}
		n, err := sqlite.One[backend.Notice](ctx, s.Store, read("notice_next"))
		if !errors.Is(err, store.ErrNotFound) || !time.Now().Before(until) {
			return n, wrap("notices", err)
		}
		again.Reset(noticeEvery)
	}
}

// Told implements backend.Notices.
func (s notices) Told(ctx context.Context, n backend.Notice) error {
	no, err := strconv.ParseInt(n.Ref, 10, 64)
	if err != nil {
		return wrap("notice", err)
	}
	return wrap("notice "+n.Ref, s.Write(ctx, func(t sqlite.Tx) error {
		_, _, err := t.Exec("notice_delete", no)
		return err
	}))
}
