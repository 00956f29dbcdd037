package client

import "time"

// Why says why an instance does not move.
type Why struct {
	InstanceID string    `json:"instanceId"`
	Status     string    `json:"status" enum:"pending,running,waiting,suspended,cancelled,faulted,completed,compensated"`
	Since      time.Time `json:"since" doc:"When it moved last."`
	Reasons    []Reason  `json:"reasons" nullable:"false" doc:"Each of which it waits for, or that stops it."`
}

// Reason is one thing that an instance waits for, or that stops it.
type Reason struct {
	Code       string    `json:"code" doc:"ended, suspended, faulted, compensation (one that is stuck), compensates, person, due, timer, timeout, retry, event, state, child, call, claimed, line, acknowledgement, unclaimed, unserved, result, gap, dead-letter, elsewhere, working; or the kind of a wait in lower case."`
	Text       string    `json:"text" doc:"For people."`
	Hint       string    `json:"hint,omitempty" doc:"What moves it."`
	Pointer    string    `json:"pointer,omitempty" doc:"JSON pointer of the task that waits."`
	Until      time.Time `json:"until,omitzero" doc:"When it goes on by itself."`
	TaskID     string    `json:"taskId,omitempty"`
	Command    int64     `json:"command,omitempty" doc:"Stream position of the command."`
	Child      string    `json:"child,omitempty"`
	DeadLetter string    `json:"deadLetter,omitempty"`
	RunNow     string    `json:"runNow,omitempty" doc:"Pointer with which the operation run-now has it come at once."`
}
