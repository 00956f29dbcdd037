package storetest

import (
	"slices"

	"github.com/aqueduct-engine/aqueduct/store/backend"
)

var functionCases = map[string]func(*testCase){
	"what nodes perform is known while they live": func(k *testCase) {
		declared := func(want ...string) {
			k.Helper()
			got, err := k.s.Functions.Declared(k.ctx)
			k.ok(err)
			if !slices.Equal(got, want) {
				k.Errorf("declared %q, want %q", got, want)
			}
		}
		declared()
		k.ok(k.s.Functions.Declare(k.ctx, []string{"http", "pay"}))
		declared("http", "pay")
		other := k.open("other")
		k.ok(other.Functions.Declare(k.ctx, []string{"a \"b\" / é", "http"}))
		declared("a \"b\" / é", "http", "pay")
		k.ok(other.Functions.Declare(k.ctx, nil))
		declared("http", "pay")
		k.ok(other.Functions.Declare(k.ctx, []string{"ship"}))
		declared("http", "pay", "ship")
		k.ok(other.Close())
		declared("http", "pay")
		many := make([]string, 2_000) // more than a column of text has room for
		for i := range many {
			many[i] = "function-" + string(rune('a'+i/100)) + "-" + string(rune('a'+i/10%10)) + string(rune('a'+i%10))
		}
		k.ok(k.s.Functions.Declare(k.ctx, many))
		got, err := k.s.Functions.Declared(k.ctx)
		k.ok(err)
		equal(k, len(got), len(many))
	},
	"commands that no node has are counted by target": func(k *testCase) {
		unclaimed := func(limit int) []backend.Count {
			found, err := k.s.Functions.Unclaimed(k.ctx, limit)
			k.ok(err)
			return found
		}
		equal(k, len(unclaimed(10)), 0)
		c := turn("i", 1)
		for n, target := range []string{"pay", "ship", "pay", "pay"} {
			e := command("i", int64(n+1), "")
			e.Data = []byte(`{"target":"` + target + `"}`)
			c.Rows.Stream = append(c.Rows.Stream, e)
		}
		mine := command("i", 5, k.s.Nodes.Node())
		mine.Data = []byte(`{"target":"ship"}`)
		done := command("i", 6, "")
		done.Processed = yes(true)
		c.Rows.Stream = append(c.Rows.Stream, mine, done)
		k.commit(c)
		equal(k, unclaimed(10), []backend.Count{{What: backend.CountUnclaimed, Name: "pay", Rows: 3}, {What: backend.CountUnclaimed, Name: "ship", Rows: 1}})
		all := 0
		for _, u := range unclaimed(2) {
			all += u.Rows
		}
		equal(k, all, 2)
	},
}
