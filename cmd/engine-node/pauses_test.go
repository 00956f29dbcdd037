package main

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/sql/oracle"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Who looks at the metrics sees which queue pauses, for how long, and why.
func TestPausesOfQueuesAreAMetric(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	r.MustRegister(pauses(func() []oracle.Pause {
		return []oracle.Pause{{Queue: store.Signals}, {Queue: store.Schedule, Since: time.Now().Add(-time.Hour), Class: aq.Paused, Reason: "ORA-01653"}}
	}))
	families, err := r.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(families, err)
	}
	got := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		labels := ""
		for _, l := range m.GetLabel() {
			labels += l.GetName() + "=" + l.GetValue() + " "
		}
		got[labels] = m.GetGauge().GetValue()
	}
	if n, ok := got["class=none queue=signal "]; !ok || n != 0 || got["class=paused queue=schedule "] < 3600 || len(got) != 2 {
		t.Errorf("%s: %v", families[0].GetName(), got)
	}
}
