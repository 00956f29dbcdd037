package aq

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godror/godror"
)

// Class says what a caller does about an error.
type Class string

const (
	None      Class = ""          // no error
	Normal    Class = "normal"    // nothing came; go on
	Locked    Class = "locked"    // another session has the rows: do it again, and others meanwhile
	Retry     Class = "retry"     // do it again
	Broken    Class = "broken"    // broken off, perhaps too late: roll back, and do it again
	Reconnect Class = "reconnect" // close the session; connect again with backoff
	Paused    Class = "paused"    // the database cannot go on, or an operator must act; back off long and tell
	Fatal     Class = "fatal"     // wrongly installed, a bug of ours, or a code that is not known
	Data      Class = "data"      // the database will never take this value
	Duplicate Class = "duplicate" // the key exists
)

// Codes that the package itself asks for.
const (
	codeBreak     = 1013
	codeNoQueue   = 24010
	codeEmpty     = 25228
	codeTooLong   = 6502  // for a variable of PL/SQL
	codeNoMessage = 25263 // with that id
)

// classes is what is known of codes; anything else is Fatal. The meanings are those
// of the Database Error Messages of Oracle 19c to 23ai, by code.
var classes = map[Class][]int{
	Normal: {
		25228, // no message within the wait
		25254, // the same of a listen
		25263, // no message with that id
	},
	Locked: {
		54, 30006, // lock not to be had at once, or in time
		60, // deadlock
	},
	Broken: {1013},
	Retry: {
		4020, 4021, // an object is being changed or compiled: deadlock on it, or not to be had in time
		4061, 4065, 4068, // package state discarded
		8177, // serialisation
	},
	Reconnect: {
		22, 28, 31, 45, 1012, 2392, 2394, 2396, 2397, 2399, // the session was ended
		1033, 1034, 1035, 1089, 1090, 1092, 1109, 1219, // the instance starts or stops, or the database in it is not open
		18, 20, 2391, 24418, 24457, // no session to be had now
		378, 600, 602, 603, 609, 1041, 1043, 3106, 3113, 3114, 3122, 3135, 3136, 3137, 3138, // the connection was lost
		6508, // a program unit that the session knew is gone: another session finds it again
		12152, 12153, 12154, 12170, 12203, 12502, 12505, 12514, 12516, 12518, 12519, 12520, 12521, 12537, 12541, 12543,
		12526, 12527, 12528, // the listener lets nobody in: restricted, or the instance starts or stops
		12535,                                                         // time ran out
		12545, 12547, 12549, 12560, 12564, 12570, 12571, 12583, 12606, // listener and network
		24338, 24459, 24496, 25400, 25401, 25402, 25403, 25404, 25405, 25406, 25407, 25408, 25409, 25425, 27146, 28511, 28547, 28860, 28862, 28864, 56600, // client library, TLS
		3156, // a time limit that nobody set
	},
	Paused: {
		25207, 25226, // the queue is stopped for enqueue, dequeue
		1536, 1555, 1631, 1632, 1652, 1653, 1654, 1683, 1688, 1691, 30036, 257, // space, undo, archiver
		1000,             // cursors: too few for a session
		4030, 4031, 4036, // memory: of a process, the shared pool, all sessions together
		1502,         // an index cannot be used until it is rebuilt
		16000, 16456, // the database is open for reading only: a standby, or about to switch over
	},
	Fatal: {
		24002, 24010, 25205, // queue or its table is missing
		24033,               // no recipient: a queue of many consumers
		25206, 25215, 25242, // wrong kind of queue, wrong payload
		24048, 942, 1031, 1017, 1045, 28000, 28001, 6550, // privileges, account, missing objects
		900, 904, 1453, 2014, 1008, 1036, 1745, // the statement
		932, // types of a statement that do not fit: no value is to blame
	},
	Data: {
		1460, 1461, 24816, // a value longer than what takes it
		12899, 1400, 1407, 1438, 1465, 1839, 2290, 2291, 2292, 22835,
	},
	Duplicate: {1},
}

