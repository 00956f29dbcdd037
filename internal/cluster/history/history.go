// Package history judges what several nodes have done on one database: from the
// producers' own log and from the tables, read with plain SQL. It shares no code
// with the engine, so that a mistake of the engine is not repeated here.
//
// [Read] takes what is there when everything has ended, [Check] is a pure
// function of that and the log. Its own tests plant every anomaly it knows.
package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Outcome is what a producer knows of its transaction.
type Outcome int

// Outcomes. An unknown one is decided by the application's own row, which was
// part of the transaction.
const (
	Unknown Outcome = iota
	Committed
	RolledBack
)

// Signal is a line of the producers' log.
type Signal struct {
	ID       string // unique; also the signal's data
	Instance string
	How      string // by the package or as a raw message
	Outcome  Outcome
}

// Version is a committed version, and the one that it was written over; 0 = none.
type Version struct{ Former, Number int64 }

// Instance is what the database has of one instance.
type Instance struct {
	Status    string
	Version   int64     // of the snapshot
	Seen      []string  // data of the signals in the workflow's own state
	Versions  []Version // every committed one, as a trigger has noted them
	Positions []int64   // of its stream, ascending
	Received  []string  // signal ids that its stream has received
	Effects   int       // performed outside for it
}

// State is what is left at the end.
type State struct {
	Orders      map[string]bool // ids of signals with a row of the application
	Instances   map[string]Instance
	Messages    map[string]int // by queue
	DeadLetters []string       // their reasons
	Locks       int            // claims that nobody has settled
	Unwatched   bool           // no trigger has noted versions
}

// Anomaly is something that must not be.
type Anomaly struct {
	Kind     string // lost, doubled, phantom, application, gap, unfinished, effect, left, dead-letter
	Instance string
	Text     string
}

func (a Anomaly) String() string { return fmt.Sprintf("%s: %s: %s", a.Kind, a.Instance, a.Text) }

// Check compares the log with the state. Nothing may be running any more.
func Check(log []Signal, s State) []Anomaly {
	var found []Anomaly
	add := func(kind, instance, text string, args ...any) {
		found = append(found, Anomaly{kind, instance, fmt.Sprintf(text, args...)})
	}
	want := map[string]map[string]bool{} // committed, by instance
	logged := map[string]bool{}
	for _, g := range log {
		logged[g.ID] = true
		row := s.Orders[g.ID]
		if g.Outcome == Committed && !row || g.Outcome == RolledBack && row {
			add("application", g.Instance, "signal %s (%s): the producer knows outcome %d, its own row says %t", g.ID, g.How, g.Outcome, row)
		}
		if !row {
			continue
		}
		if want[g.Instance] == nil {
			want[g.Instance] = map[string]bool{}
		}
		want[g.Instance][g.ID] = true
	}
	for id := range s.Orders {
		if !logged[id] {
			add("phantom", "", "the row %s is nobody's", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if _, ok := s.Instances[id]; !ok {
			add("lost", id, "the instance does not exist; %d signals", len(want[id]))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.Instances)) {
		checkInstance(id, s.Instances[id], want[id], s.Unwatched, add)
	}
	for _, q := range slices.Sorted(maps.Keys(s.Messages)) {
		if n := s.Messages[q]; n != 0 {
			add("left", "", "%d messages in %s", n, q)
		}
	}
	for _, reason := range s.DeadLetters {
		add("dead-letter", "", "%s", reason)
	}
	if s.Locks != 0 {
		add("left", "", "%d commands are claimed", s.Locks)
	}
	return found
}

// checkInstance compares one instance with the signals it must have applied.
func checkInstance(id string, i Instance, want map[string]bool, unwatched bool, add func(kind, instance, text string, args ...any)) {
	if i.Status != "completed" {
		add("unfinished", id, "its status is %s", i.Status)
	}
	for _, source := range []struct {
		name string
		list []string
	}{{"state", i.Seen}, {"stream", i.Received}} {
		times := map[string]int{}
		for _, g := range source.list {
			times[g]++
		}
		for _, g := range slices.Sorted(maps.Keys(times)) {
			switch {
			case !want[g]:
				add("phantom", id, "its %s has %s, which was not committed for it", source.name, g)
			case times[g] > 1:
				add("doubled", id, "its %s has %s %d times", source.name, g, times[g])
			}
		}
		for _, g := range slices.Sorted(maps.Keys(want)) {
			if times[g] == 0 {
				add("lost", id, "its %s has no %s", source.name, g)
			}
		}
	}
	if gap := unchained(i.Versions, i.Version); gap != "" && !unwatched {
		add("gap", id, "versions: %s", gap)
	}
	if gap := broken(i.Positions); gap != "" {
		add("gap", id, "stream: %s", gap)
	}
	if i.Effects != 1 {
		add("effect", id, "its call has had %d effects", i.Effects)
	}
}

// unchained says where versions do not follow each other from none to the last: one
// that was written over the same as another, or over none that was written. A commit
// of several signals advances the version by as many.
func unchained(list []Version, last int64) string {
	sorted := slices.SortedFunc(slices.Values(list), func(a, b Version) int { return cmp.Compare(a.Number, b.Number) })
	former := int64(0)
	for _, v := range sorted {
		if v.Former != former || v.Number <= former {
			return fmt.Sprintf("%d was written over %d, and there was %d", v.Number, v.Former, former)
		}
		former = v.Number
	}
	if former != last {
		return fmt.Sprintf("it is %d, the last that was noted is %d", last, former)
	}
	return ""
}

// broken says where numbers are not 1, 2, 3 and so on, each once.
func broken(list []int64) string {
	if len(list) == 0 {
		return "there are none"
	}
	sorted := slices.SortedFunc(slices.Values(list), cmp.Compare)
	for i, n := range sorted {
		if n != int64(i+1) {
			return fmt.Sprintf("%d stands where %d must", n, i+1)
		}
	}
	return ""
}
