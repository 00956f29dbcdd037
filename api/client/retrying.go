package client

import "time"

// Retrying is what a retry that waits is for.
type Retrying struct {
	Attempt  int            `json:"attempt" doc:"Which retry it is, from 1."`
	FailedAt time.Time      `json:"failedAt" doc:"When it failed first."`
	Error    *InstanceError `json:"error,omitempty" doc:"Of the last attempt. Absent: it failed on a node of an earlier version."`
}
