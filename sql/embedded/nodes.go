package embedded

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/files"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Runs notes which version of the program this node runs.
func (s *Store) Runs(ctx context.Context, version string) error {
	return wrap("version of the node", s.Write(ctx, func(t sqlite.Tx) error {
		_, _, err := t.Exec("node_version", version, s.Number())
		return err
	}))
}

// Members implements backend.NodeReader. A node with others on the database touches its file
// all the time; one that is alone has nobody else to tell, and is the one that is asked.
func (s *Store) Members(ctx context.Context) ([]backend.Node, error) {
	found, err := sqlite.List[struct {
		No int64 `db:"NODE_NO"`
		backend.Node
	}](ctx, s.Store, read("node_members", backend.MaxCount, projections.MaxLimit))
	var all []backend.Node
	for _, f := range found {
		n := f.Node
		if n.SeenAt = s.Now(); f.No != s.Number() {
			if n.SeenAt, err = s.seen(ctx, f.No); errors.Is(err, fs.ErrNotExist) {
				err = nil
				continue // it has left, or is dead
			}
		}
		if err != nil {
			break
		}
		all = append(all, n)
	}
	return all, wrap("nodes", err)
}

// seen is when another node gave a sign of life last. One that was alone until now gets the
// time to notice that it is not.
func (s *Store) seen(ctx context.Context, no int64) (time.Time, error) {
	for wait := noticed; ; wait = 0 {
		info, err := os.Stat(filepath.Join(files.Folder(s.Path()), strconv.FormatInt(no, 10)+".node"))
		if err != nil {
			return time.Time{}, err
		}
		if at := info.ModTime(); wait == 0 || time.Since(at) < wait {
			return at, nil
		}
		select {
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// noticed is how long a node may take to notice another one and touch its file: some
// heartbeats of package files.
const noticed = 500 * time.Millisecond
