package client

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// Command is work for the outside world that is not done yet.
type Command struct {
	InstanceID string    `json:"instanceId"`
	Position   int64     `json:"position" doc:"In the instance's stream."`
	Name       string    `json:"name,omitempty" doc:"As the definition has it: of the task, or the event that is emitted."`
	Target     string    `json:"target" doc:"http, or the name of a function."`
	Pointer    string    `json:"pointer,omitempty"`
	Attempts   int       `json:"attempts" doc:"Begun, the one under way included; since the last delivery."`
	ClaimedBy  string    `json:"claimedBy,omitempty" doc:"The node that performs it, or the worker outside who has claimed it until nextAt."`
	NextAt     time.Time `json:"nextAt,omitzero" doc:"When it is tried again; absent once it is given up or settled."`
	LastError  string    `json:"lastError,omitempty"`
	CreatedAt  time.Time `json:"createdAt"`

	DeliveredAt time.Time `json:"deliveredAt,omitzero" doc:"When it was delivered last, of a command that is to be acknowledged."`
	Deliveries  int       `json:"deliveries,omitempty" doc:"That were not acknowledged as processed."`
	Await       string    `json:"await,omitempty" enum:"any" doc:"any: several consumers are asked at once, and the first that has processed it is enough. Absent: each is asked by itself, or all are waited for."`
	WaitsFor    string    `json:"waitsFor,omitempty" doc:"What it waits for on the node that is asked before it is sent: a place at its host, a slot, a circuit breaker; or a node that has its function."`
	Unserved    bool      `json:"unserved,omitempty" doc:"No node that is at work has its function."`

	Key     string `json:"key,omitempty" doc:"Idempotency key: the same in every command that repeats the effect."`
	Outcome string `json:"outcome,omitempty" enum:"known,unknown" doc:"Of the attempts so far: unknown, when the outside may have done it and no attempt had an answer. Absent before the first."`
	State   string `json:"state" enum:"open,claimed,delivered,given-up,discarded,processed" doc:"How far it has come. given-up: its dead letter waits for an operator; discarded: it was given up for good, and nobody has processed it."`
}

// CommandDetail is a command with what it is to do.
type CommandDetail struct {
	Command
	Input        json.RawMessage `json:"input,omitempty" doc:"Arguments of the call, the request of http, or the event."`
	Acknowledged bool            `json:"acknowledged,omitempty" doc:"Its consumer is to acknowledge it."`
	Awaited      bool            `json:"awaited,omitempty" doc:"The instance waits for its result."`
	Processed    bool            `json:"processed" doc:"It is settled, and was not discarded."`
	ProcessedAt  time.Time       `json:"processedAt,omitzero" doc:"When it was processed, or discarded."`
	Retry        *Redelivery     `json:"retry,omitempty" doc:"How often its consumer is told again, until it is settled or given up: as the rule of the newest policy says, else the node."`
}

// Redelivery says how often a consumer is told again, in ISO 8601 durations.
type Redelivery struct {
	Delay    string          `json:"delay" doc:"Before a delivery that failed is repeated; twice as long before the next."`
	DelayMax string          `json:"delayMax" doc:"The longest, also of a reminder."`
	Limit    RedeliveryLimit `json:"limit"`
}

// RedeliveryLimit says for how long.
type RedeliveryLimit struct {
	Duration string `json:"duration" doc:"The age at which the command is given up: since it was made, or replayed."`
}

// ClaimCommandRequest claims a command for who asks.
type ClaimCommandRequest struct {
	Lease string `json:"lease,omitempty" maxLength:"64" doc:"An ISO 8601 duration, of a second to seven days, after which nodes try it again; absent: PT5M." example:"PT5M"`
}

// SettleCommandRequest ends a command: complete takes an output, fail an error.
type SettleCommandRequest struct {
	Output json.RawMessage `json:"output,omitempty" doc:"Of complete: the result of the call, where somebody waits for it."`
	Error  *AckError       `json:"error,omitempty" doc:"Of fail: the error of the call."`
}

// CommandQuery selects pending commands. Empty fields do not restrict.
type CommandQuery struct {
	InstanceID string
	Type       string // target, as http or a function; or type of the entry
	OlderThan  string // an ISO 8601 duration
	List
}

// Commands lists pending commands, by instance and position.
func (c commandCalls) Commands(ctx context.Context, q CommandQuery) (Page[Command], error) {
	v := values("instance", q.InstanceID, "type", q.Type, "olderThan", q.OlderThan)
	return get[Page[Command]](ctx, c.caller, "/v1/commands", q.in(v))
}

// Command is one, pending or settled, with its input.
func (c commandCalls) Command(ctx context.Context, id string, position int64) (CommandDetail, error) {
	return get[CommandDetail](ctx, c.caller, command(id, position), url.Values{})
}

// ClaimCommand claims a pending command for the actor of the client: until the lease ends
// no node tries it.
func (c commandCalls) ClaimCommand(ctx context.Context, id string, position int64, r ClaimCommandRequest) (CommandDetail, error) {
	out, _, err := post[CommandDetail](ctx, c.caller, command(id, position)+"/claim", r)
	return out, err
}

// RetryCommand has nodes try a pending command at once.
func (c commandCalls) RetryCommand(ctx context.Context, id string, position int64) (CommandDetail, error) {
	out, _, err := post[CommandDetail](ctx, c.caller, command(id, position)+"/retry", nil)
	return out, err
}

// CompleteCommand ends a pending command with its output, whichever node performs it. It
// is durable when CompleteCommand returns.
func (c commandCalls) CompleteCommand(ctx context.Context, id string, position int64, r SettleCommandRequest) (Acknowledged, error) {
	out, _, err := post[Acknowledged](ctx, c.caller, command(id, position)+"/complete", r)
	return out, err
}

// FailCommand ends a pending command with an error, as CompleteCommand with an output.
func (c commandCalls) FailCommand(ctx context.Context, id string, position int64, r SettleCommandRequest) (Acknowledged, error) {
	out, _, err := post[Acknowledged](ctx, c.caller, command(id, position)+"/fail", r)
	return out, err
}
