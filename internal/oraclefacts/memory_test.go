package oraclefacts

import (
	"database/sql"
	"fmt"
	"os"
	"runtime/debug"
)

// resident is the memory of this process in MiB, without Go's own garbage.
func resident(r *rig) float64 {
	r.Helper()
	debug.FreeOSMemory()
	raw, err := os.ReadFile("/proc/self/statm")
	r.must(err)
	var size, pages int
	_, err = fmt.Sscan(string(raw), &size, &pages)
	r.must(err)
	return float64(pages) * float64(os.Getpagesize()) / (1 << 20)
}

func out(n *int) sql.Out { return sql.Out{Dest: n} }