// wrappers are codes that say where something went wrong; what did is behind
// them in the text: a statement of the database's own, a trigger, a line of
// PL/SQL, a process of a parallel statement.
var wrappers = []int{604, 4088, 6512, 12801}

// recursive is the wrapper of a statement of the database's own. That a key
// exists there, or a value does not fit, says nothing of ours.
const recursive = 604

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

// Codes of Oracle Net: whatever they say, it is of a connection.
const netMin, netMax = 12150, 12699

// classOfCode is the class of one code; none is known of others.
func classOfCode(code int) Class {
	if class, ok := classOf[code]; ok || code < netMin || code > netMax {
		return class
	}
	return Reconnect
}

// Classify says what an error of this package, or of a statement on a
// session's transaction, means.
func Classify(err error) Class {
	if err == nil {
		return None
	}
	if errors.Is(err, errDeaf) || errors.Is(err, sql.ErrTxDone) || errors.Is(err, sql.ErrConnDone) {
		return Reconnect
	}
	if errors.Is(err, ErrBroken) {
		return Broken
	}
	found := judge(codes(err))
	if found == None || found == Fatal {
		if errors.Is(err, driver.ErrBadConn) || godror.IsBadConn(err) || unconnected.MatchString(err.Error()) {
			return Reconnect
		}
		return Fatal
	}
	return found
}

// unconnected are what ODPI-C says itself of a connection that is gone. It has no ORA numbers
// for that, so it is known by its text alone.
var unconnected = regexp.MustCompile(`\bDPI-10(02|10|80):`)

// judge is what codes mean together, outermost first. The driver joins the error
// of its own attempt to start a stopped queue with the error that matters.
func judge(list []int) Class {
	found, inside := None, false
	for _, code := range list {
		class := classOfCode(code)
		if inside = inside || code == recursive; inside && (class == Data || class == Duplicate || class == Normal) {
			class = Fatal
		}
		switch {
		case class == Paused || class == Reconnect:
			return class
		case found == None || found == Fatal && class != None:
			found = class
		}
	}
	return found
}

// errUnanswered marks the error of a call whose connection is gone, whatever its code.
var errUnanswered = errors.New("the connection ended with the call")

// Unanswered says that an error does not tell whether a call had its effect: the
// connection was lost, or the call was broken off when it had perhaps committed.
func Unanswered(err error) bool {
	return errors.Is(err, errUnanswered) || Classify(err) == Reconnect || len(codes(err)) == 0 || hasCode(err, codeBreak)
}

// codes are the Oracle codes in an error's tree.
func codes(err error) []int {
	var list []int
	var walk func(error)
	walk = func(err error) {
		for err != nil {
			if o, ok := err.(*godror.OraErr); ok { //nolint:errorlint // the tree is walked here
				list = append(list, o.Code())
				if slices.Contains(wrappers, o.Code()) {
					list = append(list, behind(o.Message())...)
				}
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

// behind are the codes that the text of a wrapper names.
func behind(text string) (list []int) {
	for _, m := range oraCode.FindAllStringSubmatch(text, -1) {
		if code, err := strconv.Atoi(m[1]); err == nil && !slices.Contains(wrappers, code) {
			list = append(list, code)
		}
	}
	return list
}

var oraCode = regexp.MustCompile(`ORA-(\d{5})`)

// Cause is the code that says what went wrong: the first that is no wrapper.
func Cause(err error) (code int, ok bool) {
	list := codes(err)
	for _, c := range list {
		if !slices.Contains(wrappers, c) {
			return c, true
		}
	}
	if len(list) == 0 {
		return 0, false
	}
	return list[0], true
}

// Names says whether the text of an error names a code: that of PL/SQL which does not
// compile has its reasons there only.
func Names(err error, code int) bool {
	o, ok := godror.AsOraErr(err)
	return ok && slices.Contains(behind(o.Message()), code)
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
