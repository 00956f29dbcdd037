package judge

import (
	"testing"
	"time"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// sound is a history in which nothing is wrong: a work with two effects, one
// of them called twice, and three signals; and one that a restore has made void.
func sound() History {
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	return History{
		Works: []Work{
			{ID: "a", Kind: "small", Asked: at(0), Acked: at(1), Wants: []string{"e", "f"}, Sent: []int{0, 1, 2}, Status: "completed", Seen: []int{0, 1, 2}},
			{ID: "v", Kind: "small", Acked: at(1), Wants: []string{"e"}, Void: true},
			{ID: "h", Kind: "heard", Acked: at(1), Wants: []string{"e"}, Event: true},
			{ID: "u", Kind: "small", Asked: at(1)},
		},
		Calls: []Call{
			{Key: "k1", Of: "a", Effect: "e", Body: "b1", At: at(2)},
			{Key: "k1", Of: "a", Effect: "e", Body: "b1", Applied: true, At: at(3)},
			{Key: "k1", Of: "a", Effect: "e", Body: "b1", Applied: true, At: at(90)},
			{Key: "k2", Of: "a", Effect: "f", Body: "b2", Applied: true, At: at(4)},
			{Key: "k3", Of: "v", Effect: "e", Body: "b3", Applied: true, At: at(5)},
			{Key: "k4", Of: "v", Effect: "e", Body: "b3", Applied: true, At: at(6)},
			{Key: "k5", Of: "h", Effect: "e", Body: "b5", Applied: true, At: at(6)},
			{Key: "k5", Of: "h", Effect: "e", Body: "b5", Applied: true, At: at(7)},
		},
		Small: "small", StarvedAfter: 10 * time.Second,
	}
}

func TestASoundHistoryIsSound(t *testing.T) {
	h := sound()
	if found := Check(h); len(found) > 0 {
		t.Fatal(found)
	}
	if l := h.Latency(); len(l) != 1 || l[0] != 3*time.Second {
		t.Fatal(l)
	}
}

func TestEveryAnomalyIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		kind  string
		plant func(h *History)
	}{
		"not there":               {Lost, func(h *History) { h.Works[0].Status = "" }},
		"no effect":               {Lost, func(h *History) { h.Calls[3].Applied = false }},
		"a signal is missing":     {Lost, func(h *History) { h.Works[0].Seen = []int{0, 2} }},
		"a signal twice":          {Doubled, func(h *History) { h.Works[0].Seen = []int{0, 1, 1, 2} }},
		"another order":           {Order, func(h *History) { h.Works[0].Seen = []int{0, 2, 1} }},
		"two keys":                {Keys, func(h *History) { h.Calls[2].Key = "k9" }},
		"no key":                  {Keys, func(h *History) { h.Calls[2].Key = "" }},
		"two bodies":              {Bodies, func(h *History) { h.Calls[2].Body = "b9" }},
		"two bodies, restored":    {Bodies, func(h *History) { h.Calls[5].Key, h.Calls[5].Body = "k3", "b9" }},
		"one key, two effects":    {Bodies, func(h *History) { h.Calls[3].Key, h.Calls[3].Body = "k1", "b1" }},
		"one key, two works":      {Bodies, func(h *History) { h.Calls[4].Key, h.Calls[4].Body = "k1", "b1" }},
		"too slow":                {Starved, func(h *History) { h.Calls[3].At = begin.Add(time.Minute) }},
		"faulted":                 {Unfinished, func(h *History) { h.Works[0].Status = "faulted" }},
		"nobody's effect":         {Phantom, func(h *History) { h.Works[0].Wants = []string{"e"} }},
		"nobody's work":           {Phantom, func(h *History) { h.Calls[5].Of = "w" }},
		"an event begins nothing": {Deaf, func(h *History) { h.Calls[6].Applied, h.Calls[7].Applied = false, false }},
		"an event begins two":     {Twice, func(h *History) { h.Calls[7].Key = "k6" }},
		"a dead letter":           {DeadLetter, func(h *History) { h.DeadLetters = []string{"x"} }},
	} {
		h := sound()
		c.plant(&h)
		ok := false
		for _, a := range Check(h) {
			ok = ok || a.Kind == c.kind
		}
		if !ok {
			t.Errorf("%s: not found in %v", name, Check(h))
		}
	}
}
