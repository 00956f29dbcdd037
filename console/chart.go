package console

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/api/client"
	h "github.com/aqueduct-engine/aqueduct/console/html"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// Limits of the charts.
const (
	maxLooks = 300              // that are kept: a quarter of an hour of a page that is open
	apart    = time.Second      // between two that are kept
	gap      = 30 * time.Second // between two looks, over which no line is drawn
)

// counters are those of a node's metrics that are drawn per second, and what of.
var counters = [...]struct{ metric, says string }{
	{"aqueduct_turns_total", "turns per second"}, {"aqueduct_instances_started_total", "instances begun per second"},
	{"aqueduct_instances_ended_total", "instances ended per second"},
}

// look is what a page has seen of a node.
type look struct {
	at     time.Time
	counts [len(counters)]int64
	oldest float64 // age of the oldest message that is due, in seconds
}

// looks are the last ones, of whoever has looked: while nobody does, nothing is asked for.
type looks struct {
	mu   sync.Mutex
	last []look
}

// add keeps a look, and returns all that are kept.
func (l *looks) add(x look) []look {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.last); n == 0 || x.at.Sub(l.last[n-1].at) >= apart {
		kept := l.last[max(0, n+1-maxLooks):]
		l.last = append(append(make([]look, 0, len(kept)+1), kept...), x) // others read the ones before
	}
	return l.last
}

// series is what is drawn of something: a line through points, in parts where nobody has
// looked.
type series struct {
	says      string
	path      string
	now, most float64
}

// history adds a look at this node, and draws all of them. Who may not read metrics sees
// none.
func (v *visit) history(queues []client.Queue) ([]series, error) {
	metrics, err := v.api.Metrics(v.Context())
	if err != nil {
		if tell(err).Kind == problem.Denied {
			err = nil
		}
		return nil, err
	}
	x := look{at: v.Now()}
	for line := range strings.Lines(string(metrics)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, _, _ = strings.Cut(name, "{")
		for i, c := range counters {
			if n, err := strconv.ParseFloat(value, 64); err == nil && name == c.metric {
				x.counts[i] += int64(n)
			}
		}
	}
	for _, q := range queues {
		if !q.OldestAt.IsZero() {
			x.oldest = max(x.oldest, x.at.Sub(q.OldestAt).Seconds())
		}
	}
	seen := v.seen.add(x)
	all := make([]series, 0, len(counters)+1)
	for i, c := range counters {
		all = append(all, drawn(c.says, seen, func(before, x *look) float64 {
			return float64(max(0, x.counts[i]-before.counts[i])) / x.at.Sub(before.at).Seconds()
		}))
	}
	return append(all, drawn("seconds that the oldest message waits", seen, func(_, x *look) float64 { return x.oldest })), nil
}

// drawn draws a value of each look but the first, from the earliest to the last. Over a gap
// the line begins anew.
func drawn(says string, seen []look, value func(before, x *look) float64) series {
	s := series{says: says}
	values := make([]float64, len(seen))
	for i := 1; i < len(seen); i++ {
		values[i] = value(&seen[i-1], &seen[i])
		s.now, s.most = values[i], max(s.most, values[i])
	}
	whole := seen[len(seen)-1].at.Sub(seen[0].at).Seconds()
	var path strings.Builder
	to := func(command byte, at time.Time, value float64) {
		if s.most > 0 {
			value /= s.most
		}
		fmt.Fprintf(&path, "%c%.1f %.1f", command, at.Sub(seen[0].at).Seconds()/whole*h.ChartWidth, (1-value)*(h.ChartHeight-2)+1)
	}
	for i := 1; i < len(seen); i++ {
		if i == 1 || seen[i].at.Sub(seen[i-1].at) > gap {
			to('M', seen[i-1].at, values[i])
		}
		to('L', seen[i].at, values[i])
	}
	s.path = path.String()
	return s
}

// charts are a line for each.
func charts(all []series) h.Node {
	if strings.Count(all[0].path, "L") == 0 {
		return note(text("It is drawn from now on, while somebody looks."))
	}
	return table("What||Now|Most", h.Map(all, func(s series) h.Node {
		return h.Tr(cell(text(s.says)), cell(h.Chart(s.says, s.path)), cell(text(fmt.Sprintf("%.1f", s.now))), cell(text(fmt.Sprintf("%.1f", s.most))))
	}))
}
