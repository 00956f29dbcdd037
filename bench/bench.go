// Package bench measures a node the way its users would: whole workflows
// through a real store, each figure beside a baseline measured in the same run.
//
// The baseline is a bare loop in the same process that commits the least rows one
// step can be made of, with the same grouping and the same durability, and no
// engine. The ratio to it is what the engine costs; it holds on any machine.
package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Options says what to measure. Open and Baseline belong to the store.
type Options struct {
	Store      string // its name, for the rows
	Durability string
	Workloads  []string                  // empty = all
	N          int                       // of workflows; 0 = each workload's own number
	Quick      bool                      // small numbers: a smoke test, not a measurement
	Dir        string                    // where databases are made; "" = a temporary directory
	Self       []string                  // command line that runs Child in a process of its own; nil leaves out restart
	Bare       []string                  // that runs Bare, to which the address that is called is added; nil leaves out http
	Node       func(dir string) []string // that runs a node on a database in dir, and prints a line of JSON with its url

	// Open opens the store in a directory, Transactions counts its durable
	// transactions so far, Size is what it takes on disk.
	Open         func(ctx context.Context, dir string) (Database, error)
	Transactions func(backend.Store) int64
	Size         func(dir string) (int64, error)
	// Calls counts what the store has asked its database so far; nil for one that
	// is no server.
	Calls func(backend.Store) Calls
	// Baseline commits n minimal steps from callers goroutines; nil leaves the ratio
	// out.
	Baseline func(ctx context.Context, dir string, n, callers int) (Baseline, error)

	Out  io.Writer // progress and the table; nil = nowhere
	JSON io.Writer // one object per row; nil = none

	eventTTL time.Duration // of its nodes
}

// Database is what a node needs of its store.
type Database interface {
	backend.Store
	definition.Repository
}

// Baseline is what the bare loop does.
type Baseline struct {
	PerSecond float64
	P50       time.Duration // of one commit
}

// Calls are round trips to a database.
type Calls struct {
	RoundTrips int64 // of consumers and changes
	Dequeues   int64 // among them
	Beats      int64 // statements of heartbeats, not among them
	Reads      int64 // queries, not among them
	Notes      int64 // statements of the ledger of messages under way, not among them
	Sessions   int   // that are open, beside those for reading
}

// Row is one result. A zero figure does not apply to the workload.
type Row struct {
	Workload   string  `json:"workload"`
	Store      string  `json:"store"`
	Durability string  `json:"durability"`
	N          int     `json:"n"`
	Completed  int     `json:"completed"`
	Seconds    float64 `json:"seconds"`

	RatePerSecond float64 `json:"ratePerSecond"` // of steps, signals, timers, starts
	P50Ms         float64 `json:"p50Ms"`
	P95Ms         float64 `json:"p95Ms"`
	P99Ms         float64 `json:"p99Ms"`
	P999Ms        float64 `json:"p999Ms"`
	CPUMicros     float64 `json:"cpuMicros,omitempty"` // of processors, for each workflow or request, in the process that is measured

	CommitsPerWorkflow        float64 `json:"commitsPerWorkflow"`
	FlushesPerWorkflow        float64 `json:"flushesPerWorkflow,omitempty"` // of the disk, by whatever process; 0 = the host does not say
	BytesPerInstance          float64 `json:"bytesPerInstance"`
	MemoryPerInstance         float64 `json:"memoryPerInstance"`
	IdleTransactionsPerMinute float64 `json:"idleTransactionsPerMinute"`
	PeakMiB                   float64 `json:"peakMiB,omitempty"` // of memory that the process had

	RoundTripsPerTurn       float64 `json:"roundTripsPerTurn,omitempty"`
	RoundTripsPerWorkflow   float64 `json:"roundTripsPerWorkflow,omitempty"` // from the first start or signal on, with waits that ended
	ReadsPerWorkflow        float64 `json:"readsPerWorkflow,omitempty"`      // queries beside those
	NotesPerWorkflow        float64 `json:"notesPerWorkflow,omitempty"`      // statements of the ledger beside those
	Sessions                int     `json:"sessions,omitempty"`              // open at the end, beside those for reading
	RatePerSession          float64 `json:"ratePerSession,omitempty"`        // a second
	IdleDequeuesPerMinute   float64 `json:"idleDequeuesPerMinute,omitempty"` // bounded waits that ended
	IdleOtherCallsPerMinute float64 `json:"idleOtherCallsPerMinute"`         // of consumers: none
	IdleBeatsPerMinute      float64 `json:"idleBeatsPerMinute,omitempty"`    // statements of the heartbeat

	NsPerStep          float64 `json:"nsPerStep,omitempty"` // of the interpreter alone
	AllocationsPerStep float64 `json:"allocationsPerStep,omitempty"`
	BytesPerStep       float64 `json:"bytesPerStep,omitempty"` // allocated

	BaselinePerSecond float64 `json:"floorPerSecond"`
	RatioToBaseline   float64 `json:"ratioToFloor"`
	BaselineP50Ms     float64 `json:"floorP50Ms"` // of one bare commit
	Note              string  `json:"note,omitempty"`
}

