// Program standin runs the stand-in for Oracle until
// it is stopped, and prints the data source name of an empty database on it:
// for a look around with other programs, and as the database that
// AQUEDUCT_ORACLE_DSN names, to prove that tests use a named one.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/aqueduct-engine/aqueduct/internal/ocisim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "standin:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	s, err := ocisim.Run(ctx)
	if err != nil {
		return err
	}
	d, err := s.Create(ctx)
	if err == nil {
		fmt.Println(d.DSN())
		<-ctx.Done()
	}
	if closed := s.Close(); err == nil {
		err = closed
	}
	return err
}
