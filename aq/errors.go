package aq

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/godror/godror"
)

// Class says what a caller does about an error.
type Class string

const (
	None      Class = ""          // no error
	Normal    Class = "normal"    // nothing came; go on
	Retry     Class = "retry"     // roll back and do it again
	Reconnect Class = "reconnect" // close the session; connect again with backoff
	Paused    Class = "paused"    // an operator must act; back off long and tell
	Fatal     Class = "fatal"     // wrongly installed, or a bug of ours
	Data      Class = "data"      // the database will never take this value
	Duplicate Class = "duplicate" // the key exists
)

// Codes that the package itself asks for.
const (
	codeBreak   = 1013
	codeNoQueue = 24010
)

// classes is what is known of codes; anything else is Fatal.
var classes = map[Class][]int{
	Normal: {
		25228, // no message within the wait
		25254, // the same of a listen
		25263, // no message with that id
	},
	Retry: {
		54, 30006, // lock not to be had at once, or in time
		60,               // deadlock
		1013,             // broken off
		4061, 4065, 4068, // package state discarded
		8177, // serialisation
	},
	Reconnect: {
		22, 28, 31, 45, 1012, 2396, // the session was ended
		1033, 1034, 1089, 1090, 1092, // the instance starts or stops
		18, 20, 2391, // no session to be had now
		378, 600, 602, 603, 609, 1041, 1043, 3106, 3113, 3114, 3122, 3135, 3136, // the connection was lost
		12152, 12153, 12154, 12170, 12203, 12502, 12505, 12514, 12516, 12518, 12519, 12520, 12521, 12528, 12537, 12541, 12543,
		12545, 12547, 12549, 12560, 12564, 12570, 12571, 12583, 12606, // listener and network
		24338, 24459, 24496, 25408, 27146, 28511, 28547, 56600, // client library
		3156, // a time limit that nobody set
	},
	Paused: {
		25207, 25226, // the queue is stopped for enqueue, dequeue
		1536, 1555, 1631, 1632, 1652, 1653, 1654, 1683, 1688, 1691, 30036, 257, // space, undo, archiver
	},
	Fatal: {
		24002, 24010, 25205, // queue or its table is missing
		24033,               // no recipient: a queue of many consumers
		25206, 25215, 25242, // wrong kind of queue, wrong payload
		24048, 942, 1031, 1017, 1045, 28000, 28001, 6550, // privileges, account, missing objects
		900, 904, 1453, 2014, 1008, 1036, 1745, // the statement
	},
	Data: {
		12899, 1400, 1407, 1438, 1461, 1465, 1839, 2290, 2291, 2292, 24816, 932, 22835,
	},
	Duplicate: {1},
}

// classOf is classes by code.
var classOf = func() map[int]Class {
	m := map[int]Class{}
	for class, codes := range classes {
		for _, code := range codes {
			m[code] = class
		}
	}
	return m
}()

// Classify says what an error of this package, or of a statement on a
// session's transaction, means.
func Classify(err error) Class {
	if err == nil {
		return None
	}
	if errors.Is(err, ErrDeaf) {
		return Reconnect
	}
	if errors.Is(err, ErrBroken) {
		return Retry
	}
	// The driver joins the error of its own attempt to start a stopped queue
	// with the error that matters.
	found := None
	for _, code := range codes(err) {
		switch class := classOf[code]; {
		case class == Paused || class == Reconnect:
			return class
		case found == None || found == Fatal && class != None:
			found = class
		}
	}
	if found == None || found == Fatal {
		if errors.Is(err, driver.ErrBadConn) || godror.IsBadConn(err) {
			return Reconnect
		}
		return Fatal
	}
	return found
}

// codes are the Oracle codes in an error's tree.
func codes(err error) []int {
	var list []int
	var walk func(error)
	walk = func(err error) {
		for err != nil {
			if o, ok := err.(*godror.OraErr); ok { //nolint:errorlint // the tree is walked here
				list = append(list, o.Code())
			}
			switch u := err.(type) { //nolint:errorlint // the tree is walked here
			case interface{ Unwrap() error }:
				err = u.Unwrap()
			case interface{ Unwrap() []error }:
				for _, e := range u.Unwrap() {
					walk(e)
				}
				return
			default:
				return
			}
		}
	}
	walk(err)
	return list
}

// Codes are the Oracle error codes in err, outermost first.
func Codes(err error) []int { return codes(err) }

func hasCode(err error, code int) bool {
	for _, c := range codes(err) {
		if c == code {
			return true
		}
	}
	return false
}

// bare takes the driver's words from an error: they may contain whole
// payloads. What remains says the code and the database's own message.
func bare(err error) error {
	if err == nil {
		return nil
	}
	var list []string
	for _, c := range codes(err) {
		list = append(list, fmt.Sprintf("ORA-%05d", c))
	}
	text := strings.Join(list, ", ")
	if o, ok := godror.AsOraErr(err); ok {
		text += ": " + strings.TrimSpace(o.Message())
	}
	if text == "" {
		return err
	}
	return &stripped{text: text, cause: err}
}

// stripped is an error without the driver's own text.
type stripped struct {
	text  string
	cause error
}

func (e *stripped) Error() string { return e.text }
func (e *stripped) Unwrap() error { return e.cause }

// Backoff is the delay before a further attempt: from 100 ms doubling to 10 s,
// half of it at random, so that the nodes of a database do not come together.
func Backoff(attempt int) time.Duration {
	d := 10 * time.Second
	if attempt < 7 {
		d = 100 * time.Millisecond << max(attempt-1, 0)
	}
	return d/2 + rand.N(d/2)
}