// workload measures one thing; it returns one row or more.
type workload struct {
	name string
	what string
	run  func(ctx context.Context, o *Options) ([]Row, error)
	fits func(o *Options) bool // on the store; nil = on every one
}

func workloads() []workload {
	return []workload{
		{name: "turn", what: "round trips of a turn to a database server", run: turns, fits: func(o *Options) bool { return o.Calls != nil }},
		{name: "pure", what: "tasks that wait for nothing: the interpreter without a store, on one processor", run: pure},
		{name: "steps", what: "workflows of 5 calls in sequence, 64 at once, each result durable before the next begins", run: steps},
		{name: "code", what: "workflows of 5 calls as a document and in Go, in pairs", run: code},
		{name: "attributes", what: "workflows of 5 calls that change a number, in pairs: searchable by it, and not", run: attributes},
		{name: "kept", what: "workflows that listen, in pairs: on a node that keeps early events, and on one that does not", run: kept},
		{name: "start", what: "start to completed of a workflow of one call, one at a time", run: start},
		{name: "signal", what: "parked instances resumed by one signal each, and one at a time", run: signals},
		{name: "timer", what: "sleepers due at one moment: lateness", run: timers},
		{name: "beside", what: "workflows of one call, two at a time, alone and beside wide instances, and beside 10^5 sleepers due at one moment", run: beside},
		{name: "parked", what: "bytes and memory of a waiting instance with 1 KB of state", run: parked, fits: ownFiles},
		{name: "http", what: "starts, signals, waiting starts and workflows of 5 HTTP calls by the API of a node in a process of its own", run: overHTTP, fits: func(o *Options) bool { return o.Bare != nil && o.Node != nil }},
		{name: "burst", what: "workflows of 5 calls with 64 to 4,096 callers at once", run: burst},
		{name: "fork", what: "branches of a fork of 10 and of 1,000", run: forks},
		{name: "foreach", what: "calls of a forEach of 10 and of 1,000", run: forEaches},
		{name: "for", what: "rounds of a loop over 100 and over 10,000", run: rounds},
		{name: "payload", what: "workflows of 5 calls that keep 1 KB and 100 KB of data", run: payloads},
		{name: "inbox", what: "events that come before who listens for them, and workflows that find them", run: inbox},
		{name: "versions", what: "starts without a version, of a definition with 1 and with 1,000 of them", run: versions, fits: ownFiles},
		{name: "idle", what: "transactions of a node with nothing to do", run: idle},
		{name: "restart", what: "from process start to first progress after SIGKILL", run: restart, fits: ownFiles},
		{name: "lists", what: "the first page of lists, and the next task, with 10^3 and 10^6 instances that wait for a person", run: lists, fits: ownFiles},
		{name: "backlog", what: "steps with 10^3, 10^5 and 10^6 parked instances and pending timers", run: backlog, fits: ownFiles},
	}
}

// ownFiles says that every database is a directory, made and removed at will.
func ownFiles(o *Options) bool { return o.Size != nil }

// Names lists the workloads.
func Names() []string {
	var names []string
	for _, w := range workloads() {
		names = append(names, w.name)
	}
	return names
}

// Run measures and prints. It returns the rows; an error says which workload
// could not be measured.
func Run(ctx context.Context, o Options) ([]Row, error) {
	if o.Out == nil {
		o.Out = io.Discard
	}
	for _, name := range o.Workloads {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("bench: workload %q is unknown: one of %s", name, strings.Join(Names(), ", "))
		}
	}
	var rows []Row
	for _, w := range workloads() {
		if len(o.Workloads) > 0 && !slices.Contains(o.Workloads, w.name) {
			continue
		}
		if w.fits != nil && !w.fits(&o) {
			if len(o.Workloads) > 0 {
				return rows, fmt.Errorf("bench: workload %q cannot be measured on store %s", w.name, o.Store)
			}
			continue
		}
		fmt.Fprintf(o.Out, "%s: %s\n", w.name, w.what)
		got, err := w.run(ctx, &o)
		if err != nil {
			return rows, fmt.Errorf("bench: %s: %w", w.name, err)
		}
		for i := range got {
			got[i].Store, got[i].Durability = o.Store, o.Durability
			if got[i].BaselinePerSecond > 0 && got[i].RatePerSecond > 0 {
				got[i].RatioToBaseline = got[i].RatePerSecond / got[i].BaselinePerSecond
			}
		}
		rows = append(rows, got...)
	}
	table(o.Out, rows)
	if o.JSON != nil {
		enc := json.NewEncoder(o.JSON)
		for _, r := range rows {
			if err := enc.Encode(r); err != nil {
				return rows, err
			}
		}
	}
	return rows, nil
}

