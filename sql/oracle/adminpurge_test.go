package oracle

import (
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/store"
)

// TestPurgeBySQLOfSchedules: one that has ended stays for runs that may be of its time, and
// for no later ones.
func TestPurgeBySQLOfSchedules(t *testing.T) {
	t.Parallel()
	c := openControl(t)
	const before = "p_ended_before_utc => SYS_EXTRACT_UTC(SYSTIMESTAMP) - INTERVAL '1' DAY"
	ended := func(id string) {
		c.ended(t, id, func(w *store.Change) { w.Rows.Instance.EndedAt = w.Rows.Instance.StartedAt.Add(-48 * time.Hour) })
	}
	run := func(id string, begun time.Duration) {
		c.ended(t, id, func(w *store.Change) {
			i := w.Rows.Instance
			i.Status, i.ParentID, i.StartedAt, i.EndedAt = "waiting", "schedule.d.2", i.StartedAt.Add(begun), time.Time{}
		})
	}
	ended("schedule.d.0")
	run("later", -20*time.Hour)
	if n := c.purge(t, true, before); n != 1 {
		t.Errorf("%d were purged beside a run that began long after", n)
	}
	ended("schedule.d.1")
	run("before", -50*time.Hour)
	if n := c.purge(t, true, before); n != 0 {
		t.Errorf("%d were purged beside a run that began before", n)
	}
}
