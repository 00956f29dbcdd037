package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/compensate"
	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/operate"
	"github.com/aqueduct-engine/aqueduct/problem"
)

func publishCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "publish FILE...",
		Short: "Publish definitions and policies, several all or none; - is standard input",
		Long: `Publish definitions and policies. Several are published in one commit, all of them
or none: each may name what another of them defines, and their order means
nothing.`,
		Args: cobra.MinimumNArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, files []string) error {
			documents := make([]client.Document, len(files))
			for i, file := range files {
				source, err := a.given.read(file)
				if err != nil {
					return err
				}
				documents[i] = client.Document{File: file, Source: string(source)}
			}
			published, err := publishAll(ctx, c, documents)
			if err != nil || a.json {
				return a.page.orPrint(client.Publication{Items: published}, err)
			}
			for i := range published {
				showPublished(a, &published[i])
			}
			return nil
		}),
	}
}

// publishAll publishes one document as nodes of before know it, too.
func publishAll(ctx context.Context, c *client.Client, documents []client.Document) ([]client.Published, error) {
	if len(documents) > 1 {
		return c.PublishAll(ctx, documents)
	}
	d, created, err := c.Publish(ctx, documents[0].File, []byte(documents[0].Source))
	return []client.Published{{Definition: d, Created: created}}, err
}

func showPublished(a *app, d *client.Published) {
	verb := "published"
	if !d.Created {
		verb = "unchanged"
	}
	fmt.Fprintf(a.page.out, "%s %s@%s (digest %.12s)\n", verb, d.Name, d.Version, d.Digest)
	for _, w := range d.Warnings {
		fmt.Fprintf(a.err, "warning: %s [%s]\n", problem.Place(w), w.Code)
	}
}

// listFlags are those of every list.
func listFlags(c *cobra.Command, l *client.List) {
	c.Flags().IntVar(&l.Limit, "limit", 0, "items at most (default 50)")
	c.Flags().StringVar(&l.After, "after", "", "the next of the page before")
}

func definitionsCommand(a *app) *cobra.Command {
	var l client.List
	c := &cobra.Command{
		Use:   "definitions",
		Short: "List the published definitions",
		Args:  cobra.NoArgs,
		RunE: a.with(func(ctx context.Context, c *client.Client, _ []string) error {
			p, err := c.Definitions(ctx, l)
			if err != nil || a.json {
				return a.page.orPrint(p, err)
			}
			t := a.page.table("DEFINITION", "VERSION", "PUBLISHED", "TITLE")
			for _, d := range p.Items {
				t.row(d.Name, d.Version, a.page.ago(d.PublishedAt), d.Title)
			}
			return t.end(len(p.Items), p.Next, "no definition is published")
		}),
	}
	listFlags(c, &l)
	c.AddCommand(diffCommand(a), migrateInstancesCommand(a))
	return c
}

