package oracle

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Claim check: a body that no message can hold is a row of WF_PAYLOADS, and the
// message carries a reference to it. Both are written by one commit, and both
// go with the commit that consumes the message; between these the row stays,
// however often the message comes again. The message's correlation is the id of
// the row, so that one statement can tell rows without a message.

// claim is what a message carries in the place of its body.
type claim struct {
	ID    string `json:"id"`
	Bytes int    `json:"bytes"`
	Note  string `json:"note,omitempty"` // what other messages carry as correlation
}

// reference is a claim as a message's body. No envelope looks like it.
type reference struct {
	Claim claim `json:"claimCheck"`
}

var referenceHead = []byte(`{"claimCheck":`)

// errClaimLost says that a message refers to a payload that is not there.
var errClaimLost = errors.New("the payload of the message is gone")

// reasonClaimLost is the reason of a dead letter whose envelope is but a reference.
const reasonClaimLost = "message.claim-lost"

// claimOf reads a reference; ok is false for a body that is none.
func claimOf(body []byte) (c claim, ok bool) {
	if !bytes.HasPrefix(body, referenceHead) {
		return claim{}, false
	}
	var r reference
	if jsonv2.Unmarshal(body, &r) != nil || r.Claim.ID == "" {
		return claim{}, false
	}
	return r.Claim, true
}

// carry puts the reference in the place of a message's body.
func (c claim) carry(out aq.Send) aq.Send {
	c.Note = out.Note
	body, err := json.Marshal(reference{Claim: c})
	if err != nil {
		panic(err) // two texts and a number
	}
	out.Body, out.Note = body, c.ID
	return out
}

// deposit adds to a change the row of a body that its message cannot hold, or
// that would be taken for a reference, and returns the message with a reference
// instead.
func (w *work) deposit(out aq.Send, now time.Time) aq.Send {
	if len(out.Body) <= aq.MaxBytes && !bytes.HasPrefix(out.Body, referenceHead) {
		return out
	}
	c := claim{ID: uuid.NewString(), Bytes: len(out.Body)}
	w.add(nil, "payload_insert", c.ID, instanceIn(out.Body), stamp(now), out.Body)
	return c.carry(out)
}

// instanceIn is the instance that an envelope names, "" for none.
func instanceIn(body []byte) string {
	var head struct {
		InstanceID string `json:"workflowInstanceId"`
	}
	_ = jsonv2.Unmarshal(body, &head) // what is no envelope names no instance
	return within(head.InstanceID, idMax)
}

// redeem gives a message its body back, from the transaction that has dequeued
// it. The claim is nil for a message that carries its own.
func redeem(ctx context.Context, session *aq.Session, raw *aq.Message) (*aq.Message, *claim, error) {
	c, ok := claimOf(raw.Body)
	if !ok {
		return raw, nil, nil
	}
	var body []byte
	err := session.QueryRowContext(ctx, text("payload_select"), c.ID).Scan(&rows.Into{To: &body})
	if errors.Is(err, sql.ErrNoRows) || err == nil && len(body) != c.Bytes {
		return raw, &c, fmt.Errorf("%w: %s has %d bytes of %d", errClaimLost, c.ID, len(body), c.Bytes)
	}
	if err != nil {
		return raw, &c, explain(err)
	}
	whole := *raw
	whole.Body, whole.Note = body, c.Note
	return &whole, &c, nil
}

// discardLost makes a dead letter of a message whose payload is gone: it could
// never be handled, and it would come again for ever.
func (s receivers) discardLost(ctx context.Context, session *aq.Session, name store.Queue, raw *aq.Message, cause error) error {
	s.log.Error("oracle: a message without its payload is a dead letter now", "queue", name, "message", raw.ID, "error", cause)
	w := &work{}
	planner(s).deadLetter(w, nil, projections.DeadLetter{
		ID: raw.ID, Queue: string(name), Envelope: raw.Body, Reason: reasonClaimLost, Detail: cause.Error(), Attempts: raw.Rollbacks,
		Node: s.o.Node, EnqueuedAt: raw.EnqueuedAt, DiedAt: s.clock.now(),
	})
	if err := execute(ctx, session, w, false); err != nil {
		return err
	}
	unsent(s.log, w)
	return commit(session)
}

// sweepPayloads deletes what no message refers to any more: messages can be
// purged by an operator, their payloads are not.
func (s janitor) sweepPayloads(ctx context.Context, before time.Time) error {
	n, err := sweep(ctx, s.db, "payload_orphans", "payload_delete", stamp(before))
	if n > 0 {
		s.log.Info("oracle: payloads without a message were deleted", "count", n)
	}
	return err
}
