package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/aqueduct-engine/aqueduct/bench"
	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/sql/embedded"
	"github.com/aqueduct-engine/aqueduct/sql/oracle"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

func benchCommand(a *app) *cobra.Command {
	var o bench.Options
	var child, bare, durability string
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure a node, on the embedded store each figure beside a baseline measured in the same run",
		Long: `Measure a node on the embedded store. The baseline is a bare loop in the same process
that commits the least rows one step can be made of, with the same grouping and
durability and no engine: the ratio to it holds on any machine.

Databases are made in a temporary directory below --dir and removed. The backlog
workload parks a million instances and takes minutes; --quick is a smoke test.

With --store oracle://... the node works on that schema, which must be installed
and have no other node: round trips of a turn and calls of an idle node are
counted, the rest is timed without a baseline. What the benchmark leaves there,
waiting and completed instances, is not removed: take a schema for trying out.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := sqlite.Full
			switch config.Durability(durability) {
			case config.Full:
			case config.Normal:
				d = sqlite.ProcessCrash
			default:
				return usage("--durability is %q: write %s or %s", durability, config.Full, config.Normal)
			}
			if bare != "" {
				ended, restore := signal.NotifyContext(cmd.Context(), syscall.SIGTERM)
				defer restore()
				return bench.Bare(ended, bare, a.page.out)
			}
			if a.store != "" {
				return a.benchOracle(cmd.Context(), o)
			}
			benchStore(&o, d)
			if child != "" {
				return bench.Child(cmd.Context(), o, child, a.page.out)
			}
			o.Durability, o.Out = durability, a.page.out
			if a.json {
				o.Out, o.JSON = io.Discard, a.page.out
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			o.Self = []string{self, "bench", "--durability", durability, "--child"}
			o.Bare = []string{self, "bench", "--bare"}
			o.Node = func(dir string) []string {
				return []string{self, "serve", "--json", "--listen=127.0.0.1:0", "--log-level=error",
					"--store-durability=" + durability, "--store-url=sqlite://" + filepath.Join(dir, "bench.db")}
			}
			_, err = bench.Run(cmd.Context(), o)
			return err
		},
	}
	f := c.Flags()
	f.StringSliceVar(&o.Workloads, "workload", nil, "what to measure: "+strings.Join(bench.Names(), ", ")+"; default all")
	f.IntVar(&o.N, "n", 0, "number of workflows; 0 = each workload's own")
	f.BoolVar(&o.Quick, "quick", false, "small numbers: a smoke test, not a measurement")
	f.StringVar(&o.Dir, "dir", ".", "folder on the disk to measure")
	f.StringVar(&durability, "durability", string(config.Full), "what a commit survives: full (a power failure) or normal (the death of the process)")
	f.StringVar(&child, "child", "", "run the node that the restart workload kills, in this folder")
	f.StringVar(&bare, "bare", "", "serve the requests of the http workload without an engine, with calls to this address")
	for _, name := range []string{"child", "bare"} {
		_ = f.MarkHidden(name) // the flag exists
	}
	return c
}

// benchStore tells the benchmark how to use the embedded store.
func benchStore(o *bench.Options, d sqlite.Durability) {
	o.Store = "sqlite"
	o.Open = func(ctx context.Context, dir string) (bench.Database, error) {
		return embedded.Open(ctx, sqlite.Options{Path: filepath.Join(dir, "bench.db"), Durability: d})
	}
	o.Transactions = func(s backend.Store) int64 { return s.(*embedded.Store).Stats().Transactions }
	o.Size = databaseSize
	o.Baseline = func(ctx context.Context, dir string, n, callers int) (bench.Baseline, error) {
		f, err := embedded.Baseline(ctx, dir, d, n, callers)
		return bench.Baseline{PerSecond: f.PerSecond, P50: f.P50}, err
	}
}

// benchOracle measures on the schema that --store names.
func (a *app) benchOracle(ctx context.Context, o bench.Options) error {
	url, err := storeURL(a.store)
	if err != nil {
		return err
	}
	l, err := config.Load(config.Source{Env: append(a.settings(), "AQUEDUCT_STORE_URL="+url)})
	if err != nil {
		return err
	}
	if !l.Store.Oracle() {
		return usage("--store: bench measures SQLite in files of its own, and takes only oracle://USER@HOST:PORT/SERVICE")
	}
	o.Store, o.Out = "oracle", a.page.out
	if a.json {
		o.Out, o.JSON = io.Discard, a.page.out
	}
	o.Open = func(ctx context.Context, _ string) (bench.Database, error) {
		return openStore(ctx, l.Store, l.Queue, "", 0, slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelError})))
	}
	o.Transactions = func(s backend.Store) int64 { return s.(*oracle.Store).Counts().Commits }
	o.Calls = func(s backend.Store) bench.Calls {
		st := s.(*oracle.Store)
		c := st.Counts()
		return bench.Calls{RoundTrips: c.Calls, Dequeues: c.Dequeues, Beats: c.Beats, Reads: c.Reads, Notes: c.Notes, Sessions: st.Sessions()}
	}
	_, err = bench.Run(ctx, o)
	return err
}

// databaseSize is what a closed database would take: its pages. The log beside
// it is bounded and does not grow with what is stored.
func databaseSize(dir string) (int64, error) {
	var size int64
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".db") {
			return err
		}
		pages, err := embedded.Pages(path)
		size += pages
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("size of %s: %w", dir, err)
	}
	return size, nil
}