func startCommand(a *app) *cobra.Command {
	var r client.StartRequest
	var first client.SignalRequest
	var input, data string
	var wait period
	c := &cobra.Command{
		Use:   "start DEFINITION",
		Short: "Start an instance of a definition, or find the one that the same request started",
		Long: `Start an instance of a definition, namespace/name.

A repeat with the same --id, or the same DEFINITION, --key and --start-key, starts
nothing and shows the first one's instance. With --signal that instance, new or
not, gets an event in the same commit; a repeat with the same --signal-id is
applied once, and one that is refused starts nothing. With --wait the command returns when
the instance is closed or faulted, or after that long; a faulted one fails it.`,
		Args: cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			var err error
			if r.Input, err = a.given.document("input", input); err != nil {
				return err
			}
			if first.Data, err = a.given.document("signal-data", data); err != nil {
				return err
			}
			if first.Type != "" {
				r.Signal = &first
			} else if first.Data != nil || first.SignalID != "" {
				return usage("--signal-data and --signal-id need --signal")
			}
			r.Definition = args[0]
			i, created, err := c.Start(ctx, r, wait.Duration)
			if err != nil {
				return err
			}
			if err := a.started(i, created, wait.Duration > 0); err != nil {
				return err
			}
			if wait.Duration > 0 && (i.Status == "faulted" || i.Status == "compensated") {
				return problem.New(problem.Invalid, "instance.faulted", "instance %s is %s", i.ID, i.Status).
					WithHint("%s show %s --timeline", a.self, i.ID)
			}
			return nil
		}),
	}
	f := c.Flags()
	f.StringVar(&input, "input", "", "input: JSON, @FILE, or - for standard input")
	f.StringVar(&r.BusinessKey, "key", "", "business key: the application's own key for the instance")
	f.StringVar(&r.StartKey, "start-key", "", "makes a repeat recognisable")
	f.StringVar(&r.InstanceID, "id", "", "id of the instance (default: the node chooses one)")
	f.StringVar(&r.Version, "definition-version", "", "version of the definition (default: the highest published)")
	textFlags(f, &r, "Definition", "BusinessKey", "StartKey", "InstanceID", "Version")
	f.StringVar(&first.Type, "signal", "", "type of an event for the instance, whether it begins or is there")
	f.StringVar(&data, "signal-data", "", "data of the event: JSON, @FILE, or -")
	f.StringVar(&first.SignalID, "signal-id", "", "a repeat of the event with the same id is applied once")
	f.Var(&wait, "wait", "wait up to this long (at most 60s) for the instance's end")
	return c
}

func (a *app) started(i client.InstanceDetail, created, full bool) error {
	if a.json {
		return a.page.print(i)
	}
	verb := "started"
	if !created {
		verb = "started before:"
	}
	fmt.Fprintf(a.page.out, "%s %s (%s@%s, %s)\n", verb, i.ID, i.Definition, i.Version, i.Status)
	if i.Disposition != "" {
		fmt.Fprintf(a.page.out, "signal %s\n", i.Disposition)
	}
	if full && len(i.Output) > 0 {
		fmt.Fprintf(a.page.out, "output %s\n", pretty(i.Output, "       "))
	}
	return nil
}

func signalCommand(a *app) *cobra.Command {
	var r client.SignalRequest
	var data string
	c := &cobra.Command{
		Use:   "signal ID --type TYPE",
		Short: "Signal an instance",
		Long: `Signal an instance.

With --sender and --sequence (1, 2, 3...) the signals of a sender are applied in
this order; one that comes before its turn waits. Without --type such a signal
takes its number and says nothing: so closes a gap whoever knows that nothing
will come.`,
		Args: cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			var err error
			if r.Data, err = a.given.document("data", data); err != nil {
				return err
			}
			got, err := c.Signal(ctx, args[0], r)
			if err != nil || a.json {
				return a.page.orPrint(got, err)
			}
			fmt.Fprintf(a.page.out, "signalled %s: %s (signal %s)\n", got.InstanceID, got.Disposition, got.SignalID)
			return nil
		}),
	}
	f := c.Flags()
	f.StringVar(&r.Type, "type", "", "type of the event, as the definition listens for it")
	f.StringVar(&data, "data", "", "data: JSON, @FILE, or - for standard input")
	f.StringVar(&r.SignalID, "signal-id", "", "a repeat with the same id is recorded once")
	f.StringVar(&r.DedupeKey, "dedupe-key", "", "a key of your own instead: of all that comes with it, on whatever way, the first is applied")
	sequenceFlags(f, &r.Sender, &r.Sequence)
	c.MarkFlagsOneRequired("type", "sequence")
	return c
}

// sequenceFlags are those by which a sender puts what it says in order.
func sequenceFlags(f *pflag.FlagSet, sender *string, sequence *int64) {
	f.StringVar(sender, "sender", "", "who counts what they send to the instance")
	f.Int64Var(sequence, "sequence", 0, "of the sender at the instance, from 1: applied in this order")
}

func eventCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "event FILE",
		Short: "Publish a CloudEvent in JSON to every instance that waits for it; - is standard input",
		Args:  cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			event, err := a.given.read(strings.TrimPrefix(args[0], "@")) // as --data takes a file
			if err != nil {
				return err
			}
			n, err := c.Event(ctx, event)
			if err != nil || a.json {
				return a.page.orPrint(client.Reached{Reached: n}, err)
			}
			fmt.Fprintf(a.page.out, "reached %d\n", n)
			return nil
		}),
	}
}

func showCommand(a *app) *cobra.Command {
	var timeline bool
	var at int64
	c := &cobra.Command{
		Use:   "show ID",
		Short: "Show an instance: what it waits for, what it came to, and how",
		Args:  cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			i, err := c.Instance(ctx, args[0])
			if err != nil {
				return err
			}
			if !timeline {
				if a.json {
					return a.page.print(i)
				}
				return a.page.showInstance(i)
			}
			p, err := stream(ctx, c, args[0])
			if p.Next != "" {
				fmt.Fprintf(a.err, "only the first %d entries are shown: there may be more behind position %s\n", len(p.Items), p.Next)
			}
			if err != nil || a.json {
				return a.page.orPrint(p, err)
			}
			if err := a.page.showInstance(i); err != nil {
				return err
			}
			fmt.Fprintln(a.page.out)
			return a.page.showTimeline(p.Items)
		}),
	}
	c.Flags().BoolVar(&timeline, "timeline", false, "every message of the instance, in order")
	c.Flags().Int64Var(&at, "at", 0, "the state after the turn of this position of the stream; with --store or a setting of it, without a bound")
	c.MarkFlagsMutuallyExclusive("at", "timeline")
	now := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		switch f := cmd.Flags(); {
		case !f.Changed("at") && (f.Changed("store-url") || f.Changed("config")):
			return usage("settings are for --at: without it a node is asked, or the database of --store")
		case !f.Changed("at"):
			return now(cmd, args)
		case a.store != "" || f.Changed("store-url") || f.Changed("config"):
			return showAt(a, cmd, args[0], at)
		}
		return a.with(func(ctx context.Context, c *client.Client, args []string) error {
			i, err := c.InstanceAt(ctx, args[0], at)
			if err != nil || a.json {
				return a.page.orPrint(i, err)
			}
			return a.page.showInstance(i)
		})(cmd, args)
	}
	config.Flags(c.Flags())
	return c
}

func whyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "why ID",
		Short: "Say why an instance does not move, and what would move it",
		Args:  cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			w, err := c.Why(ctx, args[0])
			if err != nil || a.json {
				return a.page.orPrint(w, err)
			}
			fmt.Fprintf(a.page.out, "%s is %s since %s\n", w.InstanceID, w.Status, a.page.ago(w.Since))
			for _, r := range w.Reasons {
				fmt.Fprintf(a.page.out, "  %s: %s%s\n", r.Code, r.Text, inBrackets(r.Pointer))
				if r.Hint != "" {
					fmt.Fprintf(a.page.out, "    %s\n", r.Hint)
				}
			}
			return nil
		}),
	}
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return " [" + s + "]"
}

// Limits of a timeline.
const (
	streamPage = 500
	streamMax  = 100_000
)

// stream reads the whole stream of an instance, or as much of it as is shown, with what comes next.
func stream(ctx context.Context, c *client.Client, id string) (all client.Page[client.Entry], err error) {
	all.Items = []client.Entry{}
	var after int64
	for len(all.Items) < streamMax {
		p, err := c.Stream(ctx, id, after, streamPage)
		if err != nil {
			return all, err
		}
		all.Items = append(all.Items, p.Items...)
		if all.Next = p.Next; p.Next == "" {
			break
		}
		after = p.Items[len(p.Items)-1].Position
	}
	return all, nil
}

