package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/robfig/cron/v3"

	"github.com/aqueduct-engine/aqueduct/signal"
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
	Every    string        // an ISO 8601 duration; ticks are counted from the publication
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
	Subscriptions(limits Limits) ([]snapshot.Wait, error)
}

// schedulePointer begins the pointers of a schedule's waits.
const schedulePointer = "/schedule/"

// ScheduleKey is the business key of schedule instances.
const ScheduleKey = "schedule"

// maxTicks bounds how many ticks that were missed are counted one by one.
const maxTicks = 100_000

// NewSchedule checks a schedule and prepares it.
func NewSchedule(s Schedule) (*Schedule, error) {
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
		next, err := After(epoch, s.Every)
		if err != nil {
			return nil, err
		}
		if next.Sub(epoch) < MinEvery {
			return nil, fmt.Errorf("the shortest interval is %s", MinEvery)
		}
	case s.After != "":
		if _, err := After(epoch, s.After); err != nil {
			return nil, err
		}
	}
	return &s, nil
}

// tick is the first tick after a moment, which is itself one or the
// publication.
func (s *Schedule) tick(t time.Time) (time.Time, error) {
	if s.cron == nil {
		return After(t, s.Every)
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

// scheduleSpace is the namespace of the ids of schedule instances whose names
// are too long, and of instances that an event begins.
var scheduleSpace = uuid.MustParse("3c6c1d1c-9a56-5f7e-8f3f-0d2f8b0e0a55")

// ScheduleID is the id of the schedule instance of a definition; generation
// counts the ones before it.
func ScheduleID(ref snapshot.Definition, generation int) string {
	id := SchedulePrefix + strings.ReplaceAll(ref.Name, "/", ".") + "." + ref.Version
	if generation > 0 {
		id += fmt.Sprintf("~%d", generation)
	}
	if len(id) > signal.MaxIDBytes {
		return SchedulePrefix + uuid.NewSHA1(scheduleSpace, []byte(id)).String()
	}
	return id
}

// SchedulePrefix begins the ids of schedule instances, and of no others.
const SchedulePrefix = "schedule."

// ScheduleStart is the request that sets up the schedule of a definition; ok is
// false when it has none.
func ScheduleStart(def Definition) (id string, start signal.Start, ok bool) {
	if ScheduleOf(def) == nil {
		return "", signal.Start{}, false
	}
	ref := def.Ref()
	return ScheduleID(ref, 0), signal.Start{Definition: ref.Name, Version: ref.Version, BusinessKey: ScheduleKey, Schedule: &signal.Schedule{}}, true
}

// ScheduleOf is when instances of a definition begin by themselves; nil = never.
func ScheduleOf(def Definition) *Schedule {
	if d, ok := def.(Scheduled); ok {
		return d.Timetable()
	}
	return nil
}

// begin begins a schedule instance.
func (s *Schedule) begin(t *Turn) error {
	switch {
	case s == nil:
		return fmt.Errorf("engine: %s has no schedule", t.Snap.Definition.Name)
	case t.from != nil:
		return s.takeOver(t, t.from)
	case !t.Snap.Schedule.Due.IsZero(): // a successor
	case s.After != "":
		return s.later(t)
	case s.On != nil:
		return s.subscribe(t)
	default:
		due, err := s.tick(t.In.Now)
		if err != nil {
			return err
		}
		t.Snap.Schedule.Due = due
	}
	s.arm(t)
	return nil
}

// arm waits for the next tick.
func (s *Schedule) arm(t *Turn) {
	kind := "every"
	switch {
	case s.Cron != "":
		kind = "cron"
	case s.After != "":
		kind = "after"
	}
	t.Await(snapshot.Wait{Kind: snapshot.WaitTimer, Pointer: schedulePointer + kind, Until: t.Snap.Schedule.Due})
}

// later waits for the delay after the end of a run.
func (s *Schedule) later(t *Turn) error {
	due, err := After(t.In.Now, s.After)
	if err != nil {
		return err
	}
	t.Snap.Schedule.Due = due
	s.arm(t)
	return nil
}

// subscribe waits for the events that begin instances. These waits are never
// consumed: an event that they take begins an instance, see EventStart.
func (s *Schedule) subscribe(t *Turn) error {
	waits, err := s.On.Subscriptions(t.In.Limits)
	for _, w := range waits {
		t.Await(w)
	}
	return err
}

// resume goes on with a schedule: at a tick, at the end of the run before, or at
// an event.
func (s *Schedule) resume(t *Turn, w snapshot.Wait, res Result) error {
	switch {
	case s == nil:
		return fmt.Errorf("engine: %s has no schedule", t.Snap.Definition.Name)
	case w.Kind == snapshot.WaitEvent:
		return s.heardOf(t, w, res.Output)
	case w.Kind == snapshot.WaitChild:
		return s.later(t)
	case w.Kind != snapshot.WaitTimer:
		return fmt.Errorf("engine: %s: a schedule does not wait for %s", t.Snap.InstanceID, w.Kind)
	}
	now, ref := t.Snap.Schedule, t.Snap.Definition
	at := now.Due
	now.Ticks++
	after := s.After != ""
	run := signal.Start{Definition: ref.Name, Version: ref.Version, Input: json.RawMessage("null")}
	err := t.Spawn(run, after, 0, snapshot.Wait{Pointer: w.Pointer})
	if err != nil || after {
		return err
	}
	due, missed, err := s.next(at, t.In.Clock)
	if err != nil {
		return err
	}
	now.Due, now.Missed = due, now.Missed+missed
	if missed > 0 {
		data, _ := json.Marshal(map[string]any{"count": missed, "after": at, "next": due}) // plain data
		t.Append(Entry{Kind: KindEvent, Dir: Out, Type: EntryMissed, Data: data, Meta: Meta{Pointer: w.Pointer}})
	}
	if now.Ticks < MaxGeneration {
		s.arm(t)
		return nil
	}
	return succeed(t)
}

// heardOf begins an instance for an event that was kept while the schedule was
// suspended, and listens on.
func (s *Schedule) heardOf(t *Turn, w snapshot.Wait, event json.RawMessage) error {
	id, start, err := s.EventStart(t.Snap.Definition, event, t.Snap.InstanceID)
	if err != nil {
		return err
	}
	payload, err := json.Marshal(start)
	if err != nil {
		return err
	}
	t.send(id, signal.StartRequest, "", time.Time{}, payload)
	w.Token = ""
	t.Await(w)
	return nil
}

// succeed hands the schedule over to a fresh instance, so that no stream grows
// for ever.
func succeed(t *Turn) error {
	s, ref := t.Snap.Schedule, t.Snap.Definition
	start, err := json.Marshal(SuccessorStart(ref, s))
	if err != nil {
		return err
	}
	s.Successor = ScheduleID(ref, s.Generation+1)
	t.send(s.Successor, signal.StartRequest, "", time.Time{}, start)
	t.Complete(json.RawMessage("null"))
	return nil
}

// SuccessorStart is the request for the schedule instance that goes on when the
// stream of one is long.
func SuccessorStart(ref snapshot.Definition, s *snapshot.Schedule) signal.Start {
	return signal.Start{
		Definition: ref.Name, Version: ref.Version, BusinessKey: ScheduleKey,
		Schedule: &signal.Schedule{Generation: s.Generation + 1, Due: s.Due},
	}
}

// EventStart is the request for the instance that an event begins at a wait of
// a schedule instance. The same event always begins the same one, also when a
// newer version hears it again.
func (s *Schedule) EventStart(ref snapshot.Definition, event json.RawMessage, schedule string) (id string, start signal.Start, err error) {
	var e struct {
		ID     string          `json:"id"`
		Source string          `json:"source"`
		Data   json.RawMessage `json:"data"`
	}
	if err := jsonv2.Unmarshal(event, &e); err != nil {
		return "", start, fmt.Errorf("engine: event: %w", err)
	}
	item := event
	if !s.Envelope {
		item = orNull(e.Data)
	}
	id = uuid.NewSHA1(scheduleSpace, fmt.Appendf(nil, "%q %q %q", ref.Name, e.Source, e.ID)).String()
	return id, signal.Start{
		Definition: ref.Name, Version: ref.Version, Input: bytes.Join([][]byte{[]byte("["), item, []byte("]")}, nil),
		Parent: &signal.Parent{InstanceID: schedule},
	}, nil
}

// IsSubscription reports whether a pointer is that of a schedule's wait for
// events.
func IsSubscription(pointer string) bool { return pointer == schedulePointer+"on" }

// scheduleOf is what a snapshot keeps of a request for a schedule instance.
func scheduleOf(s *signal.Schedule) *snapshot.Schedule {
	if s == nil {
		return nil
	}
	return &snapshot.Schedule{Generation: s.Generation, Due: s.Due}
}
