package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/files"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Parts implements store.Store: those of the kernel; sql/embedded has all.
// Deliveries are rows: a commit deletes any number.
func (s *Store) Parts() store.Parts {
	return store.Parts{
		Queue: s, Writer: s, Streams: s, Identity: identity{s}, Nodes: s, Clock: s, Joins: true, Ledger: s, Prober: s,
	}
}

// Node implements store.Nodes.
func (s *Store) Node() string { return s.node }

// PeerFailures implements store.Nodes. Several failures may give one value.
func (s *Store) PeerFailures() <-chan struct{} { return s.failed }

// Orphans implements store.Nodes. A node that was started again under the
// same name is another run: what the run before claimed is an orphan.
func (s *Store) Orphans(ctx context.Context, limit int) (int, error) {
	count := 0
	err := s.do(ctx, func(t *tx) error {
		count = 0
		rows, err := nodeRows(t.w.c)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if r.no == s.nodes.no || count >= limit {
				continue
			}
			alive, f := s.nodes.Probe(r.no)
			if f != nil {
				f.Close() // a dead node's messages are returned by check
			}
			hangs := alive && s.nodes.Hangs(r.no)
			if alive && !hangs {
				continue
			}
			n, err := orphans(t, r.no, limit-count)
			if err != nil {
				return err
			}
			count += n
			if n == 0 && f == nil && !hangs {
				t.wrote = true
				if err := giveBack(t.w.c, r.no); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return 0, wrap("orphans", err)
	}
	return count, nil
}

func orphans(t *tx, node int64, limit int) (int, error) {
	type command struct {
		entry    int64
		id       string
		attempts int64
	}
	var list []command
	err := t.w.c.Query("stream_orphans", 3, func(r []driver.Value) error {
		var c command
		c.entry, _ = r[0].(int64)
		c.id, _ = r[1].(string)
		c.attempts, _ = r[2].(int64)
		list = append(list, c)
		return nil
	}, node, int64(limit))
	if err != nil {
		return 0, err
	}
	now := conn.FromMicros(t.now)
	for _, c := range list {
		if err := t.guard(store.ErrTaken, "stream_orphan", c.entry, node); err != nil {
			return 0, err
		}
		body, err := signal.ForCommand(c.id, c.entry&(1<<PositionBits-1), int(c.attempts), now, time.Time{}).Encode()
		if err != nil {
			return 0, err
		}
		t.out.send(store.Send{Queue: store.Commands, Body: body})
	}
	return len(list), nil
}

// identity implements store.Identity.
type identity struct{ *Store }

const keyBytes = 32

// Key implements store.Identity.
func (s identity) Key(ctx context.Context) ([]byte, error) {
	fresh := make([]byte, keyBytes)
	if _, err := rand.Read(fresh); err != nil {
		return nil, wrap("key", err)
	}
	var key []byte
	err := s.do(ctx, func(t *tx) error {
		if _, _, err := t.exec("meta_insert", "token-key", fresh); err != nil {
			return err
		}
		row, err := t.w.c.One("meta_value", 1, "token-key")
		if err != nil {
			return err
		}
		if key, _ = row[0].([]byte); len(key) != keyBytes {
			return fmt.Errorf("the key has %d bytes", len(key))
		}
		return nil
	})
	return key, wrap("key", err)
}

// Each restore has a row of WF_META: the name begins with this, the value is the
// epoch, eight bytes, the highest first. The first epoch has none.
const epochName = "epoch-"

// Epoch implements store.Identity.
func (s identity) Epoch(ctx context.Context) (epoch int64, err error) {
	err = s.do(ctx, func(t *tx) error {
		epoch, err = epochOf(t.w.c)
		return err
	})
	return epoch, wrap("epoch", err)
}

func epochOf(c *conn.Conn) (int64, error) {
	row, err := c.One("meta_epoch", 1)
	if err != nil || row == nil {
		return 1, err
	}
	value, _ := row[0].([]byte)
	if len(value) != 8 {
		return 0, fmt.Errorf("the epoch has %d bytes", len(value))
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}

// Raise implements store.Identity. A node takes its name in a transaction and reads
// the epoch after it: it is seen here, or sees the new one.
func (s identity) Raise(ctx context.Context) (from, to int64, err error) {
	err = s.do(ctx, func(t *tx) error {
		nodes, err := files.Live(s.path)
		if err != nil {
			return err
		}
		if nodes > 1 { // beside this one
			return store.NotAlone(nodes - 1)
		}
		if from, err = epochOf(t.w.c); err != nil {
			return err
		}
		to = store.NextEpoch(from, s.now())
		_, _, err = t.exec("meta_insert", epochName+strconv.FormatInt(to, 10), binary.BigEndian.AppendUint64(nil, uint64(to)))
		return err
	})
	return from, to, wrap("raise", err)
}

// Now implements store.Clock.
func (s *Store) Now() time.Time { return s.now() }
