package runtime_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// booking is what a step asks of the outside; Back is asked by its compensation.
type booking struct {
	Saga string `json:"saga"`
	Step int    `json:"step"`
	Back bool   `json:"back,omitempty"`
	Of   string `json:"of,omitempty"` // the step's key, as the document says it
}

// saga is one that goes wrong at a step, or well at none.
type saga struct {
	language, how string
	at            int
}

func (s saga) id() string { return fmt.Sprintf("%s-%s-%d", s.language, s.how, s.at) }

func sagaOf(id string) saga {
	parts := strings.Split(id, "-")
	at, _ := strconv.Atoi(parts[2])
	return saga{parts[0], parts[1], at}
}

// sagas are all of them, in which the steps go wrong that are given.
func sagas(languages []string, at ...int) (all []saga) {
	for _, language := range languages {
		all = append(all, saga{language, "well", 0})
		ways := []string{"fails", "unknown", "cancelled"}
		if language == "levels" { // cancelled when a catch has begun to compensate
			ways = append(ways, "ended")
		}
		for _, how := range ways {
			for _, n := range at {
				all = append(all, saga{language, how, n})
			}
		}
	}
	return all
}

// last is the last step that was done, or may have been.
func (s saga) last() int {
	switch {
	case s.how == "well" || s.language == "items": // all are asked for at once
		return sagaSteps
	case s.refuses(s.at):
		return s.at - 1
	}
	return s.at
}

// status is the one with which it ends.
func (s saga) status() snapshot.Status {
	switch {
	case s.how == "well":
		return snapshot.Completed
	case s.last() == 0 || s.language == "levels" && s.how != "cancelled":
		return snapshot.Faulted
	}
	return snapshot.Compensated
}

// refuses reports whether a step is refused.
func (s saga) refuses(step int) bool { return (s.how == "fails" || s.how == "ended") && s.at == step }

// books are what the outside keeps: who has booked what, under which keys.
type books struct {
	mu       sync.Mutex
	booked   map[booking]string // keys
	reached  map[booking]bool   // asked for, done or not
	back     map[booking]string
	order    map[string][]int // steps that were taken back, by saga
	refused  map[string]bool  // keys of bookings that were taken back
	attempts map[booking]int
	wrong    []string
}

func (b *books) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	var asked booking
	if r.Method == http.MethodGet { // the driver wants to know how far a saga is
		asked = booking{Saga: r.FormValue("saga"), Back: r.FormValue("back") == "true"}
		asked.Step, _ = strconv.Atoi(r.FormValue("step"))
		b.mu.Lock()
		defer b.mu.Unlock()
		fmt.Fprint(rw, b.reached[asked] || b.back[asked] != "")
		return
	}
	if err := json.Unmarshal(raw, &asked); err != nil || asked.Saga == "" {
		b.note("%s is no booking: %v", raw, err)
		http.Error(rw, "no booking", http.StatusUnprocessableEntity)
		return
	}
	key, of := r.Header.Get("Idempotency-Key"), r.Header.Get("Aqueduct-Reverses")
	if asked.Of != "" && cmp.Or(of, asked.Of) != asked.Of {
		b.note("%+v says the key %s, and reverses %s", asked, asked.Of, of)
	}
	of = cmp.Or(of, asked.Of) // of a sub-workflow nobody knows what it undoes but its input
	asked.Of = ""
	if asked.Back {
		rw.WriteHeader(b.takesBack(asked, key, of))
		fmt.Fprint(rw, "{}")
		return
	}
	status, holds := b.books(asked, key)
	if holds {
		<-r.Context().Done() // until it is withdrawn, or its node is dead
		return
	}
	rw.WriteHeader(status)
	fmt.Fprintf(rw, `{"id": %q}`, key)
}

func (b *books) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
}

// books takes a booking; holds: it does not answer.
func (b *books) books(asked booking, key string) (status int, holds bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := sagaOf(asked.Saga)
	b.reached[asked] = true
	if b.refused[key] && s.how == "cancelled" && (asked.Step == s.at || s.language == "items") {
		return http.StatusConflict, false // it was on its way when it was withdrawn, and what reverses it was faster
	}
	if asked.Step > s.last() && !s.refuses(asked.Step) || b.refused[key] {
		b.wrong = append(b.wrong, fmt.Sprintf("%+v is booked as %s", asked, key))
	}
	if s.refuses(asked.Step) {
		return http.StatusUnprocessableEntity, false
	}
	if s.how != "unknown" || s.at != asked.Step || s.at%2 == 1 { // every other of unknown outcome is done
		if before := cmp.Or(b.booked[asked], key); before != key {
			b.wrong = append(b.wrong, fmt.Sprintf("%+v is booked as %s and as %s", asked, before, key))
		}
		b.booked[asked] = key
	}
	if s.at == asked.Step && s.how == "unknown" {
		return http.StatusGatewayTimeout, false
	}
	return http.StatusOK, s.at == asked.Step && s.how == "cancelled"
}

// takesBack takes a booking back, at the second attempt.
func (b *books) takesBack(asked booking, key, of string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.attempts[asked]++; b.attempts[asked] == 1 && asked.Step%2 == 0 {
		return http.StatusServiceUnavailable
	}
	booked := b.booked[booking{Saga: asked.Saga, Step: asked.Step}]
	if of == "" { // of a sub-workflow in Go, whose input does not say it
		of = booked
	}
	if before := cmp.Or(b.back[asked], key); before != key || booked != "" && booked != of {
		b.wrong = append(b.wrong, fmt.Sprintf("%+v, booked as %q, is taken back as %s of %s, before as %s", asked, booked, key, of, before))
	}
	if b.back[asked] == "" {
		b.order[asked.Saga] = append(b.order[asked.Saga], asked.Step)
	}
	b.back[asked], b.refused[of] = key, true
	return http.StatusOK
}

// agree says what is wrong in the books when a saga is over. After a crash a step that
// was refused may be taken back, too: nobody knows what the attempt did that was under
// way.
func (b *books) agree(s saga, crashed bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var want []int
	for i := s.last(); i > 0 && s.how != "well"; i-- {
		if !s.refuses(i) {
			want = append(want, i)
		}
	}
	got := slices.Clone(b.order[s.id()])
	if i := slices.Index(got, s.at); crashed && s.refuses(s.at) && (i == 0 || i > 0 && s.language == "items") {
		got = slices.Delete(got, i, i+1)
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s took back %v, want %v", s.id(), got, want)
	}
	for i := 1; i <= sagaSteps; i++ {
		booked := b.booked[booking{Saga: s.id(), Step: i}] != ""
		if s.how == "cancelled" && (i == s.at || s.language == "items") {
			continue // its request may have been overtaken
		}
		if should := i <= s.last() && !s.refuses(i) && !(s.how == "unknown" && i == s.at && i%2 == 0); booked != should {
			return fmt.Errorf("%s: step %d is booked: %t", s.id(), i, booked)
		}
	}
	return nil
}
