package dispatch

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
	// maxAnswers bounds the answers of one destination that wait for their commits.
	maxAnswers = 1_024
	// expiryGrain is the least time between looks for what has waited too long.
	expiryGrain = 10 * time.Millisecond
)

// admission decides which of the commands that this node has claimed is
// performed next. A command waits in memory, without a goroutine, until it has
// all it needs: a slot of the node, a place at its host, and a breaker that is
// closed. Destinations take turns, and at one destination instances do, so that
// neither a wide instance nor a host in trouble holds up the others.
//
// Only what is performed counts as an attempt. What finds no room here, because
// too much waits already, is left to the command queue, where other nodes see
// it.
type admission struct {
	slots      int           // commands performed at once
	perTarget  int           // of one destination: a quarter of the slots is left to others
	perHost    int           // requests to one host at once
	breakAfter int           // failures in a row that open a breaker
	breakFor   time.Duration // that it stays open at most
	waitMax    int           // commands that wait for one destination
	waitBytes  int           // of all commands that wait
	now        func() time.Time
	start      func(*Job)   // performs a command; must not block
	expired    func([]*Job) // ends commands that have waited too long, in a goroutine that ends with busy.Done
	opened     func(engine.Destination)
	busy       sync.WaitGroup // commands begun that are not done, and calls of expired

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
	alarmAt time.Time // when alarm fires; zero = not
}

// target is a destination: what is performed there, and what waits for it.
type target struct {
	to      engine.Destination
	breaker breaker
	running int
	answers int // that are not committed yet
	waiting int // with what is reserved
	queued  int // of those, the ones that stand in line
	line    []*turns
	of      map[string]*turns
	used    uint64
}

// turns are the commands of one instance that wait for one destination.
type turns struct {
	instance string
	jobs     []*Job
}

func newAdmission(c Config) *admission {
	return &admission{
		slots: c.Activities, perTarget: c.Activities - c.Activities/4, perHost: c.PerHost,
		breakAfter: c.BreakAfter, breakFor: c.BreakFor, waitMax: c.Waiting, waitBytes: c.WaitingBytes, now: c.Now,
		targets: map[string]*target{}, hosts: map[string]int{},
	}
}

// accept opens the admission, and close closes it: nothing is taken or begun
// from then on. It returns what waits.
func (a *admission) accept() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = true
}

func (a *admission) close() (waiting []*Job) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = false
	if a.alarm != nil {
		a.alarm.Stop()
	}
	for _, t := range a.queue {
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
	a.queue = nil
	for _, j := range waiting {
		j.queued = false
		a.unwait(j)
	}
	return waiting
}

// reserve finds a place for a command that is to be claimed, or room to wait
// for one; ok is false when there is neither.
func (a *admission) reserve(j *Job) (ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.open {
		return false
	}
	j.target = a.target(j.to)
	if j.target.waiting == 0 && a.free(j.target) {
		a.take(j)
		j.begun = true
		return true
	}
	if !a.room(j) {
		return false
	}
	a.wait(j)
	return true
}

// cancel gives back what was reserved for commands that were not claimed.
func (a *admission) cancel(jobs ...*Job) {
	a.mu.Lock()
	for _, j := range jobs {
		if j.begun {
			a.vacate(j)
		} else {
			a.unwait(j)
		}
	}
	a.mu.Unlock()
	a.next()
}

// launch has a claimed command performed: now, or when its turn comes. It
// reports false when the node accepts nothing any more and the command would
// wait.
func (a *admission) launch(j *Job) bool {
	if j.begun {
		a.start(j)
		return true
	}
	a.mu.Lock()
	if !a.open {
		a.unwait(j)
		a.mu.Unlock()
		return false
	}
	a.enqueue(j)
	a.mu.Unlock()
	a.next()
	return true
}

// left gives back the slot and the place of a command that was answered: the
// commit of its answer may take long, and holds up no other instance.
func (a *admission) left(j *Job, h health) {
	a.mu.Lock()
	a.leave(j, h)
	j.answered = true
	j.target.answers++
	a.mu.Unlock()
	a.next()
}

// done says that what came of a command is committed, or that nothing came.
func (a *admission) done(j *Job) {
	a.mu.Lock()
	a.vacate(j)
	a.mu.Unlock()
	a.next()
}

// vacate ends what began with take.
func (a *admission) vacate(j *Job) {
	a.leave(j, unknownHealth)
	if j.answered {
		j.answered = false
		j.target.answers--
	}
	a.busy.Done()
}

// move has a command that was performed at one destination wait for another. It
// reports false when the node accepts nothing any more.
func (a *admission) move(j *Job, to engine.Destination) bool {
	a.mu.Lock()
	if !a.open {
		a.mu.Unlock()
		return false
	}
	a.vacate(j)
	j.to, j.target = to, a.target(to)
	a.wait(j)
	a.enqueue(j)
	a.mu.Unlock()
	a.next()
	return true
}

// drop takes a command out of the line; it reports false when it does not
// stand there.
func (a *admission) drop(j *Job) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !j.queued {
		return false
	}
	a.dequeue(j)
	return true
}

