package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aqueduct-engine/aqueduct/api/client"
)

func tasksCommand(a *app) *cobra.Command {
	return group("tasks", "Work on human tasks",
		listTasksCommand(a), showTaskCommand(a), claimCommand(a), claimNextCommand(a), commentCommand(a), releaseCommand(a),
		delegateCommand(a), reassignCommand(a), completeCommand(a))
}

func listTasksCommand(a *app) *cobra.Command {
	var q client.TaskQuery
	c := &cobra.Command{
		Use:   "list",
		Short: "List tasks, most urgent first",
		Args:  cobra.NoArgs,
		RunE: a.with(func(ctx context.Context, c *client.Client, _ []string) error {
			p, err := c.Tasks(ctx, q)
			if err != nil || a.json {
				return a.page.orPrint(p, err)
			}
			t := a.page.tableAndMore([]string{"KEY", "DEFINITION", "PRIORITY", "GROUPS", "USERS", "OUTCOME"}, "TASK", "TITLE", "STATUS", "ASSIGNEE", "CREATED", "DUE", "INSTANCE")
			for _, k := range p.Items {
				t.row(k.ID, taskTitle(k), k.Status, k.Assignee, a.page.ago(k.CreatedAt), a.page.ago(k.DueAt), k.InstanceID,
					k.BusinessKey, k.Definition, fmt.Sprint(k.Priority), strings.Join(k.CandidateGroups, " "), strings.Join(k.CandidateUsers, " "), k.Outcome)
			}
			return t.end(len(p.Items), p.Next, "no task")
		}),
	}
	f := c.Flags()
	f.StringVar(&q.Status, "status", "", "only in this status: open, all, ready, reserved, completed, cancelled, expired (default: open)")
	f.StringVar(&q.InstanceID, "instance", "", "only of this instance")
	f.StringVar(&q.Assignee, "assignee", "", "only reserved for this user")
	f.StringVar(&q.User, "user", "", "only this user's: assigned to them, or theirs or their groups' to claim")
	f.StringSliceVar(&q.Groups, "group", nil, "a group of the user; may be repeated; without a user: only what its members may claim")
	listFlags(c, &q.List)
	return c
}

func taskTitle(t client.Task) string {
	if t.Title != "" {
		return t.Title
	}
	return t.Name
}

func showTaskCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show TASK",
		Short: "Show a task and what happened to it",
		Args:  cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			t, err := c.Task(ctx, args[0])
			if err != nil || a.json {
				return a.page.orPrint(t, err)
			}
			return a.page.showTask(t)
		}),
	}
}

// userFlag is the flag that says who works on a task.
func userFlag(c *cobra.Command, user *string) {
	c.Flags().StringVar(user, "user", os.Getenv("USER"), "who works on the task")
}

func claimCommand(a *app) *cobra.Command {
	var r client.ClaimRequest
	c := &cobra.Command{
		Use:   "claim TASK",
		Short: "Reserve a task for a user",
		Args:  cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			t, err := c.Claim(ctx, args[0], r)
			return a.worked(t, err, "reserved for "+r.User)
		}),
	}
	userFlag(c, &r.User)
	c.Flags().StringSliceVar(&r.Groups, "group", nil, "a group of the user; may be repeated")
	return c
}

func commentCommand(a *app) *cobra.Command {
	var r client.CommentRequest
	c := &cobra.Command{
		Use:   "comment TASK TEXT",
		Short: "Say something of an open task, which stays in its history",
		Args:  cobra.ExactArgs(2),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			r.Text = args[1]
			t, err := c.Comment(ctx, args[0], r)
			return a.worked(t, err, "commented")
		}),
	}
	userFlag(c, &r.User)
	return c
}

func releaseCommand(a *app) *cobra.Command {
	var r client.ReleaseRequest
	c := &cobra.Command{
		Use:   "release TASK",
		Short: "Give a task back to its candidates",
		Args:  cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			t, err := c.Release(ctx, args[0], r)
			return a.worked(t, err, "released")
		}),
	}
	userFlag(c, &r.User)
	return c
}

func completeCommand(a *app) *cobra.Command {
	var r client.CompleteRequest
	var data string
	c := &cobra.Command{
		Use:   "complete TASK",
		Short: "Answer a task that is reserved for the user",
		Args:  cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			var err error
			if r.Data, err = a.given.document("data", data); err != nil {
				return err
			}
			t, err := c.Complete(ctx, args[0], r)
			return a.worked(t, err, "completed by "+r.User)
		}),
	}
	userFlag(c, &r.User)
	c.Flags().StringSliceVar(&r.Groups, "group", nil, "a group of the user now; may be repeated")
	c.Flags().StringVar(&r.Outcome, "outcome", "", "one of the task's outcomes")
	c.Flags().StringVar(&data, "data", "", "data: JSON, @FILE, or - for standard input")
	return c
}

