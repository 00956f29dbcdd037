package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/aqueduct-engine/aqueduct/api/client"
)

func commandsCommand(a *app) *cobra.Command {
	return group("commands", "Work on pending commands: what instances want of the outside, and is not done yet",
		listCommandsCommand(a), showCommandCommand(a), claimCommandCommand(a), retryCommandCommand(a),
		settleCommand(a, "complete", "Complete a pending command, whichever node performs it"),
		settleCommand(a, "fail", "Fail a pending command, whichever node performs it"))
}

func listCommandsCommand(a *app) *cobra.Command {
	var q client.CommandQuery
	c := &cobra.Command{
		Use:   "list",
		Short: "List pending commands, by instance and position",
		Args:  cobra.NoArgs,
		RunE: a.with(func(ctx context.Context, c *client.Client, _ []string) error {
			p, err := c.Commands(ctx, q)
			if err != nil || a.json {
				return a.page.orPrint(p, err)
			}
			t := a.page.tableAndMore([]string{"AT", "DELIVERED", "DELIVERIES", "OUTCOME", "KEY"}, "COMMAND", "NAME", "TARGET", "CREATED", "ATTEMPTS", "NEXT", "CLAIMED BY", "LAST ERROR")
			for _, x := range p.Items {
				t.row(commandText(x), x.Name, x.Target, a.page.ago(x.CreatedAt), fmt.Sprint(x.Attempts), a.page.ago(x.NextAt), x.ClaimedBy, x.LastError,
					x.Pointer, a.page.ago(x.DeliveredAt), fmt.Sprint(x.Deliveries), x.Outcome, x.Key)
			}
			return t.end(len(p.Items), p.Next, "no command is pending")
		}),
	}
	f := c.Flags()
	f.StringVar(&q.InstanceID, "instance", "", "only of this instance")
	f.StringVar(&q.Type, "type", "", "only with this name in the definition, for this target (http, a function, event:publish), or of entries of this type (Call, EventEmitted)")
	f.StringVar(&q.OlderThan, "older-than", "", "only those made longer ago: a duration such as PT5M or 30d")
	listFlags(c, &q.List)
	return c
}

// commandText names a command as the verbs take it.
func commandText(c client.Command) string { return fmt.Sprintf("%s/%d", c.InstanceID, c.Position) }

func showCommandCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show INSTANCE/POSITION",
		Short: "Show a command with its input, also one that is settled",
		Args:  cobra.ExactArgs(1),
		RunE:  onCommand(a, (*client.Client).Command),
	}
}

func claimCommandCommand(a *app) *cobra.Command {
	var r client.ClaimCommandRequest
	c := &cobra.Command{
		Use:   "claim INSTANCE/POSITION",
		Short: "Claim a pending command in the name of --actor, so that no node tries it",
		Long: `Claim a pending command that no node performs, in the name of --actor. Until the lease ends
no node tries it, and nobody else may claim or end it; then it is tried again, under the
same key. Claim it again for a longer lease; end it by complete or fail.`,
		Args: cobra.ExactArgs(1),
		RunE: onCommand(a, func(c *client.Client, ctx context.Context, id string, position int64) (client.CommandDetail, error) {
			return c.ClaimCommand(ctx, id, position, r)
		}),
	}
	c.Flags().StringVar(&r.Lease, "lease", "", "duration, such as PT1H or 2d, after which nodes try it again (default: PT5M)")
	return c
}

func retryCommandCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "retry INSTANCE/POSITION",
		Short: "Have nodes try a pending command at once, whoever has claimed it outside",
		Args:  cobra.ExactArgs(1),
		RunE:  onCommand(a, (*client.Client).RetryCommand),
	}
}

// onCommand runs what shows a command.
//
//go:noinline
func onCommand(a *app, do func(c *client.Client, ctx context.Context, id string, position int64) (client.CommandDetail, error)) func(*cobra.Command, []string) error {
	return a.with(func(ctx context.Context, c *client.Client, args []string) error {
		id, position, err := commandKey(args[0])
		if err != nil {
			return err
		}
		d, err := do(c, ctx, id, position)
		if err != nil || a.json {
			return a.page.orPrint(d, err)
		}
		state := "pending"
		switch d.State {
		case "given-up", "discarded":
			state = d.State
		case "processed":
			state = "settled"
		}
		again := ""
		if r := d.Retry; r != nil {
			again = fmt.Sprintf("after %s, at most %s, for %s", r.Delay, r.DelayMax, r.Limit.Duration)
		}
		a.page.fields("command", commandText(d.Command), "state", state, "name", d.Name, "target", d.Target, "key", d.Key, "task", d.Pointer, "await", d.Await,
			"created", a.page.moment(d.CreatedAt), "settled", a.page.momentOrNone(d.ProcessedAt), "claimed by", d.ClaimedBy,
			"attempts", fmt.Sprint(d.Attempts), "next", a.page.momentOrNone(d.NextAt), "told again", again, "last error", d.LastError, "input", oneLine(string(d.Input)))
		return nil
	})
}

func settleCommand(a *app, verb, short string) *cobra.Command {
	var r client.SettleCommandRequest
	var output string
	var failure client.AckError
	c := &cobra.Command{
		Use:   verb + " INSTANCE/POSITION",
		Short: short,
		Long: short + `: the instance goes on with what is said here. What the
node makes of it then is stale, and its attempt is aborted where it can be.`,
		Args: cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			id, position, err := commandKey(args[0])
			if err != nil {
				return err
			}
			do, past := c.CompleteCommand, "completed"
			if verb == "fail" {
				do, past = c.FailCommand, "failed"
			}
			if r.Output, err = a.given.document("output", output); err != nil {
				return err
			}
			if failure != (client.AckError{}) {
				r.Error = &failure
			}
			got, err := do(ctx, id, position, r)
			if err != nil || a.json {
				return a.page.orPrint(got, err)
			}
			fmt.Fprintf(a.page.out, "%s %s/%d: %s\n", past, got.InstanceID, got.Position, got.Disposition)
			return nil
		}),
	}
	if f := c.Flags(); verb == "fail" {
		failureFlags(f, &failure, "")
	} else {
		f.StringVar(&output, "output", "", "result of the call: JSON, @FILE, or - for standard input")
	}
	return c
}
