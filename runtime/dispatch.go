package runtime

import (
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// Limits of what waits on a node.
const (
	// waitingTargets is how many destinations may have as many commands waiting
	// as one may: the bound of all together.
	waitingTargets = 4
	// maxTargets bounds the destinations that are remembered. Over it one that
	// has nothing to do is forgotten, and its breaker is closed when it comes
	// again.
	maxTargets = 1_024
	// expiryGrain is the least time between two looks for commands that have
	// waited too long.
	expiryGrain = 10 * time.Millisecond
)

// dispatcher decides which of the commands that this node has claimed is
// performed next. A command waits in memory, without a goroutine, until it has
// all it needs: a slot of the node, a place at its host, and a breaker that is
// closed. Destinations take turns, and at one destination instances do, so that
// neither a wide instance nor a host in trouble holds up the others.
//
// Only what is performed counts as an attempt. What finds no room here, because
// too much waits already, is left to the command queue, where other nodes see
// it.
type dispatcher struct {
	slots      int           // commands performed at once
	perTarget  int           // of one destination: a quarter of the slots is left to others
	perHost    int           // requests to one host at once
	breakAfter int           // failures in a row that open a breaker
	breakFor   time.Duration // that it stays open at most
	waitMax    int           // commands that wait for one destination
	waitBytes  int           // of all commands that wait
	now        func() time.Time
	start      func(*job)   // performs a command; must not block
	expired    func([]*job) // ends commands that have waited too long, in a goroutine that ends with busy.Done
	opened     func(engine.Destination)
	busy       sync.WaitGroup // slots taken, and calls of expired

	mu      sync.Mutex
	open    bool // the node accepts commands
	targets map[string]*target
	hosts   map[string]int // places taken, by host
	running int            // slots taken
	waiting int            // with what a commit under way has reserved
	bytes   int
	queue   []*target // those with commands that wait, in the order of their turns
	clock   uint64    // counts uses of targets
	alarm   *time.Timer
	rings   time.Time // when alarm fires; zero = not
}

// target is a destination: what is performed there, and what waits for it.
type target struct {
	to      engine.Destination
	breaker breaker
	running int
	waiting int // with what is reserved
	queued  int // of those, the ones that stand in line
	line    []*turns
	of      map[string]*turns
	used    uint64
}

// turns are the commands of one instance that wait for one destination.
type turns struct {
	instance string
	jobs     []*job
}

func newDispatcher(c Config) *dispatcher {
	return &dispatcher{
		slots: c.Activities, perTarget: c.Activities - c.Activities/4, perHost: c.PerHost,
		breakAfter: c.BreakAfter, breakFor: c.BreakFor, waitMax: c.Waiting, waitBytes: c.WaitingBytes, now: c.Now,
		targets: map[string]*target{}, hosts: map[string]int{},
	}
}

// accept opens the dispatcher, and close closes it: nothing is taken or begun
// from then on. It returns what waits.
func (d *dispatcher) accept() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = true
}

func (d *dispatcher) close() (waiting []*job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = false
	if d.alarm != nil {
		d.alarm.Stop()
	}
	for _, t := range d.queue {
		for _, s := range t.line {
			for _, j := range s.jobs {
				if j.queued {
					waiting = append(waiting, j)
				}
			}
		}
		t.line, t.of = nil, nil
		t.queued = 0
	}
	d.queue = nil
	for _, j := range waiting {
		j.queued = false
		d.unwait(j)
	}
	return waiting
}

// reserve finds a place for a command that is to be claimed, or room to wait
// for one; ok is false when there is neither.
func (d *dispatcher) reserve(j *job) (ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.open {
		return false
	}
	j.target = d.target(j.to)
	if j.target.waiting == 0 && d.free(j.target) {
		d.take(j)
		j.begun = true
		return true
	}
	if !d.room(j) {
		return false
	}
	d.wait(j)
	return true
}

