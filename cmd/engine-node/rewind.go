package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/problem"
)

func rewindCommand(a *app) *cobra.Command {
	var r client.RewindRequest
	var yes bool
	c := &cobra.Command{
		Use:   "rewind ID --to POSITION",
		Short: "Take an instance back to the end of an earlier turn",
		Long: `Take an instance back to what it was after the turn of a position of its stream, see
show ID --timeline. The task at which it stood begins anew, as after a retry. What the
outside was asked for since it is asked for again, under the same keys, so that it can
tell; with --new-keys under others. It is shown first, and done when you say so.`,
		Args: cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			if r.To < 1 {
				return usage("--to wants a position of the stream, from 1")
			}
			plan := r
			plan.DryRun = true
			would, err := c.Rewind(ctx, args[0], plan)
			if err != nil || r.DryRun && a.json {
				return a.page.orPrint(would, err)
			}
			if !a.json {
				a.page.rewind(would)
			}
			if r.DryRun {
				return nil
			}
			if !yes && !a.given.agrees(a) {
				return problem.New(problem.Conflict, "rewind.unconfirmed", "nothing was done").WithHint("--yes does it")
			}
			r.StateVersion = would.StateVersion
			did, err := c.Rewind(ctx, args[0], r)
			if err != nil || a.json {
				return a.page.orPrint(did, err)
			}
			fmt.Fprintf(a.page.out, "rewind: %s is %s\n", did.InstanceID, did.Status)
			return nil
		}),
	}
	f := c.Flags()
	f.Int64Var(&r.To, "to", 0, "position of the stream: the turn that has it is the last that counts")
	f.BoolVar(&r.NewKeys, "new-keys", false, "ask the outside under new keys, so that it does again what it did since")
	f.BoolVar(&r.DryRun, "dry-run", false, "say only what it would do")
	f.BoolVar(&yes, "yes", false, "do not ask")
	return c
}

// agrees asks whoever sits at a terminal.
func (g given) agrees(a *app) bool {
	f, ok := g.in.(*os.File)
	if !ok {
		return false
	}
	if s, err := f.Stat(); err != nil || s.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	fmt.Fprint(a.err, "rewind it? [y/N] ")
	var line [16]byte
	n, _ := f.Read(line[:]) // no answer is none
	return strings.EqualFold(strings.TrimSpace(string(line[:n])), "y")
}

// rewind shows what a rewind would do.
func (p *page) rewind(r client.Rewind) {
	fmt.Fprintf(p.out, "%s goes back to position %d\n", r.InstanceID, r.To)
	for _, w := range r.Waits {
		fmt.Fprintf(p.out, "  withdrawn: %s %s\n", w.Kind, w.Pointer)
	}
	for _, e := range r.Effects {
		again := "again under its key"
		switch {
		case r.NewKeys && e.OwnKey:
			again = "again under the key that its author gives it,"
		case r.NewKeys:
			again = "done again, under a new key; it had"
		}
		fmt.Fprintf(p.out, "  %s %s, %s %s\n", e.Target, e.Pointer, again, e.Key)
	}
	if r.More > 0 {
		fmt.Fprintf(p.out, "  and %d more\n", r.More)
	}
	if r.Signals > 0 {
		fmt.Fprintf(p.out, "  %d signals that were taken since are not taken again\n", r.Signals)
	}
}
