// Package schedule has instances of a definition begin by themselves: at the
// ticks of a clock, after the end of the run before, or at events.
package schedule

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/aqueduct-engine/aqueduct/duration"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Limits of schedules.
const (
	// MinEvery is the shortest interval of a schedule.
	MinEvery = time.Second
	// MaxGeneration bounds the ticks of one schedule instance, and so its
	// stream; then a successor goes on.
	MaxGeneration = 10_000
	// MaxLate is how late a tick may be and still count; beyond it the tick is
	// passed over, unless it is the first one after an outage.
	MaxLate = time.Minute
)

// Schedule says when instances of a definition begin without being asked for.
// Exactly one of its kinds is set.
//
// It is kept by an instance of its own, the schedule instance, of the same
// definition: a timer of it is the next tick, a wait for an event is a
// subscription, suspending it pauses the schedule, cancelling it ends it.
type Schedule struct {
	Every    string        // an ISO 8601 duration; the first tick is counted from the publication, each from the one before
	Cron     string        // five fields, in UTC
	After    string        // an ISO 8601 duration after the end of the run before
	On       Subscriber    // each event that satisfies one of its waits
	Envelope bool          // On: the input has the whole event, not its data
	cron     cron.Schedule // of Cron
}

// Subscriber says for which events a schedule waits. The definition is asked
// whether an event satisfies one of the waits, by Matches and Correlate.
type Subscriber interface {
	// Subscriptions are waits to come, of the kind of events, at the pointer that
	// [IsSubscription] knows, each with an arm of its own.
	Subscriptions(limits engine.Limits) ([]snapshot.Wait, error)
}

// schedulePointer begins the pointers of a schedule's waits.
const schedulePointer = "/schedule/"

// Key is the business key of schedule instances.
const Key = "schedule"

// maxTicks bounds how many ticks that were missed are counted one by one.
const maxTicks = 100_000

// New checks a schedule and prepares it.
func New(s Schedule) (*Schedule, error) {
	epoch := time.Unix(0, 0).UTC()
	switch {
	case s.Cron != "":
		if strings.Contains(s.Cron, "=") {
			return nil, fmt.Errorf("a cron expression has no time zone here: it is in UTC")
		}
		parsed, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(s.Cron)
		if err != nil {
			return nil, fmt.Errorf("not a cron expression of five fields: %w", err)
		}
		if parsed.Next(epoch).IsZero() {
			return nil, fmt.Errorf("no moment is like that")
		}
		s.cron = parsed
	case s.Every != "":
		next, err := duration.After(epoch, s.Every)
		if err != nil {
			return nil, err
		}
		if next.Sub(epoch) < MinEvery {
			return nil, fmt.Errorf("the shortest interval is %s", MinEvery)
		}
	case s.After != "":
		if _, err := duration.After(epoch, s.After); err != nil {
			return nil, err
		}
	}
	return &s, nil
}

// Of is when instances of a definition begin by themselves; nil = only when
// somebody asks for one. A definition that embeds a Schedule has it.
func Of(def engine.Definition) *Schedule {
	if d, ok := def.(interface{ Timetable() *Schedule }); ok {
		return d.Timetable()
	}
	return nil
}

// Timetable is the schedule itself, see [Of].
func (s *Schedule) Timetable() *Schedule { return s }

// tick is the first tick after a moment, which is itself one or the
// publication.
func (s *Schedule) tick(t time.Time) (time.Time, error) {
	if s.cron == nil {
		return duration.After(t, s.Every)
	}
	return s.cron.Next(t.UTC()), nil
}

// next is the tick after the one at a moment that still counts when it is now,
// and how many between them do not. A tick counts that is less than MaxLate
// ago, and less than the interval behind it.
func (s *Schedule) next(at, now time.Time) (due time.Time, missed int64, err error) {
	if due, err = s.tick(at); err != nil {
		return due, 0, err
	}
	for range maxTicks {
		later, err := s.tick(due)
		if err != nil || now.Sub(due) < min(MaxLate, later.Sub(due)) {
			return due, missed, err
		}
		if step := later.Sub(due); s.cron == nil && now.Sub(later) > 2*step && !calendar(s.Every) {
			n := int64(now.Sub(due)/step) - 1
			due, missed = due.Add(time.Duration(n)*step), missed+n
			continue
		}
		due, missed = later, missed+1
	}
	due, err = s.tick(now) // so many that it does not matter where the grid was
	return due, missed, err
}

// calendar reports whether a duration has units that are not always equal.
func calendar(iso string) bool {
	date, _, _ := strings.Cut(iso, "T")
	return strings.ContainsAny(date, "YM")
}