// cancel gives back what was reserved for commands that were not claimed.
func (d *dispatcher) cancel(jobs ...*job) {
	d.mu.Lock()
	for _, j := range jobs {
		if j.begun {
			d.vacate(j)
		} else {
			d.unwait(j)
		}
	}
	d.mu.Unlock()
	d.next()
}

// launch has a claimed command performed: now, or when its turn comes. It
// reports false when the node accepts nothing any more and the command would
// wait.
func (d *dispatcher) launch(j *job) bool {
	if j.begun {
		d.start(j)
		return true
	}
	d.mu.Lock()
	if !d.open {
		d.unwait(j)
		d.mu.Unlock()
		return false
	}
	d.enqueue(j)
	d.mu.Unlock()
	d.next()
	return true
}

// left gives back the place of a command at its destination, and done its slot.
func (d *dispatcher) left(j *job, h health) {
	d.mu.Lock()
	d.leave(j, h)
	d.mu.Unlock()
	d.next()
}

func (d *dispatcher) done(j *job) {
	d.mu.Lock()
	d.vacate(j)
	d.mu.Unlock()
	d.next()
}

// vacate gives back a slot, and the place with it.
func (d *dispatcher) vacate(j *job) {
	d.leave(j, unknownHealth)
	d.running--
	d.busy.Done()
}

// move has a command that was performed at one destination wait for another. It
// reports false when the node accepts nothing any more.
func (d *dispatcher) move(j *job, to engine.Destination) bool {
	d.mu.Lock()
	if !d.open {
		d.mu.Unlock()
		return false
	}
	d.vacate(j)
	j.to, j.target = to, d.target(to)
	d.wait(j)
	d.enqueue(j)
	d.mu.Unlock()
	d.next()
	return true
}

// drop takes a command out of the line; it reports false when it does not
// stand there.
func (d *dispatcher) drop(j *job) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !j.queued {
		return false
	}
	d.dequeue(j)
	return true
}

// next begins what can begin.
func (d *dispatcher) next() {
	d.mu.Lock()
	var list []*job
	for d.open && d.running < d.slots {
		j := d.pick()
		if j == nil {
			break
		}
		d.unwait(j)
		d.take(j)
		list = append(list, j)
	}
	d.mu.Unlock()
	for _, j := range list {
		d.start(j)
	}
}

