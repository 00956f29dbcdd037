//go:build !linux

package jq

import "time"

var began = time.Now()

// threadTime is what has passed: other systems do not tell it of a thread.
func threadTime() time.Duration { return time.Since(began) }
