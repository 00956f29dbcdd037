package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/duration"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

func (s operatorAPI) commandOperations(h huma.API) {
	const path, tag = "/v1/instances/{id}/commands/{position}", "commands"
	list := operation("list-commands", http.MethodGet, "/v1/commands", tag, "List pending commands, by instance and position")
	list.Description = "Work for the outside world that is not done yet. With a type, a page may have fewer than its limit, or none, and still a next."
	register(s.service, h, list, s.listCommands)
	register(s.service, h, operation("get-command", http.MethodGet, path, tag,
		"Show a command with its input, also one that is settled", http.StatusNotFound), s.getCommand)
	claim := operation("claim-command", http.MethodPost, path+"/claim", tag, "Claim a pending command, for a worker outside", http.StatusNotFound, http.StatusConflict)
	claim.Description = "Until the lease ends no node tries it. Who has it may claim it again, for longer. It is performed under its key, " +
		"and its end is said by complete or fail."
	register(s.service, h, claim, s.claimCommand)
	register(s.service, h, operation("retry-command", http.MethodPost, path+"/retry", tag,
		"Have nodes try a pending command at once, whoever has claimed it outside", http.StatusNotFound, http.StatusConflict), s.retryCommand)
	for _, end := range []struct {
		id, verb, summary string
		f                 func(context.Context, *settleInput) (*answer[client.Acknowledged], error)
	}{
		{"complete-command", "complete", "Complete a pending command, whichever node performs it", s.completeCommand},
		{"fail-command", "fail", "Fail a pending command, whichever node performs it", s.failCommand},
	} {
		op := operation(end.id, http.MethodPost, path+"/"+end.verb, tag, end.summary, http.StatusNotFound, http.StatusConflict)
		op.Description = "Durable when the answer comes; of a command that is settled, a duplicate that changes nothing. What a node makes of it then is stale."
		op.DefaultStatus = http.StatusAccepted
		register(s.service, h, op, end.f)
	}
}

// Bounds of a list of commands by type: so many are looked at for one answer.
const commandsLookedAt = 2_000

type listCommandsInput struct {
	Paging
	InstanceID string `query:"instance" maxLength:"128"`
	Type       string `query:"type" maxLength:"256" doc:"Its name in the definition, its target (http, a function, event:publish), or the type of its entry (Call, EventEmitted, LifecycleEvents)."`
	OlderThan  string `query:"olderThan" maxLength:"64" doc:"Made longer ago than this ISO 8601 duration." example:"PT5M"`
}

func (s operatorAPI) listCommands(ctx context.Context, in *listCommandsInput) (*answer[client.Page[client.Command]], error) {
	q := backend.CommandQuery{InstanceID: in.InstanceID, After: in.After, Limit: in.Limit}
	if in.OlderThan != "" {
		d, err := parseDuration("/olderThan", in.OlderThan)
		if err != nil {
			return nil, err
		}
		q.Before = s.Now().Add(-d)
	}
	page := client.Page[client.Command]{Items: []client.Command{}}
	want := cmp.Or(in.Limit, projections.DefaultLimit)
	for seen := 0; ; {
		p, err := s.Reader.Streams.Commands(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, e := range p.Items {
			if c := s.command(e); in.Type == "" || in.Type == c.Target || in.Type == c.Name || in.Type == e.Type {
				page.Items = append(page.Items, c)
			}
		}
		seen += len(p.Items)
		q.After, q.Limit = p.Next, want-len(page.Items)
		if page.Next = p.Next; p.Next == "" || q.Limit <= 0 || seen >= commandsLookedAt {
			return ok(page), nil
		}
	}
}

// command is a command as it is shown, by whoever has claimed it.
func (s *service) command(e projections.Entry) client.Command {
	c := toCommand(e)
	c.InstanceID = e.InstanceID
	c.WaitsFor = s.Dispatcher.WaitsFor(e.InstanceID, e.Position)
	c.LastError = ack.Said(e.LastError)
	if who := ack.Claimant(e.LastError, e.NextAttemptAt, s.Now()); who != "" {
		c.ClaimedBy = who
	}
	return c
}

// CommandID names the command that a request is about.
type CommandID struct {
	ByID
	Position int64 `path:"position" minimum:"1" doc:"Of the command in the instance's stream."`
}

func (s operatorAPI) getCommand(ctx context.Context, in *CommandID) (*answer[client.CommandDetail], error) {
	rows, err := s.Reader.Streams.Stream(ctx, in.ID, in.Position-1, 1)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if i := slices.IndexFunc(rows, func(e projections.Entry) bool { return e.Position == in.Position && e.Processed != nil }); i < 0 {
		return nil, problem.New(problem.NotFound, "command.unknown", "instance %s has no command at position %d", clip(in.ID), in.Position)
	}
	return ok(s.commandDetail(rows[0])), nil
}

func (s operatorAPI) commandDetail(e projections.Entry) client.CommandDetail {
	d := toCommandDetail(e)
	d.Command = s.command(e)
	return d
}

type claimCommandInput struct {
	CommandID
	Caller
	Body client.ClaimCommandRequest
}

func (s operatorAPI) claimCommand(ctx context.Context, in *claimCommandInput) (*answer[client.CommandDetail], error) {
	lease, err := parseDuration("/lease", cmp.Or(in.Body.Lease, "PT5M"))
	if err != nil {
		return nil, err
	}
	row, err := s.Acknowledger.ClaimCommand(ctx, in.ID, in.Position, in.Actor, lease)
	if err != nil {
		return nil, unknownInstance(err, in.ID)
	}
	return ok(s.commandDetail(row)), nil
}

type retryCommandInput struct {
	CommandID
	Caller
}

func (s operatorAPI) retryCommand(ctx context.Context, in *retryCommandInput) (*answer[client.CommandDetail], error) {
	row, err := s.Acknowledger.RetryCommand(ctx, in.ID, in.Position, in.Actor)
	if err != nil {
		return nil, unknownInstance(err, in.ID)
	}
	return ok(s.commandDetail(row)), nil
}

type settleInput struct {
	CommandID
	Caller
	Body client.SettleCommandRequest
}

func (s operatorAPI) completeCommand(ctx context.Context, in *settleInput) (*answer[client.Acknowledged], error) {
	return s.settle(ctx, in, ack.Processed)
}

func (s operatorAPI) failCommand(ctx context.Context, in *settleInput) (*answer[client.Acknowledged], error) {
	return s.settle(ctx, in, ack.Failed)
}

func (s operatorAPI) settle(ctx context.Context, in *settleInput, outcome ack.Outcome) (*answer[client.Acknowledged], error) {
	said := ack.Ack{Outcome: outcome, Output: in.Body.Output, Error: toAckError(in.Body.Error), Actor: in.Actor}
	did, err := s.Acknowledger.SettleCommand(ctx, in.ID, in.Position, said)
	if err != nil {
		return nil, err
	}
	return &answer[client.Acknowledged]{http.StatusAccepted, client.Acknowledged{
		InstanceID: in.ID, Position: in.Position, Disposition: string(did),
	}}, nil
}

// parseDuration reads an ISO 8601 duration.
func parseDuration(where, text string) (time.Duration, error) {
	at := time.Unix(0, 0)
	until, err := duration.After(at, text)
	if err != nil {
		return 0, invalid(where, "%s", err)
	}
	return until.Sub(at), nil
}
