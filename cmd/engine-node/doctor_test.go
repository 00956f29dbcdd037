package main

import (
	"testing"

	"github.com/aqueduct-engine/aqueduct/config"
)

// docs/oracle.md, Sizing.
func TestANodeTakesAtMost25Sessions(t *testing.T) {
	t.Parallel()
	for most, q := range map[int]config.Queue{
		25: {SignalConsumers: config.OracleSignalConsumers, ScheduleConsumers: config.OracleScheduleConsumers, CommandConsumers: config.OracleCommandConsumers},
		67: {SignalConsumers: 32, ScheduleConsumers: 16, CommandConsumers: 8},
	} {
		if got := sessions(q); got != most {
			t.Errorf("%+v takes %d sessions, want %d", q, got, most)
		}
	}
}
