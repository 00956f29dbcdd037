package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/projections"
)

// deadLettersWait is how long one request waits for a dead letter.
const deadLettersWait = 30 * time.Second

// deadLetterSlack is by how much a dead letter may be older than one that came before it:
// what was made first need not be committed first, and clocks of nodes differ.
const deadLetterSlack = time.Minute

// deadLetterFeed tells new dead letters from those that were there.
type deadLetterFeed struct {
	begun bool
	since time.Time // older ones are not new
	seen  map[string]time.Time
	known string // the newest
}

// fresh are those of a list, newest first, that are new, the oldest first. What is
// there at first is not.
func (f *deadLetterFeed) fresh(list []client.DeadLetter) []client.DeadLetter {
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
		if s := d.DiedAt.Add(-deadLetterSlack); s.After(f.since) {
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

func watchDeadLettersCommand(a *app) *cobra.Command {
	var q client.DeadLetterQuery
	var count int
	c := &cobra.Command{
		Use:   "watch",
		Short: "Wait for dead letters and print them as they come",
		Long: `Wait for dead letters and print each as it comes, until it is interrupted or as many
as --count have come. What was there before is not printed: dlq list shows it. With --json
each is a line.`,
		Args: cobra.NoArgs,
		RunE: a.with(func(ctx context.Context, c *client.Client, _ []string) error {
			q.Limit = projections.MaxLimit
			p, err := c.DeadLetters(ctx, q)
			if err != nil {
				return err
			}
			q.Wait = deadLettersWait
			f := &deadLetterFeed{seen: map[string]time.Time{}}
			f.fresh(p.Items)
			for n := 0; ; {
				q.Known = f.known
				if p, err = c.DeadLetters(ctx, q); err != nil {
					if ctx.Err() != nil {
						return nil // it was interrupted
					}
					return err
				}
				for _, d := range f.fresh(p.Items) {
					if err := printDeadLetter(a.page.out, d, a.json); err != nil {
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
	deadLetterFlags(flags, &q)
	flags.IntVar(&count, "count", 0, "end after so many; 0 = never")
	return c
}

func printDeadLetter(out io.Writer, d client.DeadLetter, asJSON bool) error {
	if asJSON {
		line, err := json.Marshal(d)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s\n", line)
		return err
	}
	_, err := fmt.Fprintf(out, "%s  %s  %s  %s  %s\n", d.DiedAt.UTC().Format(time.RFC3339), d.ID, d.Queue, d.Reason, d.InstanceID)
	return err
}

// deadLetterFlags say which dead letters are meant.
func deadLetterFlags(f *pflag.FlagSet, q *client.DeadLetterQuery) {
	f.StringVar(&q.Queue, "queue", "", "only of this queue: signal, schedule, command")
	f.StringVar(&q.Reason, "reason", "", "only with this code")
	f.StringVar(&q.InstanceID, "instance", "", "only of this instance")
}
