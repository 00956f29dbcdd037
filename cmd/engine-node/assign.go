package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/aqueduct-engine/aqueduct/api/client"
)

func claimNextCommand(a *app) *cobra.Command {
	var r client.ClaimNextRequest
	c := &cobra.Command{
		Use:   "claim-next",
		Short: "Reserve the most urgent tasks that a user may do",
		Args:  cobra.NoArgs,
		RunE: a.with(func(ctx context.Context, c *client.Client, _ []string) error {
			if r.Count < 1 {
				return usage("--count is %d: it is more than nothing", r.Count)
			}
			p, err := c.ClaimNext(ctx, r)
			if err != nil || a.json {
				return a.page.orPrint(p, err)
			}
			t := a.page.table("TASK", "TITLE", "DUE", "INSTANCE")
			for _, k := range p.Items {
				t.row(k.ID, taskTitle(k), a.page.ago(k.DueAt), k.InstanceID)
			}
			return t.end(len(p.Items), "", "no task")
		}),
	}
	userFlag(c, &r.User)
	c.Flags().StringSliceVar(&r.Groups, "group", nil, "a group of the user; may be repeated")
	c.Flags().IntVar(&r.Count, "count", 1, "at most so many")
	return c
}

func delegateCommand(a *app) *cobra.Command {
	var r client.DelegateRequest
	c := &cobra.Command{
		Use:   "delegate TASK",
		Short: "Hand a task on to another user",
		Args:  cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			t, err := c.Delegate(ctx, args[0], r)
			return a.worked(t, err, "reserved for "+r.To)
		}),
	}
	userFlag(c, &r.User)
	c.Flags().StringVar(&r.To, "to", "", "who gets it")
	return c
}

func reassignCommand(a *app) *cobra.Command {
	var r client.ReassignRequest
	c := &cobra.Command{
		Use:   "reassign TASK",
		Short: "Give a task to a user, whoever has it: an administrator's",
		Args:  cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			t, err := c.Reassign(ctx, args[0], r)
			what := "reserved for " + r.To
			if r.To == "" {
				what = "given back to its candidates"
			}
			return a.worked(t, err, what)
		}),
	}
	userFlag(c, &r.User)
	c.Flags().StringVar(&r.To, "to", "", "who gets it; absent = its candidates")
	return c
}
