package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// timers: many sleepers due at one moment.
func timers(ctx context.Context, o *Options) ([]Row, error) {
	row := Row{Workload: "timer", N: o.count(10_000, 200)}
	err := o.fresh(ctx, "timer", []string{sleepDocument}, func(n *node, _ string) error {
		spent := o.spending(n.db)
		due, done, err := n.sleepers(ctx, row.N, max(2*time.Second, time.Duration(row.N)*400*time.Microsecond))
		if err != nil {
			return err
		}
		err = lateness(ctx, done, due, &row)
		spent(&row)
		return err
	})
	return []Row{row}, err
}

var sleepDocument = document("sleep", "  - sleep: {wait: '${ .pause }'}\n")

// sleepers starts instances that are all due at one moment, so far ahead, or farther where they cannot be started by
// then: those of before have ended when the next are started.
func (n *node) sleepers(ctx context.Context, count int, ahead time.Duration) (due time.Time, done []<-chan time.Time, err error) {
	for try := 1; ; try++ {
		due, done, err = n.asleep(ctx, count, ahead)
		if !errors.Is(err, errLate) || try == sleepTries {
			return due, done, err
		}
		for _, d := range done {
			if _, err := within(ctx, d); err != nil {
				return due, nil, err
			}
		}
		ahead *= 2
	}
}

const sleepTries = 8

var errLate = errors.New("the sleepers could not be started before they were due")

func (n *node) asleep(ctx context.Context, count int, ahead time.Duration) (due time.Time, done []<-chan time.Time, err error) {
	due = time.Now().Add(ahead).Truncate(time.Millisecond)
	ids, done := make([]string, count), make([]<-chan time.Time, count)
	for i := range ids {
		ids[i] = newID()
	}
	err = each(count, callers, func(i int) error {
		var err error
		pause := due.Sub(time.Now().Truncate(time.Microsecond))
		done[i], err = n.launch(ctx, "sleep", ids[i], map[string]any{"pause": fmt.Sprintf("PT%.6fS", pause.Seconds())})
		return err
	})
	if err == nil && time.Now().After(due) {
		err = errLate
	}
	return due, done, err
}

// lateness waits for all sleepers. Each is due within the few microseconds
// that its start took after the moment, never before it.
func lateness(ctx context.Context, done []<-chan time.Time, due time.Time, row *Row) error {
	late := make([]time.Duration, len(done))
	early := 0
	var last time.Time
	if err := rest(ctx, time.Until(due)); err != nil {
		return err
	}
	for i := range done {
		at, err := within(ctx, done[i])
		if err != nil {
			return err
		}
		late[i] = at.Sub(due)
		if late[i] < 0 {
			early++
		}
		if at.After(last) {
			last = at
		}
	}
	row.Seconds, row.Completed = last.Sub(due).Seconds(), len(done)
	row.RatePerSecond = float64(row.Completed) / row.Seconds
	row.percentiles(late)
	row.Note = fmt.Sprintf("%d early; figures are lateness, all due at once: the last waits for n / rate", early)
	if early > 0 {
		return fmt.Errorf("%d timers fired early", early)
	}
	return nil
}
