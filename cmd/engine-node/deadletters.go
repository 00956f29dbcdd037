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
	"github.com/aqueduct-engine/aqueduct/problem"
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

// next has what a node knows that the feed may not, newest first: as many pages as that
// takes, for much may have died while no node answered.
func (f *deadLetterFeed) next(ctx context.Context, c *client.Client, q client.DeadLetterQuery) ([]client.DeadLetter, error) {
	q.Wait, q.Known = deadLettersWait, f.known
	var list []client.DeadLetter
	for {
		p, err := c.DeadLetters(ctx, q)
		if err != nil {
			return nil, err
		}
		list = append(list, p.Items...)
		if p.Next == "" || f.reaches(list) {
			return list, nil
		}
		q.Wait, q.After = 0, p.Next
	}
}

// reaches says that what follows a list, newest first, is not new.
func (f *deadLetterFeed) reaches(list []client.DeadLetter) bool {
	if len(list) == 0 {
		return true
	}
	last := list[len(list)-1]
	_, ok := f.seen[last.ID]
	return ok || last.DiedAt.Before(f.since)
}

// Pauses of who watches, before they ask again where no node answers: the first, doubled
// up to the longest.
const (
	watchPause    = 250 * time.Millisecond
	watchPauseMax = 5 * time.Second
)

// watch gives each dead letter that comes to show, until the context ends, or show says
// that it was the last. A node that does not answer comes again, or another in its place.
func (f *deadLetterFeed) watch(ctx context.Context, c *client.Client, q client.DeadLetterQuery, complain io.Writer, show func(client.DeadLetter) (bool, error)) error {
	for pause := watchPause; ; {
		list, err := f.next(ctx, c, q)
		switch {
		case ctx.Err() != nil:
			return nil // it was interrupted
		case problem.KindOf(err) == problem.Unavailable:
			if pause == watchPause {
				fmt.Fprintf(complain, "%v; it is asked again until it answers\n", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
			pause = min(2*pause, watchPauseMax)
			continue
		case err != nil:
			return err
		}
		pause = watchPause
		for _, d := range f.fresh(list) {
			if over, err := show(d); over || err != nil {
				return err
			}
		}
	}
}

func watchDeadLettersCommand(a *app) *cobra.Command {
	var q client.DeadLetterQuery
	var count int
	c := &cobra.Command{
		Use:   "watch",
		Short: "Wait for dead letters and print them as they come",
		Long: `Wait for dead letters and print each as it comes, until it is interrupted or as many
as --count have come. What was there before is not printed: dlq list shows it. While no node
answers it asks again, and prints then what has come meanwhile. With --json each is a line.`,
		Args: cobra.NoArgs,
		RunE: a.with(func(ctx context.Context, c *client.Client, _ []string) error {
			q.Limit = projections.MaxLimit
			p, err := c.DeadLetters(ctx, q)
			if err != nil {
				return err
			}
			f := &deadLetterFeed{seen: map[string]time.Time{}}
			f.fresh(p.Items)
			n := 0
			return f.watch(ctx, c, q, a.err, func(d client.DeadLetter) (bool, error) {
				n++
				return n == count, printDeadLetter(a.page.out, d, a.json)
			})
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
	f.StringVar(&q.Definition, "definition", "", "only of instances of this definition: namespace/name")
	f.StringVar(&q.Text, "text", "", "only with this text in the words of the reason")
}
