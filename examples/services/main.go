// Program services plays the outside world for the examples and the tests: it
// scores loans, sends notifications, issues fines and bills guests.
//
// Every effect is idempotent by the Idempotency-Key header: the first request
// with a key has the effect, every later one gets the same answer and has none.
// GET /effects tells how often each key was asked for and how often it had an
// effect, so that a test can prove "once". PUT /control/PATH makes a path fail
// or be slow. With -node, what asks for an acknowledgement is acknowledged there
// as processed.
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
)

// graceSeconds is how long answers under way may take when the program stops.
const graceSeconds = 5

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "services:", err)
		}
		os.Exit(1)
	}
}

// run serves until ctx ends. It prints {"address":"http://HOST:PORT"} when it
// is ready.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("services", flag.ContinueOnError)
	flags.SetOutput(stderr)
	address := flags.String("addr", "127.0.0.1:8090", "address to listen on, loopback only; port 0 = any")
	state := flags.String("state", "", "file that keeps the effects over a restart; empty = memory")
	node := flags.String("node", "", "URL of a node, to which deliveries that ask for it are acknowledged; empty = none is")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := onlyLoopback(*address); err != nil {
		return err
	}
	world, err := openWorld(*state)
	if err != nil {
		return err
	}
	defer world.close()
	world.node = *node
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: world.handler(ctx), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	err = json.NewEncoder(stdout).Encode(map[string]string{"address": "http://" + listener.Addr().String()})
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-ended:
			return err
		}
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceSeconds*time.Second)
	defer cancel()
	err = errors.Join(err, server.Shutdown(grace))
	<-ended
	return err
}

func onlyLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("address %q is not host:port", address)
	}
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return fmt.Errorf("address %q is not loopback, and this program asks nobody who they are", address)
	}
	return nil
}