func listCommand(a *app) *cobra.Command {
	var q client.InstanceQuery
	c := &cobra.Command{
		Use:   "list",
		Short: "List instances, newest start first",
		Long: `List instances, newest start first.

--where has conditions with "and" between them, each a name, a comparison (=, !=,
<, <=, >, >=, in, startsWith) and a value: "text", 12.5, true, 2026-01-31,
2026-01-31T12:00:00Z. A name is a search attribute that the definition declares,
or state, status, businessKey, startedAt, updatedAt. An instance without a value
fits no condition on it.`,
		Args: cobra.NoArgs,
		RunE: a.with(func(ctx context.Context, c *client.Client, _ []string) error {
			p, err := c.Instances(ctx, q)
			if err != nil || a.json {
				return a.page.orPrint(p, err)
			}
			t := a.page.tableAndMore([]string{"ENDED", "PARENT", "CORRELATION", "ERROR"}, "INSTANCE", "DEFINITION", "STATUS", "AT", "KEY", "STARTED", "UPDATED")
			for _, i := range p.Items {
				status := i.Status
				if i.Error != nil && i.Error.Type == compensate.TypeStuck { // or an error of the same type that its author raised
					d, err := c.Instance(ctx, i.ID)
					if err != nil {
						return err
					}
					if d.Why != nil && len(d.Reversals) > 0 {
						status += ", compensation stuck"
					}
				}
				t.row(i.ID, i.Definition+"@"+i.Version, status, i.State, i.BusinessKey, a.page.ago(i.StartedAt), a.page.ago(i.UpdatedAt),
					a.page.ago(i.EndedAt), i.ParentID, i.CorrelationID, failureText(i.Error))
			}
			return t.end(len(p.Items), p.Next, "no instance")
		}),
	}
	f := c.Flags()
	f.StringVar(&q.Definition, "definition", "", "only of this definition: namespace/name")
	f.StringVar(&q.Version, "version", "", "only of this version of the definition")
	f.StringVar(&q.Status, "status", "", "only in this status")
	f.StringVar(&q.BusinessKey, "key", "", "only with this business key")
	f.StringVar(&q.Parent, "parent", "", "only those that this instance started")
	f.StringVar(&q.ErrorCode, "error-code", "", "only those at an error of this type, or of the part of it behind the last /")
	f.StringVar(&q.Text, "text", "", "only those with this text in the words of that error")
	f.StringVar(&q.OlderThan, "older-than", "", "only those that have not visibly changed for so long: 1h, 30d, P30D")
	f.StringVar(&q.Where, "where", "", `conditions on search attributes and fields: 'amount > 1000 and state = "Review"'`)
	f.StringVar(&q.OrderBy, "order-by", "", "only those that have this search attribute, in its order; -NAME: the largest first")
	listFlags(c, &q.List)
	return c
}

func operationCommand(a *app, name, short string) *cobra.Command {
	var output, wait string
	var compensates bool
	var seen int64
	c := &cobra.Command{
		Use:   name + " ID",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			data, err := a.given.document("output", output)
			if err != nil {
				return err
			}
			operation := name
			if compensates {
				operation = string(engine.Compensate)
			}
			i, err := c.Operate(ctx, args[0], client.OperationRequest{Operation: operation, Output: data, Wait: wait, StateVersion: seen})
			if err != nil || a.json {
				return a.page.orPrint(i, err)
			}
			if i.Disposition == string(engine.Queued) {
				fmt.Fprintf(a.page.out, "%s: handed on; a node with the Go code of %s@%s does it, and %s is %s until then\n", name, i.Definition, i.Version, i.ID, i.Status)
				return nil
			}
			fmt.Fprintf(a.page.out, "%s: %s is %s\n", name, i.ID, i.Status)
			return nil
		}),
	}
	c.Flags().Int64Var(&seen, "state-version", 0, "only while the instance is at this version, as show --json says: so a repeat does not act on the next task")
	switch engine.Operation(name) {
	case engine.Cancel:
		c.Flags().BoolVar(&compensates, "compensate", false, "compensate what the instance has done, the last first")
	case operate.RunNow:
		c.Flags().StringVar(&wait, "wait", "", "pointer of the task that waits, where several do")
	case engine.Skip:
		c.Flags().StringVar(&output, "output", "", "what the task is taken to have answered: JSON, @FILE, or -")
	}
	return c
}
