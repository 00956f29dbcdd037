package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	list := operation("list-commands", http.MethodGet, "/v1/commands", tag, "List pending commands, by instance and position", http.StatusNotFound)
	list.Description = "Work for the outside world that is not done yet."
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

type listCommandsInput struct {
	Paging
	InstanceID string `query:"instance" maxLength:"128"`
	Type       string `query:"type" maxLength:"256" doc:"Its name in the definition, its target (http, a function, event:publish), or the type of its entry (Call, EventEmitted, LifecycleEvents)."`
	OlderThan  string `query:"olderThan" maxLength:"64" doc:"Made longer ago than this ISO 8601 duration." example:"PT5M"`
}

func (s operatorAPI) listCommands(ctx context.Context, in *listCommandsInput) (*answer[client.Page[client.Command]], error) {
	q := backend.CommandQuery{InstanceID: in.InstanceID, Type: in.Type, After: in.After, Limit: in.Limit}
	var err error
	if q.Before, err = s.before("/olderThan", in.OlderThan); err != nil {
		return nil, err
	}
	p, err := s.Reader.Streams.Commands(ctx, q)
	if err != nil {
		return nil, err
	}
	return ok(client.Page[client.Command]{Items: s.commands(ctx, p.Items), Next: p.Next}), s.isThere(ctx, in.InstanceID, in.After, len(p.Items))
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

// commands are commands as they are shown, and which of them wait for a node that has
// their function.
func (s *service) commands(ctx context.Context, rows []projections.Entry) []client.Command {
	all, unserved := make([]client.Command, 0, len(rows)), map[string]bool{}
	for _, e := range rows {
		c := s.command(e)
		if c.State == "open" && c.ClaimedBy == "" && c.WaitsFor == "" {
			if _, asked := unserved[c.Target]; !asked {
				unserved[c.Target] = s.Dispatcher.Unserved(ctx, c.Target)
			}
			if c.Unserved = unserved[c.Target]; c.Unserved {
				c.WaitsFor = "a node that has the function " + c.Target + ": none does that is at work"
			}
		}
		all = append(all, c)
	}
	return all
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
	return ok(s.commandDetail(ctx, rows[0])), nil
}

func (s operatorAPI) commandDetail(ctx context.Context, e projections.Entry) client.CommandDetail {
	d := toCommandDetail(e)
	d.Command = s.commands(ctx, []projections.Entry{e})[0]
	if d.Retry != nil {
		r := s.Acknowledger.Retries(ctx, e)
		d.Retry = &client.Redelivery{Delay: duration.Format(r.Delay), DelayMax: duration.Format(r.DelayMax), Limit: client.RedeliveryLimit{Duration: duration.Format(r.For)}}
	}
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
	return ok(s.commandDetail(ctx, row)), nil
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
	return ok(s.commandDetail(ctx, row)), nil
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

// parseDuration reads a duration, as settings and flags have it.
func parseDuration(where, text string) (time.Duration, error) {
	d, err := duration.Parse(text)
	if err == nil && d < 0 {
		err = fmt.Errorf("%q is less than nothing", text)
	}
	if err != nil {
		return 0, invalid(where, "%s", err)
	}
	return d, nil
}
