// Command engine-node is the one binary of Aqueduct: it serves a node, and it
// speaks to one.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
