// Command engine-node is the one binary of Aqueduct: it serves a node, and it
// speaks to one.
package main

import (
	"context"
	"os"
	"runtime/debug"
)

// gcPercent lets the heap grow to four times what lives before it is collected.
// A node keeps little (its snapshot cache is bounded) and allocates much: at
// Go's own 100 a fifth of its throughput goes to the collector. GOGC, where it
// is set, has the last word.
const gcPercent = 300

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
