// Package await is how a test waits for what happens somewhere else: it looks
// again and again, and gives up when nothing has moved for long.
//
// Long is no time of a clock. What counts is how often was looked: each look
// counts for the pause that was asked for, whatever it took on a busy machine,
// and a look asks the database or the process that is as slow as what is waited
// for. Whatever has moved since the last look begins the count anew.
package await

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

// still is how long nothing may move, in pauses.
const still = time.Minute

// most bounds what moves for ever and comes to nothing, in pauses.
const most = 10 * still

// Wait is a wait for one thing; its zero value has not begun.
type Wait struct {
	state      any
	still, all time.Duration
}

// Again pauses and says whether to look again: not, if what was seen has been
// the same for long. What was seen are plain values, nil if nothing can be.
func (w *Wait) Again(pause time.Duration, seen any) bool {
	if !reflect.DeepEqual(seen, w.state) {
		w.state, w.still = seen, 0
	}
	w.still, w.all = w.still+pause, w.all+pause
	if w.still > still || w.all > most {
		return false
	}
	time.Sleep(pause)
	return true
}

// pause is between two looks at something in the same process.
const pause = 2 * time.Millisecond

// Until waits until ok, and fails a test that waits in vain; seen says what was
// seen by the last look.
func Until(t testing.TB, what string, look func() (ok bool, seen any)) {
	t.Helper()
	var w Wait
	for {
		ok, seen := look()
		if ok {
			return
		}
		if !w.Again(pause, seen) {
			t.Fatalf("%s: nothing moves any more: %s", what, fmt.Sprintf("%+v", seen))
		}
	}
}

// Receive waits for a value of another process, which is looked at meanwhile;
// false = it does nothing any more.
func Receive[T any](from <-chan T, look func() (seen any)) (v T, ok bool) {
	var w Wait
	for {
		select {
		case v = <-from:
			return v, true
		default:
		}
		if !w.Again(10*time.Millisecond, look()) {
			return v, false
		}
	}
}
