package admission

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// job is a command of a test.
type job struct{ Ticket[*job] }

// line is an admission whose commands end when the test says so.
type line struct {
	*Admission[*job]
	seen    sync.Mutex // of what follows: timers begin commands, too
	begun   []string   // instances, in the order in which their commands began
	jobs    map[string]*job
	expired []string
	n       int
}

func newLine(c Config[*job]) *line {
	c.Now = time.Now
	c.Slots, c.PerHost, c.Waiting = cmp.Or(c.Slots, 256), cmp.Or(c.PerHost, 64), cmp.Or(c.Waiting, 2_048)
	c.WaitingBytes, c.BreakAfter, c.BreakFor = cmp.Or(c.WaitingBytes, 64<<20), cmp.Or(c.BreakAfter, 5), cmp.Or(c.BreakFor, 30*time.Second)
	l := &line{jobs: map[string]*job{}}
	c.Start = func(j *job) {
		l.seen.Lock()
		defer l.seen.Unlock()
		l.begun = append(l.begun, j.Instance)
		l.jobs[j.Instance] = j
	}
	c.Expired = func(jobs []*job) {
		l.seen.Lock()
		defer l.seen.Unlock()
		for _, j := range jobs {
			l.expired = append(l.expired, j.Instance+": "+j.Why)
		}
	}
	c.Opened = func(Destination) {}
	l.Admission = New(c)
	l.Accept()
	return l
}

// add claims a command, when there is room.
func (l *line) add(instance, target, host string, wait time.Duration) bool {
	l.n++
	j := &job{}
	j.Ticket = Ticket[*job]{
		Of: j, Instance: instance, Key: fmt.Sprint(instance, "/", l.n), Size: size, To: Destination{Target: target, Host: host}, Late: time.Now().Add(wait),
	}
	return l.Reserve(&j.Ticket) && l.Launch(&j.Ticket)
}

// size is what a command costs here.
const size = 512

// end ends the command of an instance that began last.
func (l *line) end(instance string, h Health) {
	l.seen.Lock()
	j := l.jobs[instance]
	l.seen.Unlock()
	l.Left(&j.Ticket, h)
	l.Done(&j.Ticket, false)
}

// over are the commands that were given up.
func (l *line) over() []string {
	l.seen.Lock()
	defer l.seen.Unlock()
	return slices.Clone(l.expired)
}

func (l *line) got(t *testing.T, want string) {
	t.Helper()
	l.seen.Lock()
	defer l.seen.Unlock()
	if got := strings.Join(l.begun, " "); got != want {
		t.Fatalf("begun: %s\n want: %s", got, want)
	}
	l.begun = nil
}

func TestInstancesTakeTurnsAtADestination(t *testing.T) {
	t.Parallel()
	l := newLine(Config[*job]{Slots: 8, PerHost: 1})
	for range 100 {
		l.add("wide", "GET h/a", "h", time.Hour)
	}
	l.add("x", "GET h/a", "h", time.Hour)
	l.add("y", "GET h/a", "h", time.Hour)
	l.add("other", "GET g/a", "g", time.Hour)
	l.got(t, "wide other") // another host has its own places
	l.end("wide", Healthy)
	for range 4 {
		l.end(l.begun[len(l.begun)-1], Healthy)
	}
	l.got(t, "wide x y wide wide")
}

func TestDestinationsTakeTurnsAtSlots(t *testing.T) {
	t.Parallel()
	l := newLine(Config[*job]{Slots: 4})
	for i := range 20 {
		l.add(fmt.Sprint("a", i), "a", "", time.Hour)
	}
	l.got(t, "a0 a1 a2") // a quarter is left to others
	l.add("b", "b", "", time.Hour)
	l.got(t, "b")
	for i := range 3 {
		l.add(fmt.Sprint("b", i), "b", "", time.Hour)
	}
	l.end("a0", Healthy)
	l.end("a1", Healthy)
	l.end("b", Healthy)
	l.got(t, "a3 b0 a4")
}

func TestAHostInTroubleHoldsNoSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLine(Config[*job]{Slots: 4, BreakAfter: 3, BreakFor: time.Minute})
		for i := range 50 {
			l.add(fmt.Sprint("sick", i), "GET h/sick", "h", time.Hour)
			if i < 3 {
				l.end(fmt.Sprint("sick", i), Ill)
			}
		}
		l.got(t, "sick0 sick1 sick2")
		for i := range 3 {
			l.add(fmt.Sprint("well", i), "GET h/well", "h", time.Hour)
		}
		l.got(t, "well0 well1 well2") // one sick path is not its host
		time.Sleep(breakFirst + time.Millisecond)
		synctest.Wait()
		l.got(t, "sick3") // one tries
		l.end("sick3", Ill)
		l.got(t, "")
		time.Sleep(2*breakFirst + time.Millisecond)
		synctest.Wait()
		l.got(t, "sick4")
		l.end("sick4", Healthy)
		l.got(t, "sick5")
		l.end("well0", Healthy)
		l.got(t, "sick6")
		l.Close()
	})
}

func TestWhatWaitsIsGivenUpByAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLine(Config[*job]{Slots: 4, PerHost: 1})
		l.add("slow", "GET h/a", "h", time.Second)
		l.add("patient", "GET h/a", "h", time.Hour)
		l.add("hasty", "GET h/a", "h", time.Minute)
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if got := l.over(); len(got) != 0 {
			t.Errorf("before its time: %v", got)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := l.over(); len(got) != 1 || got[0] != "hasty: a place at host h: 1 requests are under way" {
			t.Errorf("expired: %v", got)
		}
		l.end("slow", Healthy)
		l.got(t, "slow patient")
		if l.Close(); l.room.waiting != 0 || l.room.bytes != 0 {
			t.Errorf("%d wait, %d bytes", l.room.waiting, l.room.bytes)
		}
	})
}

func TestRoomToWaitIsBounded(t *testing.T) {
	t.Parallel()
	l := newLine(Config[*job]{Slots: 1, Waiting: 3, WaitingBytes: 10 * size})
	taken := 0
	for i := range 10 {
		if l.add(fmt.Sprint(i), "a", "", time.Hour) {
			taken++
		}
	}
	if taken != 4 { // one performed, three wait
		t.Errorf("%d commands for one destination were taken", taken)
	}
	for _, target := range []string{"b", "c", "d"} {
		for i := range 5 {
			if l.add(target+fmt.Sprint(i), target, "", time.Hour) {
				taken++
			}
		}
	}
	if taken != 11 { // ten are the bytes that may wait
		t.Errorf("%d commands were taken", taken)
	}
	if !l.add("e", "e", "", time.Hour) || l.add("e", "e", "", time.Hour) {
		t.Error("a destination for which nothing waits has room for one, and no more")
	}
	first := l.of("a").line[0].jobs[0]
	if !l.Drop(first) || l.Drop(first) || l.room.waiting != 10 {
		t.Errorf("%d wait after one was dropped", l.room.waiting)
	}
	if rest := l.Close(); len(rest) != 10 || l.room.waiting != 0 || l.room.bytes != 0 {
		t.Errorf("%d were given back; %d wait, %d bytes", len(rest), l.room.waiting, l.room.bytes)
	}
	if l.add("f", "f", "", time.Hour) {
		t.Error("a closed admission took a command")
	}
}

func (l *line) of(target string) *target[*job] { return l.targets.known[target] }

func TestDestinationsAreBounded(t *testing.T) {
	t.Parallel()
	l := newLine(Config[*job]{})
	l.add("busy", "busy", "", time.Hour)
	for i := range maxTargets {
		name := fmt.Sprint(i)
		l.add(name, name, "", time.Hour)
		l.end(name, Healthy)
	}
	if len(l.targets.known) != maxTargets || l.targets.known["busy"] == nil || l.targets.known["0"] != nil {
		t.Errorf("%d destinations are remembered", len(l.targets.known))
	}
}

