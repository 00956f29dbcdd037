package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		fmt.Fprintln(os.Stderr, child(path))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func TestStore(t *testing.T) {
	storetest.Run(t, harness)
}

func harness(t *testing.T) storetest.Harness {
	path := filepath.Join(t.TempDir(), "aqueduct.db")
	return storetest.Harness{
		Open: func(ctx context.Context, node string) (store.Full, error) {
			s, err := Open(ctx, Options{Path: path, Node: node})
			if err != nil {
				return nil, err
			}
			return s, nil
		},
		Kill: func(s store.Full) { s.(*Store).kill() },
		Damage: func(id string) error {
			c, err := openConn(dsn(path, ""))
			if err != nil {
				return err
			}
			defer c.close()
			return c.script("update WF_RUNTIME_STATES set STATE_JSON = replace(STATE_JSON, '\"a\":1', '\"a\":2') where INSTANCE_ID = '" + id + "'")
		},
	}
}

// kill ends s as the death of its process would: nothing is given back, and
// the kernel drops the locks.
func (s *Store) kill() {
	s.nodes.died.Store(true)
	s.Close()
}