// next begins what can begin.
func (a *admission) next() {
	a.mu.Lock()
	var list []*Job
	for a.open && a.running < a.slots {
		j := a.pick()
		if j == nil {
			break
		}
		a.unwait(j)
		a.take(j)
		list = append(list, j)
	}
	a.mu.Unlock()
	for _, j := range list {
		a.start(j)
	}
}

// pick takes the next command out of the line: of the first destination that
// has a place, that of the first instance. Both stand last then.
func (a *admission) pick() *Job {
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
func (a *admission) enqueue(j *Job) {
	t := j.target
	if t.queued == 0 {
		a.queue = append(a.queue, t)
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
	a.setAlarm(j.late.Sub(a.now()))
	if !t.breaker.until.IsZero() {
		a.setAlarm(time.Until(t.breaker.until))
	}
}

// dequeue takes a command out of the middle of the line.
func (a *admission) dequeue(j *Job) {
	t := j.target
	j.queued = false
	a.unwait(j)
	if t.queued--; t.queued > 0 {
		return // pick passes over it
	}
	t.line, t.of = nil, nil
	for i := range a.queue {
		if a.queue[i] == t {
			a.queue = append(a.queue[:i], a.queue[i+1:]...)
			break
		}
	}
}

// free reports whether a command can begin at a destination now.
func (a *admission) free(t *target) bool {
	return a.running < a.slots && t.running < a.perTarget && t.answers < maxAnswers && (t.to.Host == "" || a.hosts[t.to.Host] < a.perHost) && t.breaker.lets(time.Now())
}

// take gives a command its slot and its place.
func (a *admission) take(j *Job) {
	a.running++
	a.busy.Add(1)
	j.target.running++
	if j.to.Host != "" {
		a.hosts[j.to.Host]++
	}
	j.placed, j.probe = true, j.target.breaker.sent()
}

// leave gives back the slot and the place of a command, once.
func (a *admission) leave(j *Job, h health) {
	if !j.placed {
		return
	}
	j.placed = false
	a.running--
	j.target.running--
	if j.to.Host != "" {
		if a.hosts[j.to.Host]--; a.hosts[j.to.Host] == 0 {
			delete(a.hosts, j.to.Host)
		}
	}
	if j.target.breaker.received(h, j.key(), j.probe, time.Now(), a.breakAfter, a.breakFor) {
		a.opened(j.to)
		if j.target.queued > 0 {
			a.setAlarm(time.Until(j.target.breaker.until))
		}
	}
}

// room reports whether one more command may wait. A destination for which none
// waits has room for one whatever waits for others.
func (a *admission) room(j *Job) bool {
	t := j.target
	return t.waiting == 0 || t.waiting < a.waitMax && a.waiting < waitingTargets*a.waitMax && a.bytes+j.size() <= a.waitBytes
}

func (a *admission) wait(j *Job) {
	j.target.waiting++
	a.waiting++
	a.bytes += j.size()
}

func (a *admission) unwait(j *Job) {
	j.target.waiting--
	a.waiting--
	a.bytes -= j.size()
}

// target finds or makes a destination.
func (a *admission) target(to engine.Destination) *target {
	a.clock++
	t := a.targets[to.Target]
	if t == nil {
		if len(a.targets) >= maxTargets {
			a.forget()
		}
		t = &target{to: to}
		a.targets[to.Target] = t
	}
	t.used = a.clock
	return t
}

// forget drops the destination that was unused for longest and has nothing to
// do.
func (a *admission) forget() {
	var oldest *target
	for _, t := range a.targets {
		if t.running+t.answers+t.waiting == 0 && (oldest == nil || t.used < oldest.used) {
			oldest = t
		}
	}
	if oldest != nil {
		delete(a.targets, oldest.to.Target)
	}
}

// setAlarm has the alarm fire after a time, or before.
func (a *admission) setAlarm(after time.Duration) {
	after = max(after, expiryGrain)
	at := time.Now().Add(after)
	if !a.alarmAt.IsZero() && !at.Before(a.alarmAt) {
		return
	}
	a.alarmAt = at
	if a.alarm == nil {
		a.alarm = time.AfterFunc(after, a.rang)
		return
	}
	a.alarm.Reset(after)
}

// rang ends what has waited too long, and begins what a breaker has held back.
func (a *admission) rang() {
	a.mu.Lock()
	a.alarmAt = time.Time{}
	if !a.open {
		a.mu.Unlock()
		return
	}
	now := a.now()
	var late []*Job
	var lines []*target // dequeue changes the queue
	lines = append(lines, a.queue...)
	for _, t := range lines {
		for _, s := range t.line {
			for _, j := range s.jobs {
				switch {
				case !j.queued:
				case j.late.After(now):
					a.setAlarm(j.late.Sub(now))
				default:
					late = append(late, j)
				}
			}
		}
		if t.breaker.state(time.Now()) == breakerOpen {
			a.setAlarm(time.Until(t.breaker.until))
		}
	}
	for _, j := range late {
		j.why = a.why(j.target)
		a.dequeue(j)
	}
	if len(late) > 0 {
		a.busy.Add(1)
	}
	a.mu.Unlock()
	a.next()
	if len(late) > 0 {
		a.expired(late)
	}
}
