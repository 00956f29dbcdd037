package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

func bulkCommand(a *app) *cobra.Command {
	return group("bulk", "Do to many instances or dead letters what was planned and shown before",
		planBulkCommand(a), runBulkCommand(a), stopBulkCommand(a), showBulkCommand(a), bulkItemsCommand(a), listBulkCommand(a))
}

// bulkSample is how many items of a new plan are printed.
const bulkSample = 10

func planBulkCommand(a *app) *cobra.Command {
	var r client.BulkRequest
	var file string
	var compensates bool
	c := &cobra.Command{
		Use:   "plan OPERATION",
		Short: "Find what an operation is of, keep it as a plan, and do nothing yet",
		Long: `Find what an operation is of, and keep it as a plan: retry, retry-same, retry-new,
suspend, resume, run-now, cancel and migrate are of instances, replay and discard of dead
letters. All conditions must fit. Nothing is done: bulk run PLAN does to what was
found what was asked, and to nothing else; an instance that has changed since then is
skipped.`,
		Args: cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) (err error) {
			r.Operation = args[0]
			if compensates {
				if r.Operation != "cancel" {
					return usage("only cancel takes --compensate, not %s", r.Operation)
				}
				r.Operation = "compensate"
			}
			if r.Pointers, err = a.given.pointerMap(file); err != nil {
				return err
			}
			p, err := client.NewBulk(c).Plan(ctx, r)
			if err != nil || a.json {
				return a.page.orPrint(p, err)
			}
			sample, err := client.NewBulk(c).Items(ctx, p.ID, "", client.List{Limit: bulkSample})
			if err != nil {
				return err
			}
			if err := a.page.showBulk(&p); err != nil || p.Planned == 0 {
				return err
			}
			fmt.Fprintln(a.page.out)
			if err := a.page.showItems(sample.Items, "", "nothing fits"); err != nil {
				return err
			}
			if p.Planned > len(sample.Items) {
				fmt.Fprintf(a.page.out, "and %d others: %s bulk items %s\n", p.Planned-len(sample.Items), a.self, p.ID)
			}
			fmt.Fprintf(a.page.out, "nothing is done yet: %s bulk run %s\n", a.self, p.ID)
			return nil
		}),
	}
	f := c.Flags()
	f.StringVar(&r.Definition, "definition", "", "only of this definition: namespace/name")
	f.StringVar(&r.ErrorCode, "error-code", "", "only instances at an error of this type, or of the part of it behind the last /; only dead letters with this reason")
	f.StringVar(&r.Text, "text", "", "only with this text in the words of the error, or of the reason")
	f.StringVar(&r.OlderThan, "older-than", "", "only instances that have not visibly changed, dead letters that have died, longer ago: 1h, 30d, P30D")
	f.StringVar(&r.Version, "version", "", "instances: only of this version of the definition")
	f.StringVar(&r.Status, "status", "", "instances: only in this status (retry: faulted, resume: suspended)")
	f.StringVar(&r.State, "state", "", "instances: only those that are there")
	f.StringVar(&r.BusinessKey, "key", "", "instances: only with this business key")
	f.StringVar(&r.Parent, "parent", "", "instances: only those that this instance started")
	f.StringVar(&r.Where, "where", "", `instances: conditions on search attributes and fields: 'amount > 1000 and state = "Review"'`)
	f.StringVar(&r.Queue, "queue", "", "dead letters: only of this queue: signal, schedule, command")
	f.StringVar(&r.Instance, "instance", "", "dead letters: only of this instance")
	f.IntVar(&r.Limit, "limit", 0, fmt.Sprintf("items at most: instances the newest, dead letters the oldest (default %d)", backend.MaxBulk))
	f.BoolVar(&compensates, "compensate", false, "cancel: compensate what each instance has done, the last first")
	f.StringVar(&r.To, "to", "", "migrate: the version to move to")
	f.StringVar(&file, "map", "", "migrate: file of a JSON object of old JSON pointers to new ones")
	return c
}

func runBulkCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "run PLAN",
		Short: "Do what a plan is of, or go on where a run ended",
		Long: `Do what a plan is of, or go on where a run ended: after bulk stop, an interrupt, or
the death of a node. No item is done twice, by however many a plan is run. An item is
skipped when it is not what it was when the plan was made. One that was refused is failed,
and fails the command; so does a stop by somebody else.`,
		Args: cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			b, r := progressOf(a), client.BulkRunRequest{Begin: true}
			ctx, restore := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
			defer restore()
			for {
				p, err := client.NewBulk(c).Run(ctx, args[0], r)
				if err != nil {
					b.end()
					if ctx.Err() != nil {
						return interrupted(c, a.self, args[0])
					}
					return err
				}
				b.show(&p)
				if r.Begin = false; p.Status == backend.BulkRunning {
					continue
				}
				b.end()
				if a.json {
					err = a.page.print(p)
				} else {
					err = a.page.showBulk(&p)
				}
				if err == nil && p.Open > 0 {
					err = problem.New(problem.Conflict, "bulk.stopped", "somebody has stopped plan %s: %d of its %d items are open", p.ID, p.Open, p.Planned).
						WithHint("%s bulk run %s goes on", a.self, p.ID)
				}
				if err == nil && p.Failed > 0 {
					err = problem.New(problem.Conflict, "bulk.failures", "%d of %d items of plan %s were refused", p.Failed, p.Planned, p.ID).
						WithHint("%s bulk items %s --outcome failed", a.self, p.ID)
				}
				return err
			}
		}),
	}
}

// interrupted stops the plan that a person has interrupted: nobody goes on with it.
func interrupted(c *client.Client, self, plan string) error {
	ctx, cancel := context.WithTimeout(context.Background(), interruptedFor)
	defer cancel()
	p, err := client.NewBulk(c).Stop(ctx, plan)
	if err != nil {
		return err
	}
	return problem.New(problem.Conflict, "bulk.stopped", "the run of plan %s was interrupted: %d of its %d items are open", p.ID, p.Open, p.Planned).
		WithHint("%s bulk run %s goes on", self, p.ID)
}

// interruptedFor is how long it may take to stop a plan.
const interruptedFor = 10 * time.Second

func stopBulkCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "stop PLAN",
		Short: "End a run; what is done stays done, and bulk run goes on",
		Args:  cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			p, err := client.NewBulk(c).Stop(ctx, args[0])
			if err != nil || a.json {
				return a.page.orPrint(p, err)
			}
			return a.page.showBulk(&p)
		}),
	}
}

func showBulkCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show PLAN",
		Short: "Show a plan, and how far it is",
		Args:  cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			p, err := client.NewBulk(c).Get(ctx, args[0])
			if err != nil || a.json {
				return a.page.orPrint(p, err)
			}
			return a.page.showBulk(&p)
		}),
	}
}

func bulkItemsCommand(a *app) *cobra.Command {
	var l client.List
	var outcome string
	c := &cobra.Command{
		Use:   "items PLAN",
		Short: "List what a plan is of, with what has become of it",
		Args:  cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			p, err := client.NewBulk(c).Items(ctx, args[0], outcome, l)
			if err != nil || a.json {
				return a.page.orPrint(p, err)
			}
			return a.page.showItems(p.Items, p.Next, "no item")
		}),
	}
	c.Flags().StringVar(&outcome, "outcome", "", "only of this outcome: open, done, skipped, failed")
	listFlags(c, &l)
	return c
}

func listBulkCommand(a *app) *cobra.Command {
	var l client.List
	c := &cobra.Command{
		Use:   "list",
		Short: "List plans, newest first",
		Args:  cobra.NoArgs,
		RunE: a.with(func(ctx context.Context, c *client.Client, _ []string) error {
			p, err := client.NewBulk(c).List(ctx, l)
			if err != nil || a.json {
				return a.page.orPrint(p, err)
			}
			t := a.page.table("PLAN", "OPERATION", "STATUS", "PLANNED", "DONE", "SKIPPED", "FAILED", "OPEN", "MADE", "BY", "BECAUSE")
			for i := range p.Items {
				b := &p.Items[i]
				t.row(b.ID, b.Operation, b.Status, fmt.Sprint(b.Planned), fmt.Sprint(b.Done), fmt.Sprint(b.Skipped), fmt.Sprint(b.Failed), fmt.Sprint(b.Open),
					a.page.ago(b.CreatedAt), b.CreatedBy, a.page.cut(b.Reason))
			}
			return t.end(len(p.Items), p.Next, "no plan")
		}),
	}
	listFlags(c, &l)
	return c
}

