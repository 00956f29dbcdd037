// Program identities plays an identity provider, for trying out how people log in
// at a node: its login page asks which of three people one is, and believes it.
// Nobody proves anything, so no node on which anything depends may trust it.
//
// It listens on loopback only and prints its address as one JSON line.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/idp"
)

// life is how long a login lasts.
const life = 12 * time.Hour

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "identities:", err)
		}
		os.Exit(1)
	}
}

// run serves until ctx ends. It prints {"address":"http://HOST:PORT"}, which is the
// issuer, when it is ready.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("identities", flag.ContinueOnError)
	flags.SetOutput(stderr)
	address := flags.String("addr", "127.0.0.1:8095", "address to listen on, of loopback; port 0 = any")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if at, err := netip.ParseAddrPort(*address); err != nil || !at.Addr().IsLoopback() {
		return fmt.Errorf("-addr %s: want an address of loopback with a port, such as 127.0.0.1:8095", *address)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *address)
	if err != nil {
		return err
	}
	provider := idp.New("http://" + listener.Addr().String())
	provider.Meet(idp.People, life)
	server := &http.Server{Handler: provider.Handler(), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	fmt.Fprintln(stderr, "identities: FOR TRYING OUT ONLY: whoever reaches this provider is whoever they like")
	if err := json.NewEncoder(stdout).Encode(map[string]string{"address": provider.URL}); err != nil {
		return err
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
