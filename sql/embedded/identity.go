package embedded

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/files"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// identity implements backend.Identity.
type identity struct{ *sqlite.Store }

const (
	keyBytes = 32
	keyName  = "token-key"
)

// Key implements backend.Identity.
func (s identity) Key(ctx context.Context) ([]byte, error) {
	fresh := make([]byte, keyBytes)
	if _, err := rand.Read(fresh); err != nil {
		return nil, wrap("key", err)
	}
	var key []byte
	err := s.Write(ctx, func(t sqlite.Tx) error {
		if _, _, err := t.Exec("meta_insert", keyName, fresh); err != nil {
			return err
		}
		row, err := t.Conn().One("meta_value", 1, keyName)
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

// Epoch implements backend.Identity.
func (s identity) Epoch(ctx context.Context) (epoch int64, err error) {
	err = s.Write(ctx, func(t sqlite.Tx) error {
		epoch, err = epochOf(t.Conn())
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

// Raise implements backend.Identity. A node takes its name in a transaction and reads
// the epoch after it: it is seen here, or sees the new one.
func (s identity) Raise(ctx context.Context) (from, to int64, err error) {
	err = s.Write(ctx, func(t sqlite.Tx) error {
		nodes, err := files.Live(s.Path())
		if err != nil {
			return err
		}
		if nodes > 1 { // beside this one
			return backend.NotAlone(nodes - 1)
		}
		if from, err = epochOf(t.Conn()); err != nil {
			return err
		}
		to = backend.NextEpoch(from, s.Now())
		_, _, err = t.Exec("meta_insert", epochName+strconv.FormatInt(to, 10), binary.BigEndian.AppendUint64(nil, uint64(to)))
		return err
	})
	return from, to, wrap("raise", err)
}
