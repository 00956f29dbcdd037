package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// DeadLetter is a message taken out of circulation.
type DeadLetter struct {
	ID         string    `json:"id"`
	Queue      string    `json:"queue" enum:"signal,schedule,command"`
	InstanceID string    `json:"instanceId,omitempty"`
	Reason     string    `json:"reason" doc:"A problem's code."`
	Detail     string    `json:"detail"`
	Attempts   int       `json:"attempts"`
	Node       string    `json:"node"`
	EnqueuedAt time.Time `json:"enqueuedAt"`
	DiedAt     time.Time `json:"diedAt"`
	Priority   int       `json:"priority,omitempty" doc:"That its message had, and that a replay gives it; absent: the usual one."`
}

// DeadLetterDetail is a dead letter with what was sent.
type DeadLetterDetail struct {
	DeadLetter
	Envelope []byte `json:"envelope" doc:"Byte for byte, in base64."`
	Text     string `json:"text,omitempty" doc:"The same, when it is valid UTF-8."`

	Message    json.RawMessage `json:"message,omitempty" doc:"The same as JSON, when it is an envelope."`
	Unreadable string          `json:"unreadable,omitempty" doc:"Why it is none."`
	Command    *CommandDetail  `json:"command,omitempty" doc:"That it announces, when it is there."`
	Edit       *DeadLetterEdit `json:"edit,omitempty" doc:"The newest: what a replay sends. Absent: it was never edited."`
}

// DeadLetterEdit is what somebody has put in the place of what died.
type DeadLetterEdit struct {
	No     int64     `json:"number" doc:"From 1; 0 is what died."`
	What   string    `json:"what" enum:"envelope,input,same-key,original" doc:"envelope: another message; input, same-key: another input of the command that the letter is about, under a new key or under its own; original: what died."`
	At     time.Time `json:"at"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Body   []byte    `json:"body,omitempty" doc:"What is sent, in base64; of original, only number 0 has it."`
	Text   string    `json:"text,omitempty" doc:"The same, when it is valid UTF-8."`
}

// EditDeadLetterRequest puts something in the place of what died: one of an envelope, an
// input and the original.
type EditDeadLetterRequest struct {
	After    int64           `json:"after" minimum:"0" doc:"Number of the newest edit that the caller has seen; 0: they have seen none. Where there is a newer one, it is refused."`
	Envelope json.RawMessage `json:"envelope,omitempty" doc:"Another message, for the same instance and of the same type. A checksum in it is made anew."`
	Another  bool            `json:"another,omitempty" doc:"The envelope may be for another instance, or of another type."`
	Input    json.RawMessage `json:"input,omitempty" doc:"Another input of the command that the letter is about: a replay then asks for it by a new command, and discards the one that was given up."`
	Key      string          `json:"key,omitempty" enum:"new,same" doc:"Idempotency key of the input: a new one, or that which the command has. Absent: a new one, and refused while nobody knows whether the command was done."`
	Original bool            `json:"original,omitempty" doc:"Undo: a replay sends what died."`
}

// Replayed says what a replay has sent.
type Replayed struct {
	Edit int64 `json:"edit" doc:"Number of the edit; 0: what died."`
}

// DeadLetterQuery selects dead letters.
type DeadLetterQuery struct {
	Queue, Reason, InstanceID string
	Definition, Text          string        // of the instance, where it is there; in the words of the reason
	OlderThan                 string        // a duration: that died longer ago
	Wait                      time.Duration // the answer comes when the newest is not the Known, or after this, at most 60 s
	Known                     string        // id of the newest dead letter that the caller knows; "" = none
	List
}

func (q *DeadLetterQuery) values() url.Values {
	return values("queue", q.Queue, "reason", q.Reason, "instance", q.InstanceID, "definition", q.Definition, "text", q.Text, "olderThan", q.OlderThan)
}

// DeadLetterReasons counts dead letters by reason, the most frequent first.
type DeadLetterReasons struct {
	Items []ReasonCount `json:"items" nullable:"false"`
	More  bool          `json:"more,omitempty" doc:"There are others, older ones, that are not counted."`
}

// ReasonCount is how many dead letters have a reason.
type ReasonCount struct {
	Reason      string `json:"reason" doc:"A problem's code."`
	DeadLetters int    `json:"deadLetters"`
}

// DeadLetterReasons counts those that a query selects, in all of its pages.
func (c operatorCalls) DeadLetterReasons(ctx context.Context, q DeadLetterQuery) (DeadLetterReasons, error) {
	return get[DeadLetterReasons](ctx, c.caller, "/v1/dead-letter-reasons", q.values())
}

// DeadLetters lists dead letters, newest first, or waits for another.
func (c operatorCalls) DeadLetters(ctx context.Context, q DeadLetterQuery) (Page[DeadLetter], error) {
	v := q.values()
	if q.Known != "" {
		v.Set("known", q.Known)
	}
	if q.Wait > 0 {
		v.Set("wait", q.Wait.String())
	}
	return get[Page[DeadLetter]](ctx, c.caller, deadLetters, q.List.in(v))
}

// DeadLetter returns one dead letter.
func (c operatorCalls) DeadLetter(ctx context.Context, id string) (DeadLetterDetail, error) {
	return get[DeadLetterDetail](ctx, c.caller, deadLetters+"/"+url.PathEscape(id), nil)
}

// DeadLetterEdits lists the edits of a dead letter, those too of one that was replayed, the
// newest first; the last is what died.
func (c operatorCalls) DeadLetterEdits(ctx context.Context, id string, l List) (Page[DeadLetterEdit], error) {
	return get[Page[DeadLetterEdit]](ctx, c.caller, deadLetters+"/"+url.PathEscape(id)+"/edits", l.in(url.Values{}))
}

// EditDeadLetter puts something in the place of what died.
func (c operatorCalls) EditDeadLetter(ctx context.Context, id string, r EditDeadLetterRequest) (DeadLetterEdit, error) {
	out, _, err := post[DeadLetterEdit](ctx, c.caller, deadLetters+"/"+url.PathEscape(id)+"/edits", r)
	return out, err
}

// Replay sends a dead letter to its queue again, as it was edited last.
func (c operatorCalls) Replay(ctx context.Context, id string) (Replayed, error) {
	out, _, err := post[Replayed](ctx, c.caller, deadLetters+"/"+url.PathEscape(id)+"/replay", nil)
	return out, err
}

// ReplayAfter is Replay of what the caller has seen: where after is not the number of the
// newest edit, 0 being none, it is refused. Problem: dead-letter.edited.
func (c operatorCalls) ReplayAfter(ctx context.Context, id string, after int64) (Replayed, error) {
	out, _, err := post[Replayed](ctx, c.caller, deadLetters+"/"+url.PathEscape(id)+"/replay?after="+strconv.FormatInt(after, 10), nil)
	return out, err
}

// Discard removes a dead letter for good.
func (c operatorCalls) Discard(ctx context.Context, id string) error {
	_, err := c.send(ctx, request{method: http.MethodDelete, path: deadLetters + "/" + url.PathEscape(id)})
	return err
}

// DiscardAfter is Discard of what the caller has seen, as ReplayAfter is Replay of it. Problem:
// dead-letter.edited.
func (c operatorCalls) DiscardAfter(ctx context.Context, id string, after int64) error {
	_, err := c.send(ctx, request{method: http.MethodDelete, path: deadLetters + "/" + url.PathEscape(id) + "?after=" + strconv.FormatInt(after, 10)})
	return err
}
