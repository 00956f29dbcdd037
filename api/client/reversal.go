package client

import "encoding/json"

// Reversal is what undoes a step.
type Reversal struct {
	Pointer  string          `json:"pointer" doc:"JSON pointer of the step."`
	Target   string          `json:"target" doc:"What it is sent to: http, a function, or run:workflow, call:humanTask, call:acknowledged, whose input says which."`
	Input    json.RawMessage `json:"input,omitempty" doc:"Absent: it is made of an answer of the step, which has not come."`
	Key      string          `json:"key,omitempty" doc:"The idempotency key under which it is sent."`
	Reverses string          `json:"reverses,omitempty" doc:"The idempotency key of the step."`
	Open     bool            `json:"open,omitempty" doc:"Nobody knows, or knows yet, whether the step was done."`
}
