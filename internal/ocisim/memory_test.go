package ocisim_test

import (
	"database/sql"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/godror/godror"
)

// resident is the memory of the process, in KiB.
func resident(t testing.TB) int {
	t.Helper()
	debug.FreeOSMemory() // Go's own garbage is not meant
	status, err := os.ReadFile("/proc/self/status")
	must(t, err)
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); f[0] == "VmRSS:" {
			n, err := strconv.Atoi(f[1])
			must(t, err)
			return n
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// What a turn does leaves no memory behind: a value of 100 kB that stayed would
// be 45 MB. The driver leaks the correlation of
// a message, so there is none.
func TestMemoryStaysFlat(t *testing.T) {
	_, db := open(t)
	newQueue(t, db, 1000000)
	exec(t, db, `CREATE TABLE t (id NUMBER(10) PRIMARY KEY, body BLOB)`)
	conn, err := db.Conn(t.Context())
	must(t, err)
	defer conn.Close()
	in, out := queue(t, conn, "Q"), queue(t, conn, "Q")
	defer in.Close()
	defer out.Close()
	body := make([]byte, 100_000)
	turn := func(i int) {
		tx := begin(t, conn)
		must(t, out.Enqueue([]godror.Message{message("x")}))
		var n int
		exec(t, tx, `BEGIN INSERT INTO t (id, body) VALUES (:1, :2); :3 := SQL%ROWCOUNT; END;`, i, body, sql.Out{Dest: &n})
		one[[]byte](t, tx, `SELECT body FROM t WHERE id = :1`, i)
		if _, err := tx.Exec(`INSERT INTO t (id) VALUES (:1)`, i); err == nil {
			t.Fatal("twice")
		}
		must(t, tx.Commit())
		tx = begin(t, conn)
		var m [1]godror.Message
		k, err := in.DequeueWithOptions(m[:], waiting(0))
		must(t, err)
		equal(t, "messages", k, 1)
		if i%3 == 0 {
			must(t, tx.Rollback())
			return
		}
		exec(t, tx, `DELETE FROM t WHERE id = :1`, i)
		must(t, tx.Commit())
	}
	for i := range 150 {
		turn(i)
	}
	before := resident(t)
	for i := range 450 {
		turn(1000 + i)
	}
	if grown := resident(t) - before; grown > 24*1024 {
		t.Errorf("%d KiB more after 450 turns", grown)
	} else {
		t.Logf("%d KiB more after 450 turns", grown)
	}
}