func TestAnswersHoldNoSlots(t *testing.T) {
	t.Parallel()
	l := newLine(Config[*job]{Slots: 4})
	for range maxAnswers + 10 {
		l.add("wide", "wide", "", time.Hour)
	}
	var answered []*job
	for len(answered) < maxAnswers+10 {
		l.seen.Lock()
		j := l.jobs["wide"]
		delete(l.jobs, "wide")
		l.seen.Unlock()
		if j == nil {
			break
		}
		l.Left(&j.Ticket, Healthy) // and its commit takes long
		answered = append(answered, j)
	}
	if n := len(answered); n < maxAnswers-4 || n > maxAnswers+4 {
		t.Fatalf("%d commands were answered before the first was committed, want about %d", n, maxAnswers)
	}
	if why := l.why(l.targets.known["wide"]); !strings.Contains(why, "commit") {
		t.Errorf("the next waits for %s", why)
	}
	l.begun = nil
	l.add("other", "other", "", time.Hour)
	l.got(t, "other")
	for _, j := range answered {
		l.Done(&j.Ticket, false)
	}
	l.end("other", Healthy)
	if got := len(l.begun); got == 0 {
		t.Error("nothing begins when the answers are committed")
	}
}

// Those that have waited are counted before they are started, and together: all that get
// their places while others are counted.
func TestThoseThatWaitedAreCountedTogether(t *testing.T) {
	var counted [][]string
	hold, held := make(chan bool), make(chan bool)
	l := newLine(Config[*job]{Slots: 4, Begin: func(jobs []*job) {
		var names []string
		for _, j := range jobs {
			names = append(names, j.Instance)
		}
		counted = append(counted, names)
		held <- true
		<-hold
	}})
	for i := range 8 {
		if !l.add(fmt.Sprint(i), "a", "", time.Hour) {
			t.Fatal(i)
		}
	}
	for i := range 3 {
		l.Done(&l.jobs[fmt.Sprint(i)].Ticket, false)
		if i == 0 {
			<-held
		}
	}
	if got := l.started(); got != "0 1 2" {
		t.Errorf("started before they were counted: %s", got)
	}
	hold <- true
	<-held
	hold <- true
	for l.started() != "0 1 2 3 4 5" {
		runtime.Gosched()
	}
	if got := fmt.Sprint(counted); got != "[[3] [4 5]]" {
		t.Errorf("counted together: %s", got)
	}
	for i := 3; i < 6; i++ {
		l.Done(&l.jobs[fmt.Sprint(i)].Ticket, false)
		if i == 3 {
			<-held
		}
	}
	hold <- true
	<-held
	hold <- true
	for l.started() != "0 1 2 3 4 5 6 7" {
		runtime.Gosched()
	}
	l.Done(&l.jobs["6"].Ticket, false)
	l.Done(&l.jobs["7"].Ticket, false)
	l.Wait()
}

// started are the commands that were, in their order.
func (l *line) started() string {
	l.seen.Lock()
	defer l.seen.Unlock()
	return strings.Join(l.begun, " ")
}

// What was dropped does not stay in a line of which little is begun.
func TestDroppedIsForgotten(t *testing.T) {
	t.Parallel()
	l := newLine(Config[*job]{Slots: 1})
	for _, first := range []string{"runs", "waits"} {
		l.add(first, "x", "", time.Hour)
	}
	for i := range 10_000 {
		j := &job{}
		j.Ticket = Ticket[*job]{Of: j, Instance: fmt.Sprint(i % 7), Key: fmt.Sprint(i), Size: size, To: Destination{Target: "x"}, Late: time.Now().Add(time.Hour)}
		if !l.Reserve(&j.Ticket) || !l.Launch(&j.Ticket) || !l.Drop(&j.Ticket) {
			t.Fatalf("%d finds no room", i)
		}
	}
	kept := 0
	for _, s := range l.targets.known["x"].line {
		kept += len(s.jobs)
	}
	if kept > 2 {
		t.Errorf("%d stand in a line of one", kept)
	}
}
