package storetest

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// noted is an activity of an instance, of that many seconds later.
func noted(instance, id string, n int) backend.Activity {
	then := at.Add(time.Duration(n) * time.Second)
	return backend.Activity{
		InstanceID: instance, ID: id, Name: "inspection", Status: "begun, Ω", Version: 1,
		CreatedAt: then, CreatedBy: "änn", UpdatedAt: then, UpdatedBy: "änn", Data: []byte(`{"km":12}`),
	}
}

// activitiesOf are the ids of all pages.
func (k *testCase) activitiesOf(instance string, limit int) (ids []string) {
	k.Helper()
	for after := ""; ; {
		p, err := k.s.Activities.Activities(k.ctx, instance, after, limit)
		k.ok(err)
		for _, a := range p.Items {
			ids = append(ids, a.ID)
		}
		if after = p.Next; after == "" {
			return ids
		}
	}
}

// activityCases are about what applications note of instances.
var activityCases = map[string]func(*testCase){
	"an activity is attached once, changed by version, and frozen for good": func(k *testCase) {
		k.commit(turn("a", 1))
		k.is(k.s.Activities.AttachActivity(k.ctx, noted("nobody", "x", 0), audited(9)), store.ErrNotFound)
		k.ok(k.s.Activities.AttachActivity(k.ctx, noted("a", "x", 0), audited(1)))
		k.is(k.s.Activities.AttachActivity(k.ctx, noted("a", "x", 5), audited(9)), store.ErrDuplicate)
		b := k.open("node-b")
		got, err := b.Activities.Activity(k.ctx, "a", "x")
		k.ok(err)
		equal(k, got, noted("a", "x", 0))

		changed := noted("a", "x", 0)
		changed.Version, changed.Status, changed.Data, changed.UpdatedAt, changed.UpdatedBy = 2, "done", nil, at.Add(time.Minute), "bob"
		k.ok(b.Activities.ChangeActivity(k.ctx, changed, audited(2)))
		k.is(k.s.Activities.ChangeActivity(k.ctx, changed, audited(9)), store.ErrStale) // it was another's version 1
		got, err = k.s.Activities.Activity(k.ctx, "a", "x")
		k.ok(err)
		equal(k, got, changed)

		changed.Version, changed.FrozenAt = 3, at.Add(time.Hour)
		k.ok(k.s.Activities.ChangeActivity(k.ctx, changed, audited(3)))
		again := changed
		again.Version, again.Status, again.FrozenAt = 4, "other", time.Time{}
		k.is(b.Activities.ChangeActivity(k.ctx, again, audited(9)), store.ErrStale)
		got, err = b.Activities.Activity(k.ctx, "a", "x")
		k.ok(err)
		equal(k, got, changed)
		k.is(k.s.Activities.ChangeActivity(k.ctx, noted("a", "y", 0), audited(9)), store.ErrStale)
		_, err = k.s.Activities.Activity(k.ctx, "a", "y")
		k.is(err, store.ErrNotFound)
		equal(k, k.auditOf(backend.AuditQuery{}), []string{"a-03", "a-02", "a-01"})
	},
	"activities are listed from the oldest on, and go with their instance": func(k *testCase) {
		k.commit(turn("a", 1))
		over := turn("b", 1)
		over.Rows.Instance.Status, over.Rows.Instance.EndedAt = "completed", at
		k.commit(over)
		for n := range 5 {
			k.ok(k.s.Activities.AttachActivity(k.ctx, noted("a", fmt.Sprint("x", 4-n), n/2), audited(n)))
			k.ok(k.s.Activities.AttachActivity(k.ctx, noted("b", fmt.Sprint("x", n), 0), audited(10+n)))
		}
		for _, limit := range []int{1, 2, 5, 0} {
			equal(k, k.activitiesOf("a", limit), []string{"x3", "x4", "x1", "x2", "x0"})
		}
		equal(k, k.activitiesOf("b", 2), []string{"x0", "x1", "x2", "x3", "x4"})
		equal(k, len(k.activitiesOf("c", 2)), 0)
		if _, err := k.s.Activities.Activities(k.ctx, "a", "x", 1); problem.CodeOf(err) != "page.invalid" {
			k.Fatal(err)
		}
		if k.s.Retention == nil { // a part that a store may lack
			return
		}
		n, err := k.s.Retention.Purge(k.ctx, at.Add(time.Hour), 10)
		k.ok(err)
		equal(k, n, 1)
		equal(k, len(k.activitiesOf("b", 2)), 0)
		k.commit(turn("b", 1)) // it begins again, and has no past
		equal(k, len(k.activitiesOf("b", 2)), 0)
		equal(k, len(k.activitiesOf("a", 0)), 5)
	},
	"moments of a business key are those of all its instances, in time": func(k *testCase) {
		for n, id := range []string{"b", "a", "other"} {
			c := turn(id, 1)
			c.Rows.Instance.BusinessKey, c.Rows.Instance.Definition, c.Rows.Instance.Correlation = "L-1", "shop/"+id, "c-"+id
			if id == "other" {
				c.Rows.Instance.BusinessKey = "L-2"
			}
			in := projections.Entry{InstanceID: id, Position: 1, Kind: "event", Direction: "in", Type: "InstanceStarted", CreatedAt: at.Add(time.Duration(n) * time.Second), Metadata: []byte(`{"actor":"änn"}`)}
			out := command(id, 2, "node-a")
			out.CreatedAt, out.Metadata = in.CreatedAt, []byte(`{"ptr":"/do/0/call"}`)
			late := command(id, 3, "")
			late.CreatedAt, late.Metadata = at.Add(time.Hour), nil
			c.Rows.Stream = []projections.Entry{in, out, late}
			c.Rows.Tasks = []projections.Task{task("t-"+id, id)}
			c.Rows.Tasks[0].CreatedAt = in.CreatedAt
			k.commit(c)
			k.ok(k.s.Activities.AttachActivity(k.ctx, noted(id, "x", 1), audited(n)))
		}
		c := turn("a", 2)
		c.Rows.Settled = []engine.Settled{{Position: 2}}
		k.commit(c)
		list := func(q backend.MomentQuery) (all []backend.Moment) {
			k.Helper()
			for {
				p, err := k.s.Moments.Moments(k.ctx, q)
				k.ok(err)
				all = append(all, p.Items...)
				if q.After = p.Next; q.After == "" {
					return all
				}
			}
		}
		told := func(q backend.MomentQuery) (text []string) {
			k.Helper()
			for _, m := range list(q) {
				text = append(text, fmt.Sprint(m.InstanceID, " ", m.Kind, " ", cmp.Or(m.Ref, fmt.Sprint(m.Position)), " ", m.Status))
			}
			return text
		}
		want := []string{
			"b event 1 ", "b command 2 claimed", "b task t-b ready",
			"a event 1 ", "a command 2 processed", "a activity x begun, Ω", "a task t-a ready", "b activity x begun, Ω",
			"a command 3 open", "b command 3 open",
		}
		for _, limit := range []int{1, 2, 3, 7, 0} {
			equal(k, told(backend.MomentQuery{BusinessKey: "L-1", Limit: limit}), want)
		}
		all := list(backend.MomentQuery{BusinessKey: "L-1"})
		equal(k, all[0], backend.Moment{BusinessKey: "L-1", Definition: "shop/b", InstanceID: "b", At: at, Place: "00000000000000000001", Kind: "event", Direction: "in",
			Position: 1, Name: "InstanceStarted", Actor: "änn", Correlation: "c-b"})
		equal(k, all[1].Pointer, "/do/0/call")
		equal(k, all[4].EndedAt.IsZero(), false)
		equal(k, all[5], backend.Moment{BusinessKey: "L-1", Definition: "shop/a", InstanceID: "a", At: at.Add(time.Second), Place: "activity/x", Kind: "activity",
			Ref: "x", Name: "inspection", Status: "begun, Ω", Actor: "änn", Correlation: "c-a"})
		equal(k, told(backend.MomentQuery{BusinessKey: "L-1", Definition: "shop/a", Kinds: []string{"command", "task"}, Limit: 1}), []string{"a command 2 processed", "a task t-a ready", "a command 3 open"})
		hooks := turn("hooks", 1)
		var marked []string
		for n, c := range []struct{ pointer, hook string }{
			{"/states/Review/onEnter/0/call", "onEnter"}, {"/states/a~1b/onExit/1/x", "onExit"}, {"/transitions/12/hooks/0/x", "hooks"},
			{"/policy/1.0.0/states/Review/onEnter/0/x", "onEnter"}, {"/policy/1.0.0-rc.1/states/R/onExit/0/x/do/0/onEnter", "onExit"},
			{"/states/Review/policies/0/billing", ""}, {"/policy/1.0.0/states/Review/policies/0/onEnter/0", ""}, {"/do/0/states/1/onEnter/0/x", ""},
			{"/states/onEnter/policies/0/x", ""}, {"/transitions/0/when/hooks/0", ""}, {"/states/Review", ""}, {"/policy/onEnter/", ""}, {"/states/onExit/", ""}, {"", ""},
		} {
			e := command("hooks", int64(n+1), "")
			e.Metadata = []byte(`{"ptr":"` + c.pointer + `"}`)
			hooks.Rows.Stream, marked = append(hooks.Rows.Stream, e), append(marked, c.pointer+" "+c.hook)
		}
		k.commit(hooks)
		var got []string
		for _, m := range list(backend.MomentQuery{InstanceID: "hooks"}) {
			got = append(got, m.Pointer+" "+m.Hook)
		}
		equal(k, got, marked)
		equal(k, told(backend.MomentQuery{InstanceID: "other", Kinds: []string{"activity"}}), []string{"other activity x begun, Ω"})
		equal(k, len(told(backend.MomentQuery{BusinessKey: "nothing"})), 0)
		for _, mark := range []string{"x", "1.a", "1.9.a", "1.-1.a"} {
			if _, err := k.s.Moments.Moments(k.ctx, backend.MomentQuery{BusinessKey: "L-1", After: mark}); problem.CodeOf(err) != "page.invalid" {
				k.Error(mark, err)
			}
		}
	},
	"an instance has so many activities, and their texts have a width": func(k *testCase) {
		k.commit(turn("a", 1))
		k.commit(turn("b", 1))
		wide := noted("b", strings.Repeat("ä", 128), 0)
		wide.Name, wide.Status, wide.CreatedBy = strings.Repeat("é", 256), strings.Repeat("é", 64), strings.Repeat("é", 128)
		wide.Data = []byte(`"` + strings.Repeat("x", backend.MaxActivityBytes-2) + `"`)
		k.ok(k.s.Activities.AttachActivity(k.ctx, wide, audited(0)))
		got, err := k.s.Activities.Activity(k.ctx, "b", wide.ID)
		k.ok(err)
		equal(k, got, wide)
		wide.ID, wide.Status = "y", wide.Status+"x"
		if err := k.s.Activities.AttachActivity(k.ctx, wide, audited(1)); problem.CodeOf(err) != "store.value" {
			k.Fatal(err)
		}
		if testing.Short() {
			return
		}
		for n := range backend.MaxActivities {
			a := audited(0)
			a.ID = fmt.Sprint("n", n)
			k.ok(k.s.Activities.AttachActivity(k.ctx, noted("a", fmt.Sprint("x", n), 0), a))
		}
		k.is(k.s.Activities.AttachActivity(k.ctx, noted("a", "one more", 0), audited(1)), backend.ErrFull)
		k.is(k.s.Activities.AttachActivity(k.ctx, noted("a", "x7", 0), audited(1)), store.ErrDuplicate)
		equal(k, len(k.activitiesOf("a", 500)), backend.MaxActivities)
	},
}
