package aq

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestTheTableOfCodes(t *testing.T) {
	t.Parallel()
	want := map[Class][]int{
		Normal:    {25228, 25254, 25263},
		Paused:    {1000, 1502, 4030, 4031, 4036, 16000, 16456, 25226, 25207, 1555, 30036, 1653, 1654, 1691},
		Fatal:     {932, 24010, 24002, 25205, 24033, 25215, 25242, 25206, 1453},
		Duplicate: {1},
		Locked:    {54, 30006, 60},
		Retry:     {8177, 4061, 4068, 4020, 4021},
		Broken:    {1013},
		Reconnect: {6508, 12526, 12527, 12535, 25402, 3156, 2396, 28, 1012, 3113, 3114, 3135, 12170, 12514, 12528, 12537, 12541, 12547, 12570, 1033, 1034, 1089, 1092, 24459, 24496, 3137, 3138, 25400, 25405, 25409},
		Data:      {1460, 12899, 1400, 2290, 2291, 24816, 1461},
	}
	for class, list := range want {
		for _, code := range list {
			if got := classOf[code]; got != class {
				t.Errorf("ORA-%05d is %q, want %q", code, got, class)
			}
		}
	}
	count := 0
	for _, list := range classes {
		count += len(list)
	}
	if count != len(classOf) {
		t.Errorf("%d codes are listed, %d are different", count, len(classOf))
	}
}

// A wrapper is judged by what is behind it; what happens in a statement of the
// database's own is never a value of ours.
func TestChainsAreJudgedByTheirCause(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Class{
		"ORA-00604: error occurred at recursive SQL level 1\nORA-01653: unable to extend table A.B": Paused,
		"ORA-00604: error occurred at recursive SQL level 2\nORA-00604: again\nORA-04031: unable":   Paused,
		"ORA-00604: error\nORA-00060: deadlock":                                                     Locked,
		"ORA-00604: error\nORA-00001: unique constraint violated":                                   Fatal,
		"ORA-00604: error\nORA-12899: value too large":                                              Fatal,
		"ORA-00604: error\nORA-06512: at SYS.X, line 1\nORA-16000: open":                            Paused,
		"ORA-12801: error in a parallel server\nORA-01652: temp segment":                            Paused,
		"ORA-04088: error during a trigger\nORA-12899: value too large":                             Data,
		"ORA-00604: error occurred at recursive SQL level 1":                                        None,
		"ORA-29275: partial multibyte character":                                                    None,
	} {
		first, _ := strconv.Atoi(text[4:9])
		list := append([]int{first}, behind(text)...)
		if got := judge(list); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestErrorsWithoutACode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want Class
	}{
		{nil, None},
		{driver.ErrBadConn, Reconnect},
		{fmt.Errorf("x: %w", errDeaf), Reconnect},
		{fmt.Errorf("x: %w", ErrBroken), Broken},
		{errors.New("no idea"), Fatal},
		{errors.New("ORA-00000: DPI-1010: not connected"), Reconnect},
		{errors.New("ORA-00000: DPI-1002: invalid dpiConn handle"), Reconnect},
		{errors.New("ORA-00000: DPI-1080: connection was closed by an unknown error"), Reconnect},
		{errors.New("ORA-00000: DPI-1040: LOB was already closed"), Fatal},
	} {
		if got := Classify(c.err); got != c.want {
			t.Errorf("%v is %q, want %q", c.err, got, c.want)
		}
	}
}

func TestMessagesAreSentWithTheirProperties(t *testing.T) {
	t.Parallel()
	for delay, want := range map[time.Duration]time.Duration{
		-time.Second: 0, 0: 0, 1: time.Second, time.Second: time.Second, 1001 * time.Millisecond: 2 * time.Second,
		100 * 365 * 24 * time.Hour: maxDelay, math.MaxInt64: maxDelay, // the client library counts in 32 bits
	} {
		m := Send{Body: []byte("x"), Priority: 5, Delay: delay}.message()
		if m.Delay != want || m.Expiration != -time.Second || m.Priority != 5 {
			t.Errorf("delay %v gives %+v", delay, m)
		}
	}
	for _, bad := range []Send{
		{Priority: 5}, {Body: []byte("x")}, {Body: []byte("x"), Priority: 10},
		{Body: make([]byte, MaxBytes+1), Priority: 5}, {Body: []byte("x"), Priority: 5, Note: strings.Repeat("n", MaxNote+1)},
	} {
		if bad.Check() == nil {
			t.Errorf("%d bytes with priority %d are accepted", len(bad.Body), bad.Priority)
		}
	}
}

func TestBackoffGrowsAndIsBounded(t *testing.T) {
	t.Parallel()
	for attempt := range 40 {
		if d := Backoff(attempt); d < 50*time.Millisecond || d > 10*time.Second {
			t.Errorf("attempt %d waits %v", attempt, d)
		}
	}
}

// What the network says is no answer, whatever it is. What a database says, and nobody
// knows, is one.
func TestACodeOfTheNetworkIsNoAnswer(t *testing.T) {
	t.Parallel()
	for _, code := range []int{12592, 12599, 12608, 12609, 12699, 3137, 25405, 3113} {
		if got := judge([]int{code}); got != Reconnect {
			t.Errorf("ORA-%05d is %q", code, got)
		}
	}
	for _, code := range []int{12149, 12700, 20001, 29275} {
		if got := judge([]int{code}); got == Reconnect {
			t.Errorf("ORA-%05d is %q", code, got)
		}
	}
	if !Unanswered(fmt.Errorf("%w: %w", errUnanswered, errors.New("no idea"))) {
		t.Error("what came with the end of the connection is an answer")
	}
}

// What is said of the link, of its end, or instead of one. Where a commit was under way nobody
// knows its outcome: all of these come from the client library, or from a server that goes. Only
// the change of roles is an answer, by a database that goes on, to a statement that it has refused.
func TestWhatIsSaidOfTheLink(t *testing.T) {
	t.Parallel()
	for class, codes := range map[Class][]int{
		Reconnect: {
			28, 1012, 2391, 2392, 2394, 2396, 2397, 2399, // the session
			1033, 1034, 1035, 1089, 1090, 1092, 1109, 1219, 12526, 12527, 12528, // the instance, or the database in it
			3113, 3114, 3135, 12170, 12514, 12537, 12541, 12547, 28864, // the connection
			24418, 24457, 24459, 24496, // the pool of the client library
			25402, 25405, 25408, 25409, 25425, // failover
		},
		Paused: {16000, 16456}, // the role
	} {
		for _, code := range codes {
			if got := judge([]int{code}); got != class {
				t.Errorf("ORA-%05d is %q, want %q", code, got, class)
			}
			wrapped := append([]int{604}, behind(fmt.Sprintf("ORA-00604: error\nORA-%05d: x", code))...)
			if got := judge(wrapped); got != class {
				t.Errorf("ORA-%05d behind a wrapper is %q, want %q", code, got, class)
			}
		}
	}
	for text, want := range map[string]bool{"ORA-00000: DPI-1010: not connected": true, "ORA-00000: DPI-1080: connection was closed": true} {
		if got := Unanswered(errors.New(text)); got != want {
			t.Errorf("%s: unanswered is %t", text, got)
		}
	}
}
