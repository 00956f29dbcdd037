package storetest

import (
	"slices"

	"github.com/aqueduct-engine/aqueduct/attribute"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

var scopeCases = map[string]func(*testCase){
	"a list keeps to the namespaces of a scope": func(k *testCase) {
		for _, of := range []string{"shop/a", "shop/b", "shopping/a", "sho/p", "Shop/a", "büro/a", "%/a", "d"} {
			c := turn("i "+of, 1)
			c.Rows.Instance.Definition, c.Rows.Instance.BusinessKey = of, "one"
			t := task("t "+of, c.Rows.Instance.ID)
			t.Definition = of
			c.Rows.Tasks, c.Rows.Stream = []projections.Task{t}, []projections.Entry{command(c.Rows.Instance.ID, 1, "")}
			c.Rows.Attributes = []projections.Attribute{{InstanceID: c.Rows.Instance.ID, Name: "job", Kind: string(attribute.Text), Value: "x", Key: []byte("sx")}}
			k.commit(c)
			l := dead("l " + of)
			l.DeadLetter.InstanceID = c.Rows.Instance.ID
			k.commit(l)
		}
		lost := dead("l of nothing")
		lost.DeadLetter.InstanceID = "gone"
		k.commit(lost)
		lost = dead("l of nobody")
		lost.DeadLetter.InstanceID = ""
		k.commit(lost)
		for _, c := range []struct {
			scope backend.Scope
			want  []string // of definitions
		}{
			{backend.Scope{"shop"}, []string{"shop/a", "shop/b"}},
			{backend.Scope{"büro", "shop"}, []string{"büro/a", "shop/a", "shop/b"}},
			{backend.Scope{"%"}, []string{"%/a"}},
			{backend.Scope{"d"}, nil},
			{backend.Scope{"' or 1 = 1 --"}, nil},
			{backend.Scope{}, nil},
			{nil, []string{"%/a", "Shop/a", "büro/a", "d", "sho/p", "shop/a", "shop/b", "shopping/a"}},
		} {
			found := func(what string, p []string, err error) {
				k.Helper()
				k.ok(err)
				if slices.Sort(p); !slices.Equal(p, c.want) {
					k.Errorf("%s within %q: %q, want %q", what, c.scope, p, c.want)
				}
			}
			instances, err := k.s.Instances.Instances(k.ctx, backend.InstanceQuery{Scope: c.scope})
			found("instances", namesOf(instances.Items, func(i projections.Instance) string { return i.Definition }), err)
			instances, err = k.s.Instances.Instances(k.ctx, backend.InstanceQuery{Scope: c.scope, OrderBy: "job"})
			found("instances in order", namesOf(instances.Items, func(i projections.Instance) string { return i.Definition }), err)
			tasks, err := k.s.Tasks.Tasks(k.ctx, backend.TaskQuery{Scope: c.scope})
			found("tasks", namesOf(tasks.Items, func(t projections.Task) string { return t.Definition }), err)
			tasks, err = k.s.Tasks.Tasks(k.ctx, backend.TaskQuery{Scope: c.scope, User: "ann", Status: backend.TaskOpen})
			found("tasks of ann", namesOf(tasks.Items, func(t projections.Task) string { return t.Definition }), err)
			commands, err := k.s.Streams.Commands(k.ctx, backend.CommandQuery{Scope: c.scope})
			found("commands", namesOf(commands.Items, func(e projections.Entry) string { return e.InstanceID[2:] }), err)
			died, err := k.s.DeadLetters.DeadLetters(k.ctx, backend.DeadLetterQuery{Scope: c.scope})
			if c.scope == nil {
				died.Items = slices.DeleteFunc(died.Items, func(l projections.DeadLetter) bool { return l.InstanceID == "gone" || l.InstanceID == "" })
			}
			found("dead letters", namesOf(died.Items, func(l projections.DeadLetter) string { return l.ID[2:] }), err)
			moments, err := k.s.Moments.Moments(k.ctx, backend.MomentQuery{Scope: c.scope, BusinessKey: "one", Kinds: []string{backend.MomentCommand}})
			found("moments", namesOf(moments.Items, func(m backend.Moment) string { return m.Definition }), err)
		}
		got, err := k.s.Tasks.ClaimNext(k.ctx, backend.NextClaim{User: "ann", Scope: backend.Scope{"büro", "sho"}, Limit: 9, Event: "claimed", At: at})
		k.ok(err)
		claimed := namesOf(got, func(t projections.Task) string { return t.Definition })
		slices.Sort(claimed)
		equal(k, claimed, []string{"büro/a", "sho/p"})
		got, err = k.s.Tasks.ClaimNext(k.ctx, backend.NextClaim{User: "ann", Scope: backend.Scope{}, Limit: 9, Event: "claimed", At: at})
		k.ok(err)
		equal(k, len(got), 0)
	},
}

func namesOf[T any](rows []T, name func(T) string) (names []string) {
	for _, r := range rows {
		names = append(names, name(r))
	}
	return names
}