// worked prints what came of working on a task.
func (a *app) worked(t client.TaskDetail, err error, what string) error {
	if err != nil || a.json {
		return a.page.orPrint(t, err)
	}
	fmt.Fprintf(a.page.out, "task %s is %s\n", t.ID, what)
	return nil
}

func deadLettersCommand(a *app) *cobra.Command {
	var q client.DeadLetterQuery
	list := &cobra.Command{
		Use:   "list",
		Short: "List dead letters, newest first",
		Args:  cobra.NoArgs,
		RunE: a.with(func(ctx context.Context, c *client.Client, _ []string) error {
			p, err := c.DeadLetters(ctx, q)
			if err != nil || a.json {
				return a.page.orPrint(p, err)
			}
			t := a.page.table("DEAD LETTER", "QUEUE", "REASON", "ATTEMPTS", "DIED", "INSTANCE")
			for _, d := range p.Items {
				t.row(d.ID, d.Queue, d.Reason, fmt.Sprint(d.Attempts), a.page.ago(d.DiedAt), d.InstanceID)
			}
			return t.end(len(p.Items), p.Next, "no dead letter")
		}),
	}
	deadLetterFlags(list.Flags(), &q)
	list.Flags().StringVar(&q.OlderThan, "older-than", "", "only those that died longer ago: 1h, 30d, P30D")
	listFlags(list, &q.List)
	var of client.DeadLetterQuery
	reasons := &cobra.Command{
		Use:   "reasons",
		Short: "Count dead letters by reason, the most frequent first",
		Args:  cobra.NoArgs,
		RunE: a.with(func(ctx context.Context, c *client.Client, _ []string) error {
			r, err := c.DeadLetterReasons(ctx, of)
			if err != nil || a.json {
				return a.page.orPrint(r, err)
			}
			t := a.page.table("DEAD LETTERS", "REASON")
			for _, x := range r.Items {
				t.row(fmt.Sprint(x.DeadLetters), x.Reason)
			}
			if r.More {
				t.row("more", "older ones, which are not counted")
			}
			return t.end(len(r.Items), "", "no dead letter")
		}),
	}
	deadLetterFlags(reasons.Flags(), &of)
	reasons.Flags().StringVar(&of.OlderThan, "older-than", "", "only those that died longer ago: 1h, 30d, P30D")
	show := &cobra.Command{
		Use:   "show LETTER",
		Short: "Show a dead letter whole: what died, its edit, and the command that it is about",
		Args:  cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			d, err := c.DeadLetter(ctx, args[0])
			if err != nil || a.json {
				return a.page.orPrint(d, err)
			}
			return a.page.showDeadLetter(d)
		}),
	}
	return group("dlq", "Work on dead letters", list, reasons, watchDeadLettersCommand(a), show, editDeadLetterCommand(a), diffDeadLetterCommand(a), replayDeadLettersCommand(a),
		discardDeadLettersCommand(a))
}

func discardDeadLettersCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "discard LETTER...",
		Short: "Remove a dead letter for good",
		Args:  cobra.MinimumNArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			var n discardCounts
			for i, id := range args {
				if err := c.Discard(ctx, id); err != nil {
					n.Failed, n.Left = ended(err, len(args)-i)
					return errors.Join(discardSummary(a, n), err)
				}
				n.Discarded++
				if !a.json {
					fmt.Fprintf(a.page.out, "discard: %s\n", id)
				}
			}
			return discardSummary(a, n)
		}),
	}
}

// discardCounts says what a command has discarded.
type discardCounts struct {
	Discarded int `json:"discarded"`
	Failed    int `json:"failed"`
	Left      int `json:"left"`
}

// discardSummary says it; to people where it says more than the lines before it.
func discardSummary(a *app, n discardCounts) (err error) {
	switch {
	case a.json:
		return a.page.print(n)
	case n.Failed+n.Left > 0 && n.Discarded+n.Failed+n.Left > 1:
		_, err = fmt.Fprintf(a.page.out, "discarded %d; %d failed, %d are left\n", n.Discarded, n.Failed, n.Left)
	}
	return err
}

func queuesCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "queues",
		Short: "Say how full the queues are",
		Args:  cobra.NoArgs,
		RunE: a.with(func(ctx context.Context, c *client.Client, _ []string) error {
			queues, err := c.Queues(ctx)
			if err != nil || a.json {
				return a.page.orPrint(client.Page[client.Queue]{Items: queues}, err)
			}
			t := a.page.table("QUEUE", "READY", "DELAYED", "LEASED", "OLDEST")
			for _, q := range queues {
				t.row(q.Name, fmt.Sprint(q.Ready), fmt.Sprint(q.Delayed), fmt.Sprint(q.Leased), a.page.ago(q.OldestAt))
			}
			return t.end(len(queues), "", "no queue")
		}),
	}
}