// pick takes the next command out of the line: of the first destination that
// has a place, that of the first instance. Both stand last then.
func (d *dispatcher) pick() *job {
	for i, t := range d.queue {
		if !d.free(t) {
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
		copy(d.queue[i:], d.queue[i+1:])
		d.queue = d.queue[:len(d.queue)-1]
		if t.queued--; t.queued > 0 {
			d.queue = append(d.queue, t)
		} else {
			t.line, t.of = nil, nil
		}
		return j
	}
	return nil
}

// enqueue has a command stand in line.
func (d *dispatcher) enqueue(j *job) {
	t := j.target
	if t.queued == 0 {
		d.queue = append(d.queue, t)
		t.of = map[string]*turns{}
	}
	s := t.of[j.instance]
	if s == nil {
		s = &turns{instance: j.instance}
		t.of[j.instance] = s
		t.line = append(t.line, s)
	}
	s.jobs = append(s.jobs, j)
	j.queued = true
	t.queued++
	d.ring(j.late.Sub(d.now()))
	if !t.breaker.until.IsZero() {
		d.ring(time.Until(t.breaker.until))
	}
}

// dequeue takes a command out of the middle of the line.
func (d *dispatcher) dequeue(j *job) {
	t := j.target
	j.queued = false
	d.unwait(j)
	if t.queued--; t.queued > 0 {
		return // pick passes over it
	}
	t.line, t.of = nil, nil
	for i := range d.queue {
		if d.queue[i] == t {
			d.queue = append(d.queue[:i], d.queue[i+1:]...)
			break
		}
	}
}

// free reports whether a command can begin at a destination now.
func (d *dispatcher) free(t *target) bool {
	return d.running < d.slots && t.running < d.perTarget && (t.to.Host == "" || d.hosts[t.to.Host] < d.perHost) && t.breaker.lets(time.Now())
}

// take gives a command its slot and its place.
func (d *dispatcher) take(j *job) {
	d.running++
	d.busy.Add(1)
	j.target.running++
	if j.to.Host != "" {
		d.hosts[j.to.Host]++
	}
	j.placed, j.probe = true, j.target.breaker.sent()
}

// leave gives back the place of a command, once.
func (d *dispatcher) leave(j *job, h health) {
	if !j.placed {
		return
	}
	j.placed = false
	j.target.running--
	if j.to.Host != "" {
		if d.hosts[j.to.Host]--; d.hosts[j.to.Host] == 0 {
			delete(d.hosts, j.to.Host)
		}
	}
	if j.target.breaker.heard(h, j.key(), j.probe, time.Now(), d.breakAfter, d.breakFor) {
		d.opened(j.to)
		if j.target.queued > 0 {
			d.ring(time.Until(j.target.breaker.until))
		}
	}
}

// room reports whether one more command may wait. A destination for which none
// waits has room for one whatever waits for others.
func (d *dispatcher) room(j *job) bool {
	t := j.target
	return t.waiting == 0 || t.waiting < d.waitMax && d.waiting < waitingTargets*d.waitMax && d.bytes+j.size() <= d.waitBytes
}

func (d *dispatcher) wait(j *job) {
	j.target.waiting++
	d.waiting++
	d.bytes += j.size()
}

func (d *dispatcher) unwait(j *job) {
	j.target.waiting--
	d.waiting--
	d.bytes -= j.size()
}

// target finds or makes a destination.
func (d *dispatcher) target(to engine.Destination) *target {
	d.clock++
	t := d.targets[to.Target]
	if t == nil {
		if len(d.targets) >= maxTargets {
			d.forget()
		}
		t = &target{to: to}
		d.targets[to.Target] = t
	}
	t.used = d.clock
	return t
}

// forget drops the destination that was unused for longest and has nothing to
// do.
func (d *dispatcher) forget() {
	var oldest *target
	for _, t := range d.targets {
		if t.running == 0 && t.waiting == 0 && (oldest == nil || t.used < oldest.used) {
			oldest = t
		}
	}
	if oldest != nil {
		delete(d.targets, oldest.to.Target)
	}
}

// ring has the alarm fire after a time, or before.
func (d *dispatcher) ring(after time.Duration) {
	after = max(after, expiryGrain)
	at := time.Now().Add(after)
	if !d.rings.IsZero() && !at.Before(d.rings) {
		return
	}
	d.rings = at
	if d.alarm == nil {
		d.alarm = time.AfterFunc(after, d.rang)
		return
	}
	d.alarm.Reset(after)
}

// rang ends what has waited too long, and begins what a breaker has held back.
func (d *dispatcher) rang() {
	d.mu.Lock()
	d.rings = time.Time{}
	if !d.open {
		d.mu.Unlock()
		return
	}
	now := d.now()
	var late []*job
	var lines []*target // dequeue changes the queue
	lines = append(lines, d.queue...)
	for _, t := range lines {
		for _, s := range t.line {
			for _, j := range s.jobs {
				switch {
				case !j.queued:
				case j.late.After(now):
					d.ring(j.late.Sub(now))
				default:
					late = append(late, j)
				}
			}
		}
		if t.breaker.state(time.Now()) == breakerOpen {
			d.ring(time.Until(t.breaker.until))
		}
	}
	for _, j := range late {
		j.why = d.why(j.target)
		d.dequeue(j)
	}
	if len(late) > 0 {
		d.busy.Add(1)
	}
	d.mu.Unlock()
	d.next()
	if len(late) > 0 {
		d.expired(late)
	}
}
