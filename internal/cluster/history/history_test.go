package history

import (
	"fmt"
	"slices"
	"testing"
)

// sound is a history without an anomaly: two instances, one signal that was
// rolled back, one of unknown outcome that was committed.
func sound() ([]Signal, State) {
	log := []Signal{
		{"s1", "a", "package", Committed}, {"s2", "a", "raw", Unknown}, {"s3", "a", "raw", RolledBack},
		{"s4", "b", "package", Committed}, {"s5", "b", "package", Unknown},
	}
	whole := func(seen ...string) Instance {
		return Instance{Status: "completed", Version: 3, Seen: seen, Received: seen, Versions: []Version{{0, 1}, {2, 3}, {1, 2}}, Positions: []int64{1, 2}, Effects: 1}
	}
	return log, State{
		Orders:    map[string]bool{"s1": true, "s2": true, "s4": true},
		Instances: map[string]Instance{"a": whole("s2", "s1"), "b": whole("s4")},
		Messages:  map[string]int{"WF_SIGNAL": 0},
	}
}

func TestASoundHistoryHasNoAnomaly(t *testing.T) {
	if found := Check(sound()); len(found) != 0 {
		t.Error(found)
	}
}

func TestVersionsAreNotJudgedWhereNothingNotedThem(t *testing.T) {
	log, s := sound()
	for id, i := range s.Instances {
		i.Versions = nil
		s.Instances[id] = i
	}
	s.Unwatched = true
	if found := Check(log, s); len(found) != 0 {
		t.Error(found)
	}
}

// Every anomaly is planted, and found as what it is and nothing else.
func TestPlantedAnomaliesAreFound(t *testing.T) {
	edit := func(id string, f func(*Instance)) func(*[]Signal, *State) {
		return func(_ *[]Signal, s *State) {
			i := s.Instances[id]
			f(&i)
			s.Instances[id] = i
		}
	}
	for name, c := range map[string]struct {
		plant func(*[]Signal, *State)
		want  []string // kinds, in order
	}{
		"lost in the state":   {edit("a", func(i *Instance) { i.Seen = []string{"s1"} }), []string{"lost"}},
		"lost in the stream":  {edit("a", func(i *Instance) { i.Received = []string{"s1"} }), []string{"lost"}},
		"doubled":             {edit("a", func(i *Instance) { i.Seen = []string{"s1", "s2", "s1"} }), []string{"doubled"}},
		"phantom":             {edit("a", func(i *Instance) { i.Seen = []string{"s1", "s2", "s3"} }), []string{"phantom"}},
		"another's":           {edit("a", func(i *Instance) { i.Received = []string{"s1", "s2", "s4"} }), []string{"phantom"}},
		"version left out":    {edit("b", func(i *Instance) { i.Versions = []Version{{0, 1}, {2, 3}} }), []string{"gap"}},
		"version twice":       {edit("b", func(i *Instance) { i.Versions = append(i.Versions, Version{1, 2}) }), []string{"gap"}},
		"version not noted":   {edit("b", func(i *Instance) { i.Version = 4 }), []string{"gap"}},
		"no version":          {edit("b", func(i *Instance) { i.Versions = nil }), []string{"gap"}},
		"gap in the stream":   {edit("b", func(i *Instance) { i.Positions = []int64{1, 3} }), []string{"gap"}},
		"stream begins late":  {edit("b", func(i *Instance) { i.Positions = []int64{2, 3} }), []string{"gap"}},
		"not completed":       {edit("b", func(i *Instance) { i.Status = "waiting" }), []string{"unfinished"}},
		"effect twice":        {edit("b", func(i *Instance) { i.Effects = 2 }), []string{"effect"}},
		"no effect":           {edit("b", func(i *Instance) { i.Effects = 0 }), []string{"effect"}},
		"instance is missing": {func(_ *[]Signal, s *State) { delete(s.Instances, "b") }, []string{"lost"}},
		"instance of nobody": {func(_ *[]Signal, s *State) {
			s.Instances["c"] = Instance{Status: "completed", Version: 1, Seen: []string{"x"}, Versions: []Version{{0, 1}}, Positions: []int64{1}, Effects: 1}
		}, []string{"phantom"}},
		"commit undone":                      {func(_ *[]Signal, s *State) { delete(s.Orders, "s4") }, []string{"application", "phantom", "phantom"}},
		"rollback done":                      {func(_ *[]Signal, s *State) { s.Orders["s3"] = true }, []string{"application", "lost", "lost"}},
		"row of nobody":                      {func(_ *[]Signal, s *State) { s.Orders["x"] = true }, []string{"phantom"}},
		"message left":                       {func(_ *[]Signal, s *State) { s.Messages["WF_SIGNAL"] = 1 }, []string{"left"}},
		"dead letter":                        {func(_ *[]Signal, s *State) { s.DeadLetters = []string{"message.crash-loop"} }, []string{"dead-letter"}},
		"claim left":                         {func(_ *[]Signal, s *State) { s.Locks = 1 }, []string{"left"}},
		"unknown and committed, not applied": {func(_ *[]Signal, s *State) { s.Orders["s5"] = true }, []string{"lost", "lost"}},
	} {
		log, s := sound()
		c.plant(&log, &s)
		var got []string
		for _, a := range Check(log, s) {
			got = append(got, a.Kind)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if s := fmt.Sprint(Anomaly{"lost", "a", "s1"}); s != "lost: a: s1" {
		t.Error(s)
	}
}
