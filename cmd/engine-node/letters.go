package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/aqueduct-engine/aqueduct/api/client"
)

// lettersWait is how long one request waits for a dead letter.
const lettersWait = 30 * time.Second

// letterSlack is by how much a dead letter may be older than one that came before it:
// what was made first need not be committed first, and clocks of nodes differ.
const letterSlack = time.Minute

// letterFeed tells new dead letters from those that were there.
type letterFeed struct {
	begun bool
	since time.Time // older ones are not new
	seen  map[string]time.Time
	known string // the newest
}

// fresh are those of a list, newest first, that are new, the oldest first. What is
// there at first is not.
func (f *letterFeed) fresh(list []client.DeadLetter) []client.DeadLetter {
	f.known = ""
	if len(list) > 0 {
		f.known = list[0].ID
	}
	var fresh []client.DeadLetter
	for _, d := range slices.Backward(list) {
		if _, ok := f.seen[d.ID]; !ok && f.begun && !d.DiedAt.Before(f.since) {
			fresh = append(fresh, d)
		}
		f.seen[d.ID] = d.DiedAt
		if s := d.DiedAt.Add(-letterSlack); s.After(f.since) {
			f.since = s
		}
	}
	f.begun = true
	for id, died := range f.seen {
		if died.Before(f.since) {
			delete(f.seen, id)
		}
	}
	return fresh
}

func watchLettersCommand(a *app) *cobra.Command {
	var queue, reason, instance string
	var count int
	c := &cobra.Command{
		Use:   "watch",
		Short: "Wait for dead letters and print them as they come",
		Long: `Wait for dead letters and print each as it comes, until it is interrupted or as many
as --count have come. What was there before is not printed: dlq list shows it. With --json
each is a line.`,
		Args: cobra.NoArgs,
		RunE: a.with(func(ctx context.Context, c *client.Client, _ []string) error {
			p, err := c.DeadLetters(ctx, queue, reason, instance, client.List{Limit: 500})
			if err != nil {
				return err
			}
			f := &letterFeed{seen: map[string]time.Time{}}
			f.fresh(p.Items)
			for n := 0; ; {
				if p, err = c.AwaitDeadLetters(ctx, queue, reason, instance, f.known, lettersWait); err != nil {
					if ctx.Err() != nil {
						return nil // it was interrupted
					}
					return err
				}
				for _, d := range f.fresh(p.Items) {
					if err := a.printLetter(d); err != nil {
						return err
					}
					if n++; n == count {
						return nil
					}
				}
			}
		}),
	}
	flags := c.Flags()
	flags.StringVar(&queue, "queue", "", "only of this queue: signal, schedule, command")
	flags.StringVar(&reason, "reason", "", "only with this code")
	flags.StringVar(&instance, "instance", "", "only of this instance")
	flags.IntVar(&count, "count", 0, "end after so many; 0 = never")
	return c
}

func (a *app) printLetter(d client.DeadLetter) error {
	if a.json {
		line, err := json.Marshal(d)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.page.out, "%s\n", line)
		return err
	}
	_, err := fmt.Fprintf(a.page.out, "%s  %s  %s  %s  %s\n", d.DiedAt.UTC().Format(time.RFC3339), d.ID, d.Queue, d.Reason, d.InstanceID)
	return err
}
