package oracle

import (
	"strconv"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/store"
	jsonv2 "github.com/go-json-experiment/json"
)

// A message's body is the envelope and nothing else. What the store must
// remember besides is in the envelope already (when it is due), or is a note
// beside the body, which only messages have that were released, repeated, or
// are no envelope. A note costs memory in the client library that is never
// freed, so the usual message has none.

// note is what a message carries beside its body.
type note struct {
	attempts int
	due      time.Time
	id       string // of the message when it was sent first
	enqueued time.Time
	empty    bool // the body has no bytes; the queue holds one
	faults   int  // how often it was sent again for a fault of the database
}

const noteMark = "aqueduct1"

func (n note) encode() string {
	num := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return strconv.FormatInt(t.UnixMicro(), 36)
	}
	empty := ""
	if n.empty {
		empty = "e"
	}
	f := []string{noteMark, strconv.Itoa(n.attempts), num(n.due), n.id, num(n.enqueued), empty}
	if n.faults > 0 {
		f = append(f, strconv.Itoa(n.faults))
	}
	return strings.Join(f, ";")
}

// parseNote reads a note. Anything else, such as an application's own
// correlation, is none.
func parseNote(s string) (n note, ok bool) {
	f := strings.Split(s, ";")
	if len(f) != 6 && len(f) != 7 || f[0] != noteMark {
		return note{}, false
	}
	if len(f) == 7 {
		n.faults, _ = strconv.Atoi(f[6])
	}
	moment := func(s string) time.Time {
		us, err := strconv.ParseInt(s, 36, 64)
		if err != nil {
			return time.Time{}
		}
		return time.UnixMicro(us).UTC()
	}
	n.attempts, _ = strconv.Atoi(f[1])
	n.due, n.id, n.enqueued, n.empty = moment(f[2]), f[3], moment(f[4]), f[5] != ""
	return n, true
}

// head is what an envelope says of itself and its times.
type head struct {
	SignalID   string    `json:"signalId"`
	OccurredAt time.Time `json:"occurredAtUtc"`
	DueAt      time.Time `json:"dueAtUtc"`
}

func headOf(body []byte) head {
	var h head
	if len(body) == 0 || body[0] != '{' || jsonv2.Unmarshal(body, &h) != nil {
		return head{}
	}
	return h
}

// message is a dequeued message as the runtime sees it.
func message(q store.Queue, raw *aq.Message) store.Message {
	m := store.Message{ID: raw.ID, Queue: q, Body: raw.Body, Priority: raw.Priority, EnqueuedAt: raw.EnqueuedAt}
	if n, ok := parseNote(raw.Note); ok {
		m.Attempts, m.DueAt = n.attempts, n.due
		if n.id != "" {
			m.ID = n.id
		}
		if !n.enqueued.IsZero() {
			m.EnqueuedAt = n.enqueued
		}
		if n.empty {
			m.Body = []byte{}
		}
		return m
	}
	h := headOf(raw.Body)
	m.DueAt = h.DueAt.UTC()
	if h.DueAt.IsZero() {
		m.DueAt = time.Time{}
	}
	// The queue's time has whole seconds; the envelope's is finer, if it is
	// the same second.
	if after := h.OccurredAt.Sub(m.EnqueuedAt); after > 0 && after < time.Second {
		m.EnqueuedAt = h.OccurredAt.UTC()
	}
	return m
}

// outgoing is a message on its way to a queue.
func outgoing(m *store.Send, now time.Time) aq.Send {
	out := aq.Send{Body: m.Body, Priority: m.Priority}
	if out.Priority == 0 {
		out.Priority = store.DefaultPriority
	}
	due := ceilMicro(m.Due)
	if !due.IsZero() {
		out.Delay = max(due.Sub(now), 0)
	}
	if h := headOf(m.Body); m.Attempts > 0 || len(m.Body) == 0 || !ceilMicro(h.DueAt).Equal(due) {
		out.Note = note{attempts: m.Attempts, due: due, empty: len(m.Body) == 0}.encode()
	}
	if len(out.Body) == 0 {
		out.Body = []byte{0}
	}
	return out
}

// again is a message that is consumed and sent once more, as the same message.
func again(m *store.Message, attempts, faults int, delay time.Duration) aq.Send {
	out := aq.Send{Body: m.Body, Priority: m.Priority, Delay: delay}
	out.Note = note{attempts: attempts, due: m.DueAt, id: m.ID, enqueued: m.EnqueuedAt, empty: len(m.Body) == 0, faults: faults}.encode()
	if len(out.Body) == 0 {
		out.Body = []byte{0}
	}
	out.Priority = min(max(out.Priority, 1), 9)
	return out
}

// ceilMicro rounds up to what a column keeps, so that a message is never early
// by a part of a microsecond.
func ceilMicro(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	c := t.Truncate(time.Microsecond)
	if c.Before(t) {
		c = c.Add(time.Microsecond)
	}
	return c.UTC()
}
