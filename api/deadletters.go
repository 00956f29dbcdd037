package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

func (s operatorAPI) deadLetterOperations(h huma.API) {
	const path, tag = "/v1/dead-letters", "dead letters"
	register(s.service, h, operation(listDeadLetters, http.MethodGet, path, tag,
		"List dead letters, newest first, or wait for another"), s.listDeadLetters)
	reasons := operation("count-dead-letters", http.MethodGet, "/v1/dead-letter-reasons", tag, "Count dead letters by reason, the most frequent first")
	reasons.Description = fmt.Sprintf("Of all pages of the list with this filter: the newest %d.", backend.MaxCount)
	register(s.service, h, reasons, s.countDeadLetters)
	register(s.service, h, operation("get-dead-letter", http.MethodGet, path+"/{id}", tag,
		"Show a dead letter and its envelope, byte for byte", http.StatusNotFound), s.getDeadLetter)
	register(s.service, h, operation("list-dead-letter-edits", http.MethodGet, path+"/{id}/edits", tag,
		"List the edits of a dead letter, the newest first, and last what died", http.StatusNotFound), s.listDeadLetterEdits)
	edit := operation("edit-dead-letter", http.MethodPost, path+"/{id}/edits", tag, "Put other bytes in the place of what died", http.StatusNotFound, http.StatusConflict)
	edit.Description = "What died stays beside, byte for byte. The newest edit is what a replay sends."
	edit.MaxBodyBytes = signal.MaxBytes + MaxBodyBytes + 1
	register(s.service, h, edit, s.editDeadLetter)
	register(s.service, h, operation("replay-dead-letter", http.MethodPost, path+"/{id}/replay", tag,
		"Send a dead letter to its queue again, as it was edited last", http.StatusNotFound, http.StatusConflict), s.replayDeadLetter)
	register(s.service, h, operation("discard-dead-letter", http.MethodDelete, path+"/{id}", tag,
		"Remove a dead letter for good", http.StatusNotFound, http.StatusConflict), s.discardDeadLetter)
	register(s.service, h, operation("list-queues", http.MethodGet, "/v1/queues", "queues",
		"Say how full the queues are"), s.listQueues)
}

// DeadLetterFilter narrows lists of dead letters.
type DeadLetterFilter struct {
	Queue      string `query:"queue" enum:"signal,schedule,command"`
	Reason     string `query:"reason" maxLength:"128" doc:"A problem's code."`
	InstanceID string `query:"instance" maxLength:"128"`
	Definition string `query:"definition" maxLength:"256" doc:"Of the instance, where it is there."`
	Text       string `query:"text" maxLength:"256" doc:"In the words of the reason."`
	OlderThan  string `query:"olderThan" maxLength:"32" doc:"Died longer ago." example:"1h"`
}

type listDeadLettersInput struct {
	Paging
	DeadLetterFilter
	Wait  string `query:"wait" maxLength:"32" doc:"Answer only when the newest is not the known one, or after this long; at most 60s." example:"30s"`
	Known string `query:"known" maxLength:"128" doc:"Id of the newest dead letter that the caller knows; absent: none."`
}

// listDeadLetters takes its memory when it has waited.
const listDeadLetters = "list-dead-letters"

// awaitDeadLetter returns when the newest dead letter is not the known one, or after d. Another
// node may be the one that makes it, so that it is looked for while somebody waits.
func (s operatorAPI) awaitDeadLetter(ctx context.Context, q backend.DeadLetterQuery, known string, d time.Duration) error {
	if d == 0 {
		return nil
	}
	q.After, q.Limit = "", 1
	waiting, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	delay, timer := lookFirst, time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-waiting.Done():
			return ctx.Err()
		case <-timer.C:
		}
		p, err := s.Reader.DeadLetters.DeadLetters(waiting, q)
		if waiting.Err() != nil {
			return ctx.Err()
		}
		if err != nil || len(p.Items) > 0 && p.Items[0].ID != known || len(p.Items) == 0 && known != "" {
			return err
		}
		timer.Reset(delay)
		delay = min(delay*3/2, lookMax)
	}
}

func (s operatorAPI) listDeadLetters(ctx context.Context, in *listDeadLettersInput) (*answer[client.Page[client.DeadLetter]], error) {
	wait, err := parseWait(in.Wait)
	if err != nil {
		return nil, err
	}
	q, err := s.deadLetterQuery(&in.DeadLetterFilter)
	if err != nil {
		return nil, err
	}
	q.After, q.Limit = in.After, in.Limit
	if err := s.awaitDeadLetter(ctx, q, in.Known, wait); err != nil {
		return nil, err
	}
	if err := s.reads(ctx); err != nil {
		return nil, err
	}
	p, err := s.Reader.DeadLetters.DeadLetters(ctx, q)
	if err != nil {
		return nil, err
	}
	return ok(client.Page[client.DeadLetter]{Items: convert(p.Items, toDeadLetter), Next: p.Next}), nil
}

func (s operatorAPI) deadLetterQuery(in *DeadLetterFilter) (q backend.DeadLetterQuery, err error) {
	q = backend.DeadLetterQuery{Queue: in.Queue, Reason: in.Reason, InstanceID: in.InstanceID, Definition: in.Definition, Text: in.Text}
	q.Before, err = s.before("query.olderThan", in.OlderThan)
	return q, err
}

type countDeadLettersInput struct{ DeadLetterFilter }