// table prints the rows for people.
func table(w io.Writer, rows []Row) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\nworkload\tn\tdone\tseconds\trate/s\tp50 ms\tp95 ms\tp99 ms\tp99.9 ms\tCPU us\tcommits/wf\tflushes/wf\tbytes/inst\tmem/inst\tidle tx/min\tfloor/s\tratio\tcommit ms\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.2f\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Workload, r.N, r.Completed, r.Seconds,
			cell(r.RatePerSecond, 0), cell(r.P50Ms, 2), cell(r.P95Ms, 2), cell(r.P99Ms, 2), cell(r.P999Ms, 2), cell(r.CPUMicros, 0), cell(r.CommitsPerWorkflow, 2), cell(r.FlushesPerWorkflow, 2),
			cell(r.BytesPerInstance, 0), cell(r.MemoryPerInstance, 0), idleCell(r), cell(r.BaselinePerSecond, 0),
			cell(r.RatioToBaseline, 2), cell(r.BaselineP50Ms, 2))
	}
	t.Flush()
	if len(rows) > 0 && rows[0].Durability == "" {
		fmt.Fprintf(w, "store %s; times in ms\n", rows[0].Store)
	} else if len(rows) > 0 {
		fmt.Fprintf(w, "store %s, durability %s; times in ms; baseline: bare commits of one step's rows, measured in this run\n", rows[0].Store, rows[0].Durability)
	}
	for _, r := range rows {
		if r.Note != "" {
			fmt.Fprintf(w, "%s: %s\n", r.Workload, r.Note)
		}
	}
}

func cell(v float64, digits int) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.*f", digits, v)
}

func idleCell(r Row) string {
	if r.Workload != "idle" {
		return "-"
	}
	return fmt.Sprintf("%.1f", r.IdleTransactionsPerMinute)
}

// percentiles fills in the latencies of a row.
func (r *Row) percentiles(d []time.Duration) {
	if len(d) == 0 {
		return
	}
	slices.Sort(d)
	at := func(q float64) float64 { return ms(d[min(int(q*float64(len(d))), len(d)-1)]) }
	r.P50Ms, r.P95Ms, r.P99Ms, r.P999Ms = at(0.50), at(0.95), at(0.99), at(0.999)
}

// spending begins to count what workflows cost their store; the result notes it in
// a row whose number and rate are known.
func (o *Options) spending(db Database) func(*Row) {
	commits, flushed, calls := o.Transactions(db), flushes(o.Dir), Calls{}
	if o.Calls != nil {
		calls = o.Calls(db)
	}
	return func(r *Row) {
		workflows := float64(max(r.Completed, 1))
		r.CommitsPerWorkflow = float64(o.Transactions(db)-commits) / workflows
		if o.Calls == nil {
			if flushed >= 0 {
				r.FlushesPerWorkflow = float64(flushes(o.Dir)-flushed) / workflows
			}
			return
		}
		now := o.Calls(db)
		r.RoundTripsPerWorkflow, r.Sessions = float64(now.RoundTrips-calls.RoundTrips)/workflows, now.Sessions
		r.ReadsPerWorkflow, r.NotesPerWorkflow = float64(now.Reads-calls.Reads)/workflows, float64(now.Notes-calls.Notes)/workflows
		r.RatePerSession = r.RatePerSecond / float64(max(r.Sessions, 1))
		note := fmt.Sprintf("%.1f round trips each, %.2f reads, %.2f of the ledger; %d sessions, %.0f a second each", r.RoundTripsPerWorkflow, r.ReadsPerWorkflow, r.NotesPerWorkflow, r.Sessions, r.RatePerSession)
		if r.Note != "" {
			note = r.Note + "; " + note
		}
		r.Note = note
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// dir makes a directory for one database.
func (o *Options) dir(name string) (string, func(), error) {
	d, err := os.MkdirTemp(o.Dir, "aqueduct-bench-"+name+"-")
	return d, func() { os.RemoveAll(d) }, err
}

// count is N, or the workload's own number.
func (o *Options) count(full, quick int) int {
	switch {
	case o.N > 0:
		return o.N
	case o.Quick:
		return quick
	}
	return full
}
