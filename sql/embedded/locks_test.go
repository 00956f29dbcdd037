package embedded

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
)

// A lock is taken from who is gone also when the host's clock was set back since: it would
// be kept until the clock comes there again. One that may have been taken just now stays.
func TestALockOutlivesNoClockThatWasSetBack(t *testing.T) {
	t.Parallel()
	s := must(Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "a.db")}))
	defer s.Close()
	const ttl = time.Minute
	for left, want := range map[time.Duration]bool{time.Hour: true, ttl: false, -time.Second: true} {
		name := left.String()
		err := s.Write(t.Context(), func(tx sqlite.Tx) error {
			_, _, err := tx.Exec("lock_take", name, "gone", tx.Now()+left.Microseconds(), tx.Now())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if taken, err := s.Parts().Locks.Lock(t.Context(), name, ttl); err != nil || taken != want {
			t.Errorf("a lock that is kept for %s yet is taken for %s: %t, not %t: %v", left, ttl, taken, want, err)
		}
	}
}
