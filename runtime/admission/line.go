package admission

import (
	"slices"
	"time"
)

// target is a destination: what is performed there, and what waits for it.
type target[J any] struct {
	to      Destination
	breaker breaker
	running int
	answers int // that are not committed yet
	waiting int // with what is reserved
	queued  int // of those, the ones that stand in line
	dropped int // of the line, that do not stand in it any more
	line    []*turns[J]
	of      map[string]*turns[J]
	used    uint64
}

// turns are the commands of one instance that wait for one destination.
type turns[J any] struct {
	instance string
	jobs     []*Ticket[J]
}

// pick takes the next command out of the line: of the first destination that
// has a place, that of the first instance. Both stand last then.
func (a *Admission[J]) pick() *Ticket[J] {
	for i, t := range a.queue {
		if !a.free(t) {
			continue
		}
		s := t.line[0]
		for !s.jobs[0].queued { // dropped
			s.jobs = s.jobs[1:]
			if len(s.jobs) == 0 {
				t.line = t.line[1:]
				delete(t.of, s.instance)
				s = t.line[0]
			}
		}
		j := s.jobs[0]
		s.jobs, t.line = s.jobs[1:], t.line[1:]
		if len(s.jobs) > 0 {
			t.line = append(t.line, s)
		} else {
			delete(t.of, s.instance)
		}
		j.queued = false
		copy(a.queue[i:], a.queue[i+1:])
		a.queue = a.queue[:len(a.queue)-1]
		if t.queued--; t.queued > 0 {
			a.queue = append(a.queue, t)
		} else {
			t.line, t.of = nil, nil
		}
		return j
	}
	return nil
}

// enqueue has a command stand in line.
func (a *Admission[J]) enqueue(j *Ticket[J]) {
	t := j.target
	if t.queued == 0 {
		a.queue = append(a.queue, t)
		t.of = map[string]*turns[J]{}
	}
	s := t.of[j.Instance]
	if s == nil {
		s = &turns[J]{instance: j.Instance}
		t.of[j.Instance] = s
		t.line = append(t.line, s)
	}
	s.jobs = append(s.jobs, j)
	j.queued = true
	t.queued++
	a.alarm.set(j.Late.Sub(a.Now()))
	if !t.breaker.until.IsZero() {
		a.alarm.set(time.Until(t.breaker.until))
	}
}

// dequeue takes a command out of the middle of the line.
func (a *Admission[J]) dequeue(j *Ticket[J]) {
	t := j.target
	j.queued = false
	a.room.unwait(j)
	if t.queued--; t.queued > 0 { // pick passes over it
		if t.dropped++; t.dropped > t.queued {
			t.compact()
		}
		return
	}
	t.line, t.of, t.dropped = nil, nil, 0
	for i := range a.queue {
		if a.queue[i] == t {
			a.queue = append(a.queue[:i], a.queue[i+1:]...)
			break
		}
	}
}

// compact forgets what was dropped: where little is begun, pick comes past little of it.
func (t *target[J]) compact() {
	t.dropped = 0
	t.line = slices.DeleteFunc(t.line, func(s *turns[J]) bool {
		if s.jobs = slices.DeleteFunc(s.jobs, func(j *Ticket[J]) bool { return !j.queued }); len(s.jobs) == 0 {
			delete(t.of, s.instance)
		}
		return len(s.jobs) == 0
	})
}

// targets are the destinations that are remembered.
type targets[J any] struct {
	known map[string]*target[J]
	clock uint64 // counts uses
}

// find finds or makes a destination.
func (l *targets[J]) find(to Destination) *target[J] {
	l.clock++
	t := l.known[to.Target]
	if t == nil {
		if len(l.known) >= maxTargets {
			l.forget()
		}
		t = &target[J]{to: to}
		l.known[to.Target] = t
	}
	t.used = l.clock
	return t
}

// forget drops the destination that was unused for longest and has nothing to
// do.
func (l *targets[J]) forget() {
	var oldest *target[J]
	for _, t := range l.known {
		if t.running+t.answers+t.waiting == 0 && (oldest == nil || t.used < oldest.used) {
			oldest = t
		}
	}
	if oldest != nil {
		delete(l.known, oldest.to.Target)
	}
}

// room is what waits, and how much may.
type room[J any] struct {
	perTarget, bytesMax int
	waiting             int // with what a commit under way has reserved
	bytes               int
}

// has reports whether one more command may wait. A destination for which none
// waits has room for one whatever waits for others.
func (r *room[J]) has(j *Ticket[J]) bool {
	t := j.target
	return t.waiting == 0 || t.waiting < r.perTarget && r.waiting < WaitingTargets*r.perTarget && r.bytes+j.Size <= r.bytesMax
}

func (r *room[J]) wait(j *Ticket[J]) {
	j.target.waiting++
	r.waiting++
	r.bytes += j.Size
}

func (r *room[J]) unwait(j *Ticket[J]) {
	j.target.waiting--
	r.waiting--
	r.bytes -= j.Size
}

// alarm calls fire when what waits is to be looked at.
type alarm struct {
	fire  func()
	timer *time.Timer
	at    time.Time // when it fires; zero = not
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// set has the alarm fire after a time, or before.
func (a *alarm) set(after time.Duration) {
	after = max(after, expiryGrain)
	at := time.Now().Add(after)
	if !a.at.IsZero() && !at.Before(a.at) {
		return
	}
	a.at = at
	if a.timer == nil {
		a.timer = time.AfterFunc(after, a.fire)
		return
	}
	a.timer.Reset(after)
}
