// Package admission decides which of the commands that a node has claimed is
// performed next. A command waits in memory, without a goroutine, until it has
// all it needs: a slot of the node, a place at its host, and a breaker that is
// closed. Destinations take turns, and at one destination instances do, so that
// neither a wide instance nor a host in trouble holds up the others.
//
// Only what is performed counts as an attempt. What finds no room here, because
// too much waits already, is left to the command queue, where other nodes see
// it.
package admission

import (
	"sync"
	"time"
)

// Limits of what waits on a node.
const (
	// WaitingTargets is how many destinations may have as many commands waiting
	// as one may: the bound of all together.
	WaitingTargets = 4
	// maxTargets bounds the destinations that are remembered. Over it one that
	// has nothing to do is forgotten, and its breaker is closed when it comes
	// again.
	maxTargets = 1_024
	// maxAnswers bounds the answers of one destination that wait for their commits.
	maxAnswers = 1_024
	// expiryGrain is the least time between looks for what has waited too long.
	expiryGrain = 10 * time.Millisecond
)

// Config says how much is performed at once, and how much waits.
type Config[J any] struct {
	Slots        int           // commands performed at once; a quarter is left to others than one destination
	PerHost      int           // requests to one host at once
	BreakAfter   int           // failures in a row that open a breaker
	BreakFor     time.Duration // that it stays open at most
	Waiting      int           // commands that wait for one destination
	WaitingBytes int           // of all commands that wait
	Now          func() time.Time

	Begin   func([]J)         // counts the attempts of commands that have waited for their places; may be nil
	Start   func(J)           // performs a command; must not block
	Expired func([]J)         // ends commands that have waited too long
	Opened  func(Destination) // a breaker
}

// Destination is where commands go.
type Destination struct {
	Target string // what the breaker is of
	Host   string // what the places are of; "" = there are no places
}

// Ticket is what is known here of a command. Its fields are its owner's until it
// is given to Reserve, and again from Start on.
type Ticket[J any] struct {
	Of       J
	Instance string
	Key      string // of its effect
	Size     int    // what it costs while it waits
	To       Destination
	Late     time.Time // when it is given up if it still waits for a place
	Counted  bool      // it had its place before it was claimed: the claim counts the attempt
	Why      string    // what it waited for when it was given up

	// Under the lock of the admission:
	target   *target[J]
	queued   bool // it stands in line
	placed   bool // it has a slot, and a place at its destination
	answered bool // it has given them back, and what came of it is not committed
	probe    bool // it is the one that tries whether the destination works again
}

// Admission has commands performed, between Accept and Close.
type Admission[J any] struct {
	Config[J]
	perTarget int
	busy      sync.WaitGroup // commands begun that are not done, and calls of Expired

	mu      sync.Mutex
	open    bool // the node accepts commands
	targets targets[J]
	hosts   map[string]int // places taken, by host
	running int            // slots taken
	room    room[J]
	queue   []*target[J] // those with commands that wait, in the order of their turns
	begun   []*Ticket[J] // have their places, and are to be counted
	begins  bool         // somebody counts
	alarm   alarm
	cut     []J // by the end of the node
}

// maxBegun bounds the commands that are counted together.
const maxBegun = 100

// New makes an admission that accepts nothing yet.
func New[J any](c Config[J]) *Admission[J] {
	a := &Admission[J]{
		Config: c, perTarget: c.Slots - c.Slots/4, targets: targets[J]{known: map[string]*target[J]{}}, hosts: map[string]int{},
		room: room[J]{perTarget: c.Waiting, bytesMax: c.WaitingBytes},
	}
	a.alarm.fire = a.rang
	return a
}

// Accept opens the admission.
func (a *Admission[J]) Accept() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = true
}

// Close has nothing taken or begun from then on. It returns what waits.
func (a *Admission[J]) Close() (jobs []J) {
	var waiting []*Ticket[J]
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = false
	a.alarm.stop()
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
		a.room.unwait(j)
		jobs = append(jobs, j.Of)
	}
	return jobs
}

// Wait returns when nothing is performed any more. It returns what was cut off.
func (a *Admission[J]) Wait() []J {
	a.busy.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cut
}

// Reserve finds a place for a command that is to be claimed, or room to wait
// for one; ok is false when there is neither.
func (a *Admission[J]) Reserve(j *Ticket[J]) (ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.open {
		return false
	}
	j.target = a.targets.find(j.To)
	if j.target.waiting == 0 && a.free(j.target) {
		a.take(j)
		j.Counted = true
		return true
	}
	if !a.room.has(j) {
		return false
	}
	a.room.wait(j)
	return true
}

// Cancel gives back what was reserved for commands that were not claimed.
func (a *Admission[J]) Cancel(jobs ...*Ticket[J]) {
	a.mu.Lock()
	for _, j := range jobs {
		if j.Counted {
			a.vacate(j)
		} else {
			a.room.unwait(j)
		}
	}
	a.mu.Unlock()
	a.next()
}

// Launch has a claimed command performed: now, or when its turn comes. It
// reports false when the node accepts nothing any more and the command would
// wait.
func (a *Admission[J]) Launch(j *Ticket[J]) bool {
	if j.Counted {
		a.Start(j.Of)
		return true
	}
	a.mu.Lock()
	if !a.open {
		a.room.unwait(j)
		a.mu.Unlock()
		return false
	}
	a.enqueue(j)
	a.mu.Unlock()
	a.next()
	return true
}

// Left gives back the slot and the place of a command that was answered: the
// commit of its answer may take long, and holds up no other instance.
func (a *Admission[J]) Left(j *Ticket[J], h Health) {
	a.mu.Lock()
	a.leave(j, h)
	j.answered = true
	j.target.answers++
	a.mu.Unlock()
	a.next()
}