// showBulk says what a plan is of, and how far it is.
func (p *page) showBulk(b *client.BulkPlan) error {
	planned := fmt.Sprint(b.Planned)
	if b.More {
		planned += ", and more were found that are in no plan"
	}
	p.fields("plan", b.ID, "operation", b.Operation, "status", b.Status, "of", bulkFilter(b), "because", b.Reason,
		"made", p.moment(b.CreatedAt)+" by "+b.CreatedBy, "run by", b.RunBy, "ended", p.momentOrNone(b.EndedAt),
		"planned", planned, "done", fmt.Sprint(b.Done), "skipped", fmt.Sprint(b.Skipped), "failed", fmt.Sprint(b.Failed), "open", fmt.Sprint(b.Open))
	if len(b.Kinds) > 0 {
		fmt.Fprintln(p.out)
		t := p.table("ITEMS", "THAT WERE")
		for _, k := range b.Kinds {
			t.row(fmt.Sprint(k.Items), k.Kind)
		}
		if err := t.end(len(b.Kinds), "", ""); err != nil {
			return err
		}
	}
	if len(b.Why) == 0 {
		return nil
	}
	fmt.Fprintln(p.out)
	t := p.table("ITEMS", "OUTCOME", "CODE")
	for _, w := range b.Why {
		t.row(fmt.Sprint(w.Items), w.Outcome, w.Code)
	}
	return t.end(len(b.Why), "", "")
}

// bulkFilter is the filter of a plan, as its flags say it.
func bulkFilter(b *client.BulkPlan) string {
	r := &b.Asked
	var parts []string
	for _, p := range [][2]string{
		{"definition", r.Definition}, {"version", r.Version}, {"to", r.To}, {"status", r.Status}, {"state", r.State}, {"key", r.BusinessKey}, {"parent", r.Parent},
		{"where", r.Where}, {"queue", r.Queue}, {"instance", r.Instance}, {"error-code", r.ErrorCode}, {"text", r.Text},
	} {
		if p[1] != "" {
			parts = append(parts, "--"+p[0]+" "+p[1])
		}
	}
	if !b.Before.IsZero() {
		parts = append(parts, "before "+b.Before.UTC().Format("2006-01-02 15:04:05Z"))
	}
	return strings.Join(parts, ", ")
}

func (p *page) showItems(items []client.BulkItem, next, nothing string) error {
	t := p.table("#", "ITEM", "VERSION", "WAS", "OUTCOME", "CODE", "DETAIL")
	for _, i := range items {
		version := ""
		if i.Version > 0 {
			version = fmt.Sprint(i.Version)
		}
		t.row(fmt.Sprint(i.No), i.ID, version, i.Kind, i.Outcome, i.Code, p.cut(i.Detail))
	}
	return t.end(len(items), next, nothing)
}

// bulkProgress says how far a run is: on a terminal by a bar that is drawn again, else by
// lines.
type bulkProgress struct {
	lines, bar io.Writer // one of them, or none
	drawn      bool
}

func progressOf(a *app) *bulkProgress {
	if a.json {
		return &bulkProgress{}
	}
	if t, ok := a.err.(*terminal); ok { // which would escape what draws the bar
		if f, ok := t.to.(*os.File); ok && interactive(f) {
			return &bulkProgress{bar: f}
		}
	}
	return &bulkProgress{lines: a.err}
}

// barWidth is how many characters a whole bar has.
const barWidth = 30

func (b *bulkProgress) show(p *client.BulkPlan) {
	ended := p.Planned - p.Open
	text := fmt.Sprintf("%d of %d: %d done, %d skipped, %d failed", ended, p.Planned, p.Done, p.Skipped, p.Failed)
	switch {
	case b.bar != nil:
		full := barWidth
		if p.Planned > 0 {
			full = barWidth * ended / p.Planned
		}
		fmt.Fprintf(b.bar, "\r\x1b[K[%s%s] %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), text)
		b.drawn = true
	case b.lines != nil:
		fmt.Fprintln(b.lines, text)
	}
}

// end leaves the line of the bar.
func (b *bulkProgress) end() {
	if b.drawn {
		fmt.Fprintln(b.bar)
	}
}
