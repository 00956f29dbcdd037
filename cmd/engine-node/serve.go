package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/aqueduct-engine/aqueduct/api"
	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// shutdownTimeout is how long requests under way may take when a node stops.
const shutdownTimeout = 5 * time.Second

func serveCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run a node: perform workflows and serve the API",
		Long: `Run a node: perform workflows and serve the API. It asks nobody who they are,
and is served on the loopback interface, unless --access-tokens is set.

The first SIGTERM or SIGINT drains: nothing new is taken, turns under way are
finished, running calls are waited for. A second one ends the process at once;
that loses nothing, but calls under way are then performed again.

Every setting is a flag, an environment variable or a key of the --config file:
see "engine-node config". --store is short for --store-url.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.load(cmd)
			if err != nil {
				return err
			}
			return a.serve(cmd.Context(), l)
		},
	}
	config.Flags(c.Flags())
	return c
}

// load reads the configuration of a command that has the settings as flags.
func (a *app) load(cmd *cobra.Command) (*config.Loaded, error) {
	if a.store != "" {
		url, err := storeURL(a.store)
		if err != nil {
			return nil, err
		}
		if err := cmd.Flags().Set("store-url", url); err != nil {
			return nil, usage("--store: %s", err)
		}
	}
	return config.Load(config.Source{Flags: cmd.Flags(), Env: a.settings()})
}

// logger makes the log that the configuration asks for, on standard error.
func (a *app) logger(c config.Log) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Level)) // config has checked it
	o := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(a.err, o))
	}
	return slog.New(slog.NewTextHandler(a.err, o))
}

// serve runs a node until ctx or a signal ends it.
func (a *app) serve(ctx context.Context, l *config.Loaded) error {
	c := l.Config
	ctx, restore := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer restore()
	log := a.logger(c.Log)
	context.AfterFunc(ctx, func() {
		restore() // from now on a signal ends the process
		log.Info("node is draining; a second signal ends it at once")
	})
	if err := makeFolder(c.Store); err != nil {
		return err
	}
	listener, err := listen(ctx, c.Listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	c.Listen = listener.Addr().String() // with the port, where any free one was asked for
	name := nodeName(c.Node)
	n, err := wireOn(ctx, c, name, log, func(c *config.Config, parts backend.Parts) error { return join(ctx, name, *c, parts) })
	if err != nil {
		return err
	}
	defer n.close()
	var w *watcher
	if c.Watch != "" {
		if w, err = watch(ctx, c.Watch, n.catalogue, log); err != nil {
			return err
		}
		defer w.close()
	}
	if log.Info("who may use the API", "access", whoMay(c.Access)); c.Access.Anybody && !c.Access.Asks() {
		log.Warn("whoever reaches the API may do everything", "listen", c.Listen)
	}
	reachedBy(c, log)
	url := "http://" + listener.Addr().String()
	server := api.NewServer(n.handler, log)
	if n.shown != nil {
		url, server.TLSConfig = "https://"+listener.Addr().String(), n.shown.server()
	}
	work, fail := errgroup.WithContext(ctx)
	work.Go(func() error { return n.runtime.Run(fail) })
	work.Go(func() error { return serveHTTP(fail, server, listener) })
	if w != nil {
		work.Go(func() error { return w.run(fail) })
	}
	a.ready(url, n, l, w)
	err = work.Wait()
	log.Info("node stopped", "node", n.name)
	return err
}

// whoMay says in words whom the API lets in.
func whoMay(a config.Access) string {
	switch {
	case a.Asks():
		return "who bears a token or a certificate, by their roles"
	case a.Anybody:
		return "everybody, from anywhere: nobody is asked who they are"
	}
	return "everybody on this host: nobody is asked who they are"
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, problem.New(problem.Unavailable, "listen.in-use", "another program listens on %s", address).
			WithHint("stop it, or choose another with --listen 127.0.0.1:0")
	}
	if err != nil {
		return nil, problem.Wrap(err, problem.Unavailable, "listen.failed", "the node cannot listen on %s", address)
	}
	return l, nil
}

// serveHTTP serves until ctx ends, then lets requests under way finish.
func serveHTTP(ctx context.Context, server *http.Server, l net.Listener) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if server.Shutdown(grace) != nil {
			_ = server.Close() // those who still wait are told by the closed connection
		}
	}()
	serve := server.Serve
	if server.TLSConfig != nil {
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") } // it has them already
	}
	err := serve(l)
	if ctx.Err() == nil {
		return problem.Wrap(err, problem.Unavailable, "listen.failed", "the API stopped")
	}
	<-ended
	return nil
}

// ready tells a person or a program where the node is, and what to try.
func (a *app) ready(url string, n *node, l *config.Loaded, w *watcher) {
	if a.json {
		line, _ := json.Marshal(map[string]string{ // strings cannot fail
			"url": url, "node": n.name, "store": shown(l), "durability": string(l.Store.Durability), "version": version(),
		})
		fmt.Fprintf(a.page.out, "%s\n", line)
		return
	}
	fmt.Fprintf(a.page.out, "aqueduct serves at %s\nnode %s, store %s, durability %s\n\nopen %s/console/ in a browser\nto try in another terminal:\n", url, n.name, shown(l), l.Store.Durability, url)
	server := ""
	if url != defaultServer {
		server = " --server " + url
	}
	tries := []string{"definitions"}
	if w != nil {
		tries = append(tries, w.suggestions()...)
	}
	for _, t := range append(tries, "tasks list", "list") {
		fmt.Fprintf(a.page.out, "  %s %s%s\n", a.self, t, server)
	}
	fmt.Fprintf(a.page.out, "\nthe API is described at %s/openapi.json; ^C stops the node\n", url)
}