// Done says that what came of a command is committed, or that nothing came: cut where
// that may be because the node ends.
func (a *Admission[J]) Done(j *Ticket[J], cut bool) {
	a.mu.Lock()
	if cut {
		a.cut = append(a.cut, j.Of)
	}
	a.vacate(j)
	a.mu.Unlock()
	a.next()
}

// vacate ends what began with take.
func (a *Admission[J]) vacate(j *Ticket[J]) {
	a.leave(j, Unknown)
	if j.answered {
		j.answered = false
		j.target.answers--
	}
	a.busy.Done()
}

// Move has a command that was performed at one destination go on at another. Where it is to
// wait there, wait is called before; then it is counted when it begins. It reports false
// when wait does, or the node accepts nothing any more.
func (a *Admission[J]) Move(j *Ticket[J], to Destination, wait func() bool) bool {
	a.mu.Lock()
	if t := a.targets.find(to); t.waiting > 0 || !a.free(t) {
		a.mu.Unlock()
		if !wait() {
			return false
		}
		a.mu.Lock()
	}
	if !a.open {
		a.mu.Unlock()
		return false
	}
	a.vacate(j)
	j.To, j.target = to, a.targets.find(to)
	if j.target.waiting == 0 && a.free(j.target) {
		a.take(j)
		a.mu.Unlock()
		a.Start(j.Of)
		return true
	}
	j.Counted = false
	a.room.wait(j)
	a.enqueue(j)
	a.mu.Unlock()
	a.next()
	return true
}

// Drop takes a command out of the line; it reports false when it does not
// stand there.
func (a *Admission[J]) Drop(j *Ticket[J]) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !j.queued {
		return false
	}
	a.dequeue(j)
	return true
}

// next begins what can begin.
func (a *Admission[J]) next() {
	a.mu.Lock()
	var list []*Ticket[J]
	for a.open && a.running < a.Slots {
		j := a.pick()
		if j == nil {
			break
		}
		a.room.unwait(j)
		a.take(j)
		list = append(list, j)
	}
	counted := list[:0]
	for _, j := range list {
		if j.Counted || a.Begin == nil {
			counted = append(counted, j)
		} else {
			a.begun = append(a.begun, j)
		}
	}
	first := len(a.begun) > 0 && !a.begins
	a.begins = a.begins || first
	a.mu.Unlock()
	for _, j := range counted {
		a.Start(j.Of)
	}
	if first {
		go a.begin()
	}
}

// begin has those counted together that got their places while others were: each by
// itself would cost a commit more for each command.
func (a *Admission[J]) begin() {
	for {
		a.mu.Lock()
		n := min(len(a.begun), maxBegun)
		jobs := make([]J, n)
		for i, j := range a.begun[:n] {
			jobs[i] = j.Of
		}
		if a.begun = a.begun[n:]; n == 0 {
			a.begun, a.begins = nil, false
		}
		a.mu.Unlock()
		if n == 0 {
			return
		}
		a.Begin(jobs)
		for _, j := range jobs {
			a.Start(j)
		}
	}
}

// free reports whether a command can begin at a destination now.
func (a *Admission[J]) free(t *target[J]) bool {
	return a.running < a.Slots && t.running < a.perTarget && t.answers < maxAnswers && (t.to.Host == "" || a.hosts[t.to.Host] < a.PerHost) && t.breaker.lets(time.Now())
}

// take gives a command its slot and its place.
func (a *Admission[J]) take(j *Ticket[J]) {
	a.running++
	a.busy.Add(1)
	j.target.running++
	if j.To.Host != "" {
		a.hosts[j.To.Host]++
	}
	j.placed, j.probe = true, j.target.breaker.sent()
}

// leave gives back the slot and the place of a command, once.
func (a *Admission[J]) leave(j *Ticket[J], h Health) {
	if !j.placed {
		return
	}
	j.placed = false
	a.running--
	j.target.running--
	if j.To.Host != "" {
		if a.hosts[j.To.Host]--; a.hosts[j.To.Host] == 0 {
			delete(a.hosts, j.To.Host)
		}
	}
	if j.target.breaker.received(h, j.Key, j.probe, time.Now(), a.BreakAfter, a.BreakFor) {
		a.Opened(j.To)
		if j.target.queued > 0 {
			a.alarm.set(time.Until(j.target.breaker.until))
		}
	}
}

// rang ends what has waited too long, and begins what a breaker has held back.
func (a *Admission[J]) rang() {
	a.mu.Lock()
	a.alarm.at = time.Time{}
	if !a.open {
		a.mu.Unlock()
		return
	}
	now := a.Now()
	var late []*Ticket[J]
	var lines []*target[J] // dequeue changes the queue
	lines = append(lines, a.queue...)
	for _, t := range lines {
		for _, s := range t.line {
			for _, j := range s.jobs {
				switch {
				case !j.queued:
				case j.Late.After(now):
					a.alarm.set(j.Late.Sub(now))
				default:
					late = append(late, j)
				}
			}
		}
		if t.breaker.state(time.Now()) == breakerOpen {
			a.alarm.set(time.Until(t.breaker.until))
		}
	}
	var jobs []J
	for _, j := range late {
		j.Why = a.why(j.target)
		a.dequeue(j)
		jobs = append(jobs, j.Of)
	}
	if len(late) > 0 {
		a.busy.Add(1)
	}
	a.mu.Unlock()
	a.next()
	if len(late) > 0 {
		go func() {
			defer a.busy.Done()
			a.Expired(jobs)
		}()
	}
}
