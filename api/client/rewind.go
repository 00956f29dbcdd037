package client

import (
	"context"
	"net/url"
)

// RewindRequest says to where an instance is taken back.
type RewindRequest struct {
	To           int64 `json:"to" minimum:"1" doc:"Position of the stream; the turn that has it counts, as a whole."`
	NewKeys      bool  `json:"newKeys,omitempty" doc:"The outside is asked for what it was asked for since under new keys: it does it again."`
	DryRun       bool  `json:"dryRun,omitempty" doc:"Say only what it would do."`
	StateVersion int64 `json:"stateVersion,omitempty" minimum:"0" doc:"That the instance has, or nothing is done; absent: it is not asked."`
}

// Rewind is what a rewind does, or would do.
type Rewind struct {
	InstanceID   string   `json:"instanceId"`
	To           int64    `json:"to" doc:"The last position of the turn."`
	StateVersion int64    `json:"stateVersion"`
	Status       string   `json:"status" enum:"pending,running,waiting,suspended,cancelled,faulted,completed,compensated"`
	NewKeys      bool     `json:"newKeys,omitempty"`
	Waits        []Wait   `json:"waits" nullable:"false" doc:"What it waited for, which is withdrawn."`
	Effects      []Effect `json:"effects,omitempty" doc:"What the outside was asked for since, and may be asked for again: each key once."`
	More         int      `json:"more,omitempty" doc:"Effects that are not named."`
	Signals      int      `json:"signals,omitempty" doc:"Signals that were taken since, and are not taken again."`
	DryRun       bool     `json:"dryRun,omitempty" doc:"Nothing was done."`
}

// Effect is what the outside was asked for.
type Effect struct {
	Position int64  `json:"position" doc:"Of the command in the stream."`
	Pointer  string `json:"pointer,omitempty"`
	Target   string `json:"target"`
	Key      string `json:"key,omitempty" doc:"The idempotency key that it had."`
	OwnKey   bool   `json:"ownKey,omitempty" doc:"Its author has given it its key: it has the same under new keys, too."`
}

// Rewind takes an instance back to the end of an earlier turn, or says what that would do.
func (c instanceCalls) Rewind(ctx context.Context, id string, r RewindRequest) (Rewind, error) {
	out, _, err := post[Rewind](ctx, c.caller, instances+"/"+url.PathEscape(id)+"/rewind", r)
	return out, err
}