func (s operatorAPI) countDeadLetters(ctx context.Context, in *countDeadLettersInput) (*answer[client.DeadLetterReasons], error) {
	q, err := s.deadLetterQuery(&in.DeadLetterFilter)
	if err != nil {
		return nil, err
	}
	q.Scope = scopeOf(ctx)
	counts, more, err := s.Reader.Backlog.Reasons(ctx, q)
	return ok(client.DeadLetterReasons{More: more, Items: convert(counts, func(c backend.ReasonCount) client.ReasonCount {
		return client.ReasonCount{Reason: c.Reason, DeadLetters: c.Rows}
	})}), err
}

func unknownDeadLetter(err error, id string) error {
	return missing(err, "dead-letter.unknown", "dead letter %s does not exist", clip(id))
}

func (s operatorAPI) getDeadLetter(ctx context.Context, in *ByID) (*answer[client.DeadLetterDetail], error) {
	r, err := s.Reader.DeadLetters.DeadLetter(ctx, in.ID)
	if err != nil {
		return nil, unknownDeadLetter(err, in.ID)
	}
	d := toDeadLetterDetail(r)
	edits, err := s.Reader.DeadLetters.DeadLetterEdits(ctx, in.ID, "", 1)
	if err != nil {
		return nil, err
	}
	if e := backend.First(edits); e.No > 0 {
		edit := toDeadLetterEdit(e)
		d.Edit = &edit
	}
	env, err := signal.Decode(r.Envelope)
	if err != nil {
		d.Unreadable = err.Error()
		return ok(d), nil
	}
	d.Message = r.Envelope
	if position, err := signal.CommandPosition(env.Payload); err == nil && r.Queue == string(store.Commands) {
		c, err := s.getCommand(ctx, &CommandID{ByID{env.InstanceID}, position})
		if err == nil {
			d.Command = &c.Body
		} else if problem.CodeOf(err) != "command.unknown" {
			return nil, err
		}
	}
	return ok(d), nil
}

type deadLetterEditsInput struct {
	ByID
	Paging
}

func (s operatorAPI) listDeadLetterEdits(ctx context.Context, in *deadLetterEditsInput) (*answer[client.Page[client.DeadLetterEdit]], error) {
	p, err := s.Reader.DeadLetters.DeadLetterEdits(ctx, in.ID, in.After, in.Limit)
	if err == nil && len(p.Items) == 0 && in.After == "" {
		_, err = s.Reader.DeadLetters.DeadLetter(ctx, in.ID)
	}
	return ok(client.Page[client.DeadLetterEdit]{Items: convert(p.Items, toDeadLetterEdit), Next: p.Next}), unknownDeadLetter(err, in.ID)
}

type editDeadLetterInput struct {
	ByID
	Body client.EditDeadLetterRequest
}

func (s operatorAPI) editDeadLetter(ctx context.Context, in *editDeadLetterInput) (*answer[client.DeadLetterEdit], error) {
	b := &in.Body
	e, err := s.DeadLetters.Edit(ctx, in.ID, backend.DeadLetterChange{
		After: b.After, Envelope: b.Envelope, Input: b.Input, Key: b.Key, Original: b.Original, Another: b.Another,
	})
	return ok(toDeadLetterEdit(e)), unknownDeadLetter(err, in.ID)
}

type replayInput struct {
	ByID
	After int64 `query:"after" minimum:"-1" default:"-1" doc:"Number of the newest edit that the caller has seen; 0: they have seen none. Where it is another, it is refused; -1: it is not asked."`
}

func (s operatorAPI) replayDeadLetter(ctx context.Context, in *replayInput) (*answer[client.Replayed], error) {
	edit, err := s.DeadLetters.ReplayAfter(ctx, in.ID, in.After)
	return ok(client.Replayed{Edit: edit}), unknownDeadLetter(err, in.ID)
}

func (s operatorAPI) discardDeadLetter(ctx context.Context, in *replayInput) (*struct{}, error) {
	return nil, unknownDeadLetter(s.DeadLetters.DiscardAfter(ctx, in.ID, in.After), in.ID)
}

func (s operatorAPI) listQueues(ctx context.Context, _ *struct{}) (*answer[client.Page[client.Queue]], error) {
	rows, err := s.Reader.Backlog.Queues(ctx)
	if err != nil {
		return nil, err
	}
	return ok(client.Page[client.Queue]{Items: convert(rows, toQueue)}), nil
}

// health is what the probes answer.
type health struct {
	Status string `json:"status" enum:"live,ready"`
}

// Tags of operations: those of health need no memory, so that a busy node lives,
// and those of tasks all read rows.
const (
	healthTag = "health"
	taskTag   = "tasks"
)

func (s *service) healthOperations(h huma.API) {
	register(s, h, operation("get-health", http.MethodGet, "/healthz", healthTag, "Say that the process lives"),
		func(context.Context, *struct{}) (*answer[health], error) { return ok(health{"live"}), nil })
	register(s, h, operation(getReadiness, http.MethodGet, "/readyz", healthTag, "Say that the store answers"),
		func(ctx context.Context, _ *struct{}) (*answer[health], error) {
			if err := s.Ready(ctx); err != nil {
				if problem.KindOf(err) == problem.Unavailable {
					return nil, err
				}
				return nil, problem.Wrap(err, problem.Unavailable, "store.unavailable", "the store does not answer")
			}
			return ok(health{"ready"}), nil
		})
}
