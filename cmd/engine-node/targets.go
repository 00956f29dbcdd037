package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/problem"
)

func targetsCommand(a *app) *cobra.Command {
	list := &cobra.Command{
		Use:   "list",
		Short: "List where a node sends commands, with circuit breakers and what waits",
		Args:  cobra.NoArgs,
		RunE: a.ofNode(func(ctx context.Context, c *client.Client, _ []string) error {
			list, err := c.Targets(ctx)
			if err != nil || a.json {
				return a.page.orPrint(client.Page[client.Target]{Items: list}, err)
			}
			t := a.page.table("TARGET", "BREAKER", "FAILURES", "OPEN UNTIL", "RUNNING", "WAITING", "FOR")
			for _, x := range list {
				t.row(x.Name, x.Breaker, fmt.Sprint(x.Failures), a.page.ago(x.OpenUntil), fmt.Sprint(x.Running), fmt.Sprint(x.Waiting), x.WaitsFor)
			}
			return t.end(len(list), "", "the node has sent no command yet")
		}),
	}
	reset := &cobra.Command{
		Use:   "reset TARGET",
		Short: "Close the circuit breaker of a target on a node",
		Args:  cobra.ExactArgs(1),
		RunE: a.ofNode(func(ctx context.Context, c *client.Client, args []string) error {
			if err := c.ResetTarget(ctx, args[0]); err != nil || a.json {
				return a.page.orPrint(map[string]string{"target": args[0], "breaker": "closed"}, err)
			}
			fmt.Fprintf(a.page.out, "the circuit breaker of %s is closed\n", args[0])
			return nil
		}),
	}
	return group("targets", "Work on where a node sends commands: circuit breakers and what waits", list, reset)
}

func nodesCommand(a *app) *cobra.Command {
	return group("nodes", "See the nodes on a database", &cobra.Command{
		Use:   "list",
		Short: "List the nodes on the database, with their last sign of life",
		Args:  cobra.NoArgs,
		RunE: a.with(func(ctx context.Context, c *client.Client, _ []string) error {
			list, err := c.Nodes(ctx)
			if err != nil || a.json {
				return a.page.orPrint(client.Page[client.Node]{Items: list}, err)
			}
			t := a.page.table("NODE", "VERSION", "STARTED", "SEEN", "WITH WORKERS")
			for _, n := range list {
				t.row(n.Name, n.Version, a.page.ago(n.StartedAt), a.page.ago(n.SeenAt), fmt.Sprint(n.Held))
			}
			return t.end(len(list), "", "no node is on the database")
		}),
	})
}

// ofNode runs a verb on a node: what it asks for is in no database.
func (a *app) ofNode(do func(ctx context.Context, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	run := a.with(do)
	return func(cmd *cobra.Command, args []string) error {
		if a.store != "" {
			return problem.New(problem.Invalid, "cli.usage", "targets are a node's own, and are not in the database").WithHint("name a node with --server")
		}
		return run(cmd, args)
	}
}
