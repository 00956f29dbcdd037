package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

var readCases = map[string]func(*testCase){
	"what is not there is not found": func(k *testCase) {
		_, err := k.s.Instances.Instance(k.ctx, "a")
		k.is(err, store.ErrNotFound)
		_, err = k.s.Tasks.Task(k.ctx, "t")
		k.is(err, store.ErrNotFound)
		_, err = k.s.Tasks.TaskEvents(k.ctx, "t")
		k.is(err, store.ErrNotFound)
		_, err = k.s.DeadLetters.DeadLetter(k.ctx, "l")
		k.is(err, store.ErrNotFound)
		page, err := k.s.Instances.Instances(k.ctx, backend.InstanceQuery{})
		k.ok(err)
		equal(k, len(page.Items), 0)
		equal(k, page.Next, "")
		entries, err := k.s.Streams.Stream(k.ctx, "a", 0, 0)
		k.ok(err)
		equal(k, len(entries), 0)
	},
	"an instance row comes back as it was": func(k *testCase) {
		c := turn("a", 1)
		*c.Rows.Instance = projections.Instance{ID: "a", Definition: "default/d", DefVersion: "1", BusinessKey: "kläger", StartKey: "k",
			Status: "waiting", Position: "review", ParentID: "p", Correlation: "c", Version: 1, ErrorType: "e", ErrorDetail: "because",
			StartedAt: at, UpdatedAt: at.Add(time.Microsecond)}
		k.commit(c)
		got, err := k.s.Instances.Instance(k.ctx, "a")
		k.ok(err)
		equal(k, got, *c.Rows.Instance)

		next := turn("a", 2)
		*next.Rows.Instance = *c.Rows.Instance
		i := next.Rows.Instance
		i.Version, i.Status, i.Position, i.ErrorType, i.ErrorDetail, i.EndedAt = 2, "completed", "", "", "", at.Add(time.Hour)
		k.commit(next)
		got, err = k.s.Instances.Instance(k.ctx, "a")
		k.ok(err)
		equal(k, got, *i)
	},
	"an instance is found by its start key": func(k *testCase) {
		for i, c := range []struct{ definition, business, key string }{{"d", "b", "k"}, {"d", "", "k"}, {"e", "b", "k"}, {"d", "b", ""}} {
			change := turn(fmt.Sprint("a-", i), 1)
			row := change.Rows.Instance
			row.Definition, row.BusinessKey, row.StartKey = c.definition, c.business, c.key
			k.commit(change)
			if c.key != "" {
				got, err := k.s.Instances.Started(k.ctx, c.definition, c.business, c.key)
				k.ok(err)
				equal(k, got, *row)
			}
		}
		for _, q := range [][3]string{{"d", "b", "x"}, {"d", "x", "k"}, {"x", "b", "k"}, {"d", "b", ""}} {
			_, err := k.s.Instances.Started(k.ctx, q[0], q[1], q[2])
			k.is(err, store.ErrNotFound)
		}
	},
	"an instance goes on under another version of its definition": func(k *testCase) {
		c := turn("a", 1)
		c.Rows.Waits = []projections.Wait{{Token: "t", InstanceID: "a", EventType: "paid", Spec: "d@1#/do/0", KeyHash: "00", CreatedAt: at}}
		k.commit(c)
		next := turn("a", 2)
		next.Rows.Instance.DefVersion = "2.0.0"
		next.Rows.WaitsGone = []string{"t"}
		moved := c.Rows.Waits[0]
		moved.Spec = "d@2#/do/1"
		next.Rows.Waits = []projections.Wait{moved}
		k.commit(next)
		got, err := k.s.Instances.Instance(k.ctx, "a")
		k.ok(err)
		equal(k, got, *next.Rows.Instance)
		specs, err := k.s.Waits.WaitSpecs(k.ctx, "paid")
		k.ok(err)
		equal(k, specs, []string{"d@2#/do/1"})
		waits, err := k.s.Waits.Waits(k.ctx, "paid", "d@2#/do/1", "00", projections.Wait{}, 0)
		k.ok(err)
		equal(k, waits, next.Rows.Waits)
	},
	"an instance of empty strings comes back as it was": func(k *testCase) {
		c := turn("a", 1)
		*c.Rows.Instance = projections.Instance{ID: "a", Version: 1, StartedAt: at}
		k.commit(c)
		got, err := k.s.Instances.Instance(k.ctx, "a")
		k.ok(err)
		equal(k, got, *c.Rows.Instance)
	},
	"instances page newest first and filter": func(k *testCase) {
		for i := range 7 {
			c := turn(fmt.Sprint("a-", i), 1)
			c.Rows.Instance.StartedAt = at.Add(time.Duration(i) * time.Second)
			c.Rows.Instance.BusinessKey = fmt.Sprint("b-", i%2)
			if i > 4 {
				c.Rows.Instance.ParentID = "a-0"
			}
			k.commit(c)
		}
		var got []string
		q := backend.InstanceQuery{Limit: 3, Status: "waiting", Definition: "default/d"}
		for {
			page, err := k.s.Instances.Instances(k.ctx, q)
			k.ok(err)
			for _, i := range page.Items {
				got = append(got, i.ID)
			}
			if q.After = page.Next; q.After == "" {
				break
			}
		}
		equal(k, got, []string{"a-6", "a-5", "a-4", "a-3", "a-2", "a-1", "a-0"})
		page, err := k.s.Instances.Instances(k.ctx, backend.InstanceQuery{BusinessKey: "b-1"})
		k.ok(err)
		equal(k, len(page.Items), 3)
		page, err = k.s.Instances.Instances(k.ctx, backend.InstanceQuery{ParentID: "a-0"})
		k.ok(err)
		equal(k, len(page.Items), 2)
		for _, q := range []backend.InstanceQuery{{Status: "faulted"}, {Definition: "x"}, {BusinessKey: "x"}, {ParentID: "x"}} {
			page, err := k.s.Instances.Instances(k.ctx, q)
			k.ok(err)
			equal(k, len(page.Items), 0)
		}
	},
	"stream entries come back as they were, in order": func(k *testCase) {
		c := turn("a", 1)
		c.Rows.Stream = []projections.Entry{
			{InstanceID: "a", Position: 1, Kind: "event", Direction: "in", Type: "T", Data: []byte(`{"x":"Ω"}`), Metadata: []byte(`{}`),
				SignalID: "s-1", CreatedAt: at},
			command("a", 2, "node-a"),
			{InstanceID: "a", Position: 3, Kind: "command", Direction: "out", Processed: yes(true), ProcessedAt: at},
		}
		k.commit(c)
		k.commit(turn("b", 1))
		got, err := k.s.Streams.Stream(k.ctx, "a", 0, 0)
		k.ok(err)
		equal(k, got, c.Rows.Stream)
		got, err = k.s.Streams.Stream(k.ctx, "a", 1, 1)
		k.ok(err)
		equal(k, got, c.Rows.Stream[1:2])
		got, err = k.s.Streams.Stream(k.ctx, "b", 0, 0)
		k.ok(err)
		equal(k, len(got), 0)
	},
	"a page of rows with bodies ends at its bytes, and the next goes on": func(k *testCase) {
		body := fmt.Appendf(nil, "%q", strings.Repeat("x", projections.MaxPageBytes/4))
		c := turn("a", 1)
		for i := range 10 {
			c.Rows.Stream = append(c.Rows.Stream, projections.Entry{InstanceID: "a", Position: int64(i + 1), Kind: "command", Direction: "out",
				Data: body, Processed: yes(false), CreatedAt: at})
			t := task(fmt.Sprint("t-", i), "a")
			t.Payload = body
			c.Rows.Tasks = append(c.Rows.Tasks, t)
		}
		k.commit(c)
		var pages, positions []int
		for after := int64(0); ; {
			rows, err := k.s.Streams.Stream(k.ctx, "a", after, 0)
			k.ok(err)
			for _, e := range rows {
				positions, after = append(positions, int(e.Position)), e.Position
			}
			if pages = append(pages, len(rows)); !backend.Full(rows) {
				break
			}
		}
		equal(k, pages, []int{4, 4, 2})
		equal(k, positions, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
		rows, err := k.s.Streams.Pending(k.ctx, "a", 0)
		k.ok(err)
		equal(k, len(rows), 4)
		q := backend.TaskQuery{InstanceID: "a"}
		ids := map[string]bool{}
		for pages = nil; ; {
			page, err := k.s.Tasks.Tasks(k.ctx, q)
			k.ok(err)
			for _, t := range page.Items {
				ids[t.ID] = true
			}
			pages = append(pages, len(page.Items))
			if q.After = page.Next; q.After == "" {
				break
			}
		}
		equal(k, pages, []int{4, 4, 2})
		equal(k, len(ids), 10)
	},
	"a recorded signal is known by its instance": func(k *testCase) {
		c := turn("a", 1)
		c.Rows.Stream = []projections.Entry{
			{InstanceID: "a", Position: 1, Kind: "event", Direction: "in", Type: "InstanceStarted", CreatedAt: at},
			{InstanceID: "a", Position: 2, Kind: "event", Direction: "in", Type: "ExternalSignal", SignalID: "s-1", CreatedAt: at},
		}
		k.commit(c)
		k.commit(turn("b", 1))
		for _, q := range []struct {
			instance, signal string
			want             bool
		}{{"a", "s-1", true}, {"a", "s-2", false}, {"a", "", false}, {"b", "s-1", false}, {"c", "s-1", false}} {
			got, err := k.s.Streams.Recorded(k.ctx, q.instance, q.signal)
			k.ok(err)
			equal(k, got, q.want)
			e, err := k.s.Streams.Received(k.ctx, q.instance, q.signal)
			if q.want {
				k.ok(err)
				equal(k, e, c.Rows.Stream[1])
			} else if !errors.Is(err, store.ErrNotFound) {
				k.Errorf("%s of %s: %v", q.signal, q.instance, err)
			}
		}
	},
	"pending lists unprocessed commands": func(k *testCase) {
		for _, id := range []string{"a", "b"} {
			c := turn(id, 1)
			c.Rows.Stream = []projections.Entry{command(id, 1, ""), command(id, 2, "node-a")}
			k.commit(c)
		}
		c := turn("a", 2)
		c.Rows.Settled = []engine.Settled{{Position: 1}}
		k.commit(c)
		got, err := k.s.Streams.Pending(k.ctx, "a", 0)
		k.ok(err)
		equal(k, got, []projections.Entry{command("a", 2, "node-a")})
		got, err = k.s.Streams.Pending(k.ctx, "", 0)
		k.ok(err)
		equal(k, len(got), 3)
		got, err = k.s.Streams.Pending(k.ctx, "", 2)
		k.ok(err)
		equal(k, len(got), 2)
	},
	"commands that are not processed page by instance and position": func(k *testCase) {
		for i, id := range []string{"b", "a"} {
			c := turn(id, 1)
			for p := int64(1); p <= 3; p++ {
				e := command(id, p, "")
				e.CreatedAt = at.Add(time.Duration(i) * time.Hour)
				c.Rows.Stream = append(c.Rows.Stream, e)
			}
			k.commit(c)
		}
		c := turn("a", 2)
		c.Rows.Settled = []engine.Settled{{Position: 2}}
		k.commit(c)
		list := func(q backend.CommandQuery) (found []string) {
			for {
				p, err := k.s.Streams.Commands(k.ctx, q)
				k.ok(err)
				for _, e := range p.Items {
					found = append(found, fmt.Sprint(e.InstanceID, e.Position))
				}
				if q.After = p.Next; p.Next == "" {
					return found
				}
			}
		}
		equal(k, list(backend.CommandQuery{}), []string{"a1", "a3", "b1", "b2", "b3"})
		equal(k, list(backend.CommandQuery{Limit: 2}), []string{"a1", "a3", "b1", "b2", "b3"})
		equal(k, list(backend.CommandQuery{Limit: 1, InstanceID: "b"}), []string{"b1", "b2", "b3"})
		equal(k, list(backend.CommandQuery{Before: at.Add(time.Hour)}), []string{"b1", "b2", "b3"})
		equal(k, list(backend.CommandQuery{Before: at}), []string(nil))
	},
	"commands that are not processed are found by their type, target or name, whatever else is open": func(k *testCase) {
		c := turn("a", 1)
		for i, x := range []struct{ entry, data string }{
			{"Call", `{"target":"http","ptr":"/do/0/ask","input":{"type":"t-paid"}}`}, {"Call", `{"target":"charge","ptr":"/do/1/a~1b~0c"}`},
			{"EventEmitted", `{"target":"event:publish","ptr":"/do/2/ask","input":{"type":"t-paid"}}`}, {"LifecycleEvents", `{"target":"event:lifecycle"}`},
			{"Call", `no command`}, {"Call", `{"target":"ask2","ptr":"/do/3/a%k"}`}, {"Call", `{"target":"x","ptr":"/ask/4/big","input":"` + strings.Repeat("é", 5000) + `"}`},
		} {
			e := command("a", int64(i+1), "")
			e.Type, e.Data = x.entry, []byte(x.data)
			c.Rows.Stream = append(c.Rows.Stream, e)
		}
		k.commit(c)
		done := turn("a", 2)
		done.Rows.Settled = []engine.Settled{{Position: 6}}
		list := func(q backend.CommandQuery) (found string) {
			for {
				p, err := k.s.Streams.Commands(k.ctx, q)
				k.ok(err)
				if q.Limit > 0 && len(p.Items) < q.Limit && p.Next != "" {
					k.Errorf("%s: a page of %d", q.Type, len(p.Items))
				}
				for _, e := range p.Items {
					found += fmt.Sprint(e.Position, " ")
				}
				if q.After = p.Next; p.Next == "" {
					return found
				}
			}
		}
		for what, want := range map[string]string{
			"": "1 2 3 4 5 6 7 ", "Call": "1 2 5 6 7 ", "http": "1 ", "charge": "2 ", "ask": "1 ", "a/b~c": "2 ", "a~1b~0c": "", "b~c": "", "t-paid": "3 ",
			"event:publish": "3 ", "LifecycleEvents": "4 ", "event:lifecycle": "4 ", "a%k": "6 ", "big": "7 ", "x": "7 ", "sk": "", "call": "", "do": "", "é": "",
		} {
			equal(k, what+": "+list(backend.CommandQuery{Type: what}), what+": "+want)
			equal(k, what+": "+list(backend.CommandQuery{Type: what, Limit: 1, InstanceID: "a"}), what+": "+want)
		}
		k.commit(done)
		equal(k, list(backend.CommandQuery{Type: "Call", Before: at.Add(time.Hour), InstanceID: "a"}), "1 2 5 7 ")
		equal(k, list(backend.CommandQuery{Type: "Call", InstanceID: "b"}), "")
	},
	"a task comes back as it was": func(k *testCase) {
		c := turn("a", 1)
		bare := projections.Task{ID: "bare", InstanceID: "a", Status: projections.TaskReady, Version: 1, CreatedAt: at}
		c.Rows.Tasks = []projections.Task{task("t", "a"), bare}
		k.commit(c)
		got, err := k.s.Tasks.Task(k.ctx, "t")
		k.ok(err)
		equal(k, got, task("t", "a"))
		got, err = k.s.Tasks.Task(k.ctx, "bare")
		k.ok(err)
		equal(k, got, bare)
		events, err := k.s.Tasks.TaskEvents(k.ctx, "t")
		k.ok(err)
		equal(k, len(events), 0)
	},
	"tasks page by priority and age, and by who may see them": tasks,
	"waits are found by what they wait for": func(k *testCase) {
		key := strings.Repeat("0a", 32)
		for i, id := range []string{"a", "b", "c"} {
			c := turn(id, 1)
			c.Rows.Waits = []projections.Wait{{Token: fmt.Sprint("tok-", i), InstanceID: id, EventType: "paid", Spec: "spec-1", KeyHash: key, CreatedAt: at}}
			if id == "c" {
				c.Rows.Waits = append(c.Rows.Waits, projections.Wait{Token: "tok-9", InstanceID: id, EventType: "paid", Spec: "spec-2", CreatedAt: at})
			}
			k.commit(c)
		}
		specs, err := k.s.Waits.WaitSpecs(k.ctx, "paid")
		k.ok(err)
		equal(k, specs, []string{"spec-1", "spec-2"})
		got, err := k.s.Waits.Waits(k.ctx, "paid", "spec-1", key, projections.Wait{}, 2)
		k.ok(err)
		equal(k, got, []projections.Wait{
			{Token: "tok-0", InstanceID: "a", EventType: "paid", Spec: "spec-1", KeyHash: key, CreatedAt: at},
			{Token: "tok-1", InstanceID: "b", EventType: "paid", Spec: "spec-1", KeyHash: key, CreatedAt: at}})
		got, err = k.s.Waits.Waits(k.ctx, "paid", "spec-1", key, got[1], 2)
		k.ok(err)
		equal(k, len(got), 1)
		got, err = k.s.Waits.Waits(k.ctx, "paid", "spec-2", "", projections.Wait{}, 2)
		k.ok(err)
		equal(k, len(got), 1)
		got, err = k.s.Waits.Waits(k.ctx, "paid", "spec-1", strings.Repeat("0b", 32), projections.Wait{}, 2)
		k.ok(err)
		equal(k, len(got), 0)
		c := turn("c", 2)
		c.Rows.WaitsGone = []string{"tok-9"}
		k.commit(c)
		specs, err = k.s.Waits.WaitSpecs(k.ctx, "paid")
		k.ok(err)
		equal(k, specs, []string{"spec-1"})
		specs, err = k.s.Waits.WaitSpecs(k.ctx, "shipped")
		k.ok(err)
		equal(k, len(specs), 0)
	},
	"dead letters page newest first and filter": func(k *testCase) {
		for i := range 5 {
			k.commit(store.Change{DeadLetter: &projections.DeadLetter{ID: fmt.Sprint("l-", i), Queue: "signal", InstanceID: fmt.Sprint("a-", i%2),
				Envelope: []byte("e"), Reason: "r", EnqueuedAt: at, DiedAt: at.Add(time.Duration(i) * time.Second)}})
		}
		page, err := k.s.DeadLetters.DeadLetters(k.ctx, backend.DeadLetterQuery{Limit: 2})
		k.ok(err)
		equal(k, page.Items[0].ID+page.Items[1].ID, "l-4l-3")
		page, err = k.s.DeadLetters.DeadLetters(k.ctx, backend.DeadLetterQuery{Limit: 3, After: page.Next})
		k.ok(err)
		equal(k, page.Items[0].ID+page.Items[1].ID+page.Items[2].ID, "l-2l-1l-0")
		equal(k, page.Next, "")
		page, err = k.s.DeadLetters.DeadLetters(k.ctx, backend.DeadLetterQuery{InstanceID: "a-1", Queue: "signal", Reason: "r"})
		k.ok(err)
		equal(k, len(page.Items), 2)
	},
	"a damaged page mark is a problem": func(k *testCase) {
		for _, err := range []error{
			second(k.s.Instances.Instances(k.ctx, backend.InstanceQuery{After: "no page"})),
			second(k.s.Tasks.Tasks(k.ctx, backend.TaskQuery{After: "no page"})),
			second(k.s.DeadLetters.DeadLetters(k.ctx, backend.DeadLetterQuery{After: "no page"})),
		} {
			equal(k, problem.KindOf(err), problem.Invalid)
		}
	},
	"a definition is published once and never changes": definitions,
}

func second[T any](_ T, err error) error { return err }

func tasks(k *testCase) {
	c := turn("a", 1)
	add := func(id string, priority int, change func(*projections.Task)) {
		t := projections.Task{ID: id, InstanceID: "a", Status: projections.TaskReady, Priority: priority, Version: 1, CreatedAt: at,
			CandidateUsers: "[]", CandidateGroups: "[]", ExcludedUsers: "[]", Outcomes: "[]"}
		if change != nil {
			change(&t)
		}
		c.Rows.Tasks = append(c.Rows.Tasks, t)
	}
	add("low", 9, func(t *projections.Task) { t.CandidateUsers = `["ann"]` })
	add("open", 5, nil)
	add("group", 5, func(t *projections.Task) { t.CandidateGroups = `["clerks"]` })
	add("hers", 1, func(t *projections.Task) { t.Status, t.Assignee = projections.TaskReserved, "ann" })
	add("his", 1, func(t *projections.Task) { t.Status, t.Assignee = projections.TaskReserved, "bob" })
	add("done", 1, func(t *projections.Task) {
		t.Status, t.Assignee, t.EndedAt = projections.TaskCompleted, "ann", at
	})
	add("gone", 1, func(t *projections.Task) {
		t.Status, t.CandidateGroups, t.EndedAt = projections.TaskCancelled, `["clerks"]`, at
	})
	add("theirs", 5, func(t *projections.Task) {
		t.Status, t.Assignee, t.CandidateGroups = projections.TaskReserved, "carl", `["clerks"]`
	})
	add("not-her", 1, func(t *projections.Task) { t.CandidateGroups, t.ExcludedUsers = `["clerks"]`, `["ann"]` })
	k.commit(c)
	ids := func(q backend.TaskQuery) []string {
		k.Helper()
		var got []string
		for {
			page, err := k.s.Tasks.Tasks(k.ctx, q)
			k.ok(err)
			for _, t := range page.Items {
				got = append(got, t.ID)
			}
			if q.After = page.Next; q.After == "" {
				return got
			}
		}
	}
	open, clerks := backend.TaskOpen, []string{"x", "clerks"}
	equal(k, ids(backend.TaskQuery{Limit: 2}), []string{"hers", "his", "done", "gone", "not-her", "open", "group", "theirs", "low"})
	equal(k, ids(backend.TaskQuery{Status: open, Limit: 2}), []string{"hers", "his", "not-her", "open", "group", "theirs", "low"})
	equal(k, ids(backend.TaskQuery{Status: open, User: "ann", Limit: 1}), []string{"hers", "open", "low"})
	equal(k, ids(backend.TaskQuery{User: "ann", Limit: 1}), []string{"hers", "done", "open", "low"})
	equal(k, ids(backend.TaskQuery{Status: open, User: "ann", Groups: clerks}), []string{"hers", "open", "group", "low"})
	equal(k, ids(backend.TaskQuery{Status: open, User: "carl"}), []string{"open", "theirs"})
	equal(k, ids(backend.TaskQuery{Status: open, User: "carl", Groups: clerks}), []string{"not-her", "open", "group", "theirs"})
	equal(k, ids(backend.TaskQuery{Status: open, Groups: clerks}), []string{"not-her", "open", "group"})
	equal(k, ids(backend.TaskQuery{Status: open, Groups: []string{"ann"}}), []string{"open"})
	equal(k, ids(backend.TaskQuery{Assignee: "bob"}), []string{"his"})
	equal(k, ids(backend.TaskQuery{Status: projections.TaskReserved}), []string{"hers", "his", "theirs"})
	equal(k, ids(backend.TaskQuery{InstanceID: "a", Status: projections.TaskExpired}), []string(nil))
	equal(k, len(ids(backend.TaskQuery{InstanceID: "a"})), 9)
	equal(k, len(ids(backend.TaskQuery{InstanceID: "b"})), 0)
}

func definitions(k *testCase) {
	repo, is := k.s.Store.(definition.Repository)
	if !is {
		k.Skip("the store keeps no definitions")
	}
	r := definition.Record{Name: "default/d", Version: "1.0.0", Digest: "aa", Kind: "openworkflow", Title: "Ω", Source: []byte("src"),
		Document: []byte(`{}`), PublishedAt: at, Ordinal: 1}
	put := func(r definition.Record, want bool) {
		k.Helper()
		created, err := repo.PutDefinitions(k.ctx, []definition.Record{r})
		k.ok(err)
		equal(k, created, want)
	}
	put(r, true)
	again := r
	again.PublishedAt, again.Digest, again.Ordinal = at.Add(time.Hour), "bb", 2
	put(again, false)
	got, err := repo.Definition(k.ctx, "default/d", "1.0.0")
	k.ok(err)
	equal(k, got, r)
	_, err = repo.Definition(k.ctx, "default/d", "2.0.0")
	equal(k, problem.CodeOf(err), "definition.unknown")
	next := r
	next.Version = "2.0.0"
	put(next, false) // another has its ordinal
	next.Ordinal = 2
	put(next, true)
	other := r
	other.Name = "default/e"
	put(other, true)
	brief := func(r definition.Record) definition.Record { r.Source, r.Document = nil, nil; return r }
	versions, err := repo.Versions(k.ctx, "default/d", 0)
	k.ok(err)
	equal(k, versions, []definition.Record{brief(r), brief(next)})
	for after, want := range [][]definition.Record{1: {brief(next)}, 2: {}} {
		if after > 0 {
			versions, err = repo.Versions(k.ctx, "default/d", after)
			k.ok(err)
			equal(k, len(versions), len(want))
			equal(k, append([]definition.Record{}, versions...), want)
		}
	}
	all, err := repo.Definitions(k.ctx, "", 2)
	k.ok(err)
	equal(k, all, []definition.Record{brief(r), brief(next)})
	all, err = repo.Definitions(k.ctx, "default/d@2.0.0", 2)
	k.ok(err)
	equal(k, all, []definition.Record{brief(other)})
}
