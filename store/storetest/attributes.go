package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/attribute"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// attributed makes an instance with values, each as a filter has it: amount = 12.
func (k *testCase) attributed(id string, values ...string) {
	k.Helper()
	c := turn(id, 1)
	c.Rows.Attributes = k.attributes(id, values...)
	k.commit(c)
}

func (k *testCase) attributes(id string, values ...string) (list []projections.Attribute) {
	k.Helper()
	for _, text := range values {
		for _, c := range k.where(text) {
			v := c.Values[0]
			list = append(list, projections.Attribute{InstanceID: id, Name: c.Name, Kind: string(v.Kind), Value: v.Text, Key: v.Key})
		}
	}
	return list
}

func (k *testCase) where(text string) []attribute.Condition {
	k.Helper()
	if text == "" {
		return nil
	}
	list, err := attribute.Where(text)
	k.ok(err)
	return list
}

// ids are those of all pages of a list.
func (k *testCase) ids(q backend.InstanceQuery) (got []string) {
	k.Helper()
	for {
		page, err := k.s.Instances.Instances(k.ctx, q)
		k.ok(err)
		for _, i := range page.Items {
			got = append(got, i.ID)
		}
		if q.After = page.Next; q.After == "" {
			return got
		}
	}
}

// attributeCases are about values that instances are found by.
var attributeCases = map[string]func(*testCase){
	"an attribute is replaced, taken away, and goes with its instance": func(k *testCase) {
		values := k.attributes("a", `amount = 1.50 and who = "Ünal"`, `due = 2026-02-01T10:00:00+01:00`, `vip = true and empty = ""`)
		c := turn("a", 1)
		c.Rows.Attributes = values
		k.commit(c)
		got, err := k.s.Instances.Attributes(k.ctx, "a")
		k.ok(err)
		slices.SortFunc(values, func(a, b projections.Attribute) int { return strings.Compare(a.Name, b.Name) })
		equal(k, got, values)
		equal(k, got[0].Value, "1.5")
		equal(k, got[1].Value, "2026-02-01T09:00:00Z")

		next := turn("a", 2)
		next.Rows.Instance = nil // a row that people see need not change with them
		next.Rows.Attributes = append(k.attributes("a", `amount = -7 and new = 1`), projections.Attribute{InstanceID: "a", Name: "who"}, projections.Attribute{InstanceID: "a", Name: "never"})
		k.commit(next)
		got, err = k.s.Instances.Attributes(k.ctx, "a")
		k.ok(err)
		names := ""
		for _, a := range got {
			names += a.Name + "=" + a.Value + " "
		}
		equal(k, names, "amount=-7 due=2026-02-01T09:00:00Z empty= new=1 vip=true ")

		stale := turn("a", 2)
		stale.Rows.Attributes = k.attributes("a", "amount = 99")
		if err := k.s.Writer.Commit(k.ctx, stale); err == nil {
			k.Error("a stale change was committed")
		}
		equal(k, k.ids(backend.InstanceQuery{Where: k.where("amount = -7")}), []string{"a"})

		last := turn("a", 3)
		last.Snapshot.Status, last.Rows.Instance.Status, last.Rows.Instance.EndedAt = "completed", "completed", at
		last.Encoded = encode(last.Snapshot)
		k.commit(last)
		if k.s.Retention == nil { // a part that a store may lack
			return
		}
		n, err := k.s.Retention.Purge(k.ctx, at.Add(time.Hour), 10)
		k.ok(err)
		equal(k, n, 1)
		got, err = k.s.Instances.Attributes(k.ctx, "a")
		k.ok(err)
		equal(k, len(got), 0)
	},
	"instances are found by attributes alike on every store": func(k *testCase) {
		for i, values := range []string{
			`amount = 1000`, `amount = 1000.0000000000000000000000000000000001`, `amount = 999.99 and who = "ann"`, `amount = -3 and who = "bob"`,
			`amount = -3.5 and who = "Ann"`, `amount = 0 and who = "anna"`, `amount = 1e20 and vip = true`, `amount = 1e-20 and vip = false`,
			`amount = "1000" and who = "ä"`, `due = 2026-01-31T00:00:00.000001Z`, `due = 2026-01-31`, `due = 1969-12-31`,
		} {
			k.attributed(fmt.Sprintf("i-%02d", i), values)
		}
		for text, want := range map[string]string{
			`amount = 1000`:                   "00",
			`amount = 1000.0`:                 "00",
			`amount > 1000`:                   "06 01",
			`amount >= 1000`:                  "06 01 00",
			`amount < 0`:                      "04 03",
			`amount < -3`:                     "04",
			`amount <= -3 and amount >= -3.5`: "04 03",
			`amount > 0 and amount < 1`:       "07",
			`amount != 1000`:                  "07 06 05 04 03 02 01",
			`amount in (0, -3, 7)`:            "05 03",
			`amount = "1000"`:                 "08",
			`amount startsWith "10"`:          "08",
			`who startsWith "ann"`:            "05 02",
			`who > "a" and who < "b"`:         "05 02",
			`who > "b"`:                       "08 03",
			`who = "ä"`:                       "08",
			`who = "' or '1' = '1"`:           "",
			`who in ("x'); delete from WF_STATES", "bob")`: "03",
			`vip = true`:                                      "06",
			`vip != true`:                                     "07",
			`due > 2026-01-31`:                                "09",
			`due < 1970-01-01T00:00:00Z`:                      "11",
			`due >= 2026-01-31T01:00:00+01:00`:                "10 09",
			`who = "ann" and amount > 999`:                    "02",
			`state = "review" and vip = true`:                 "06",
			`state startsWith "re" and vip = true`:            "06",
			`state != "review"`:                               "",
			`status in ("waiting", "x") and due = 2026-01-31`: "10",
			`businessKey = "b"`:                               "",
			`startedAt <= 2026-02-03T04:05:06.789012Z and due = 2026-01-31`: "10",
			`startedAt < 2026-02-03T04:05:06.789012Z`:                       "",
			`none = 1`: "",
		} {
			var ids []string
			for _, n := range strings.Fields(want) {
				ids = append(ids, "i-"+n)
			}
			got := k.ids(backend.InstanceQuery{Where: k.where(text), Limit: 3})
			slices.Sort(ids)
			slices.Sort(got)
			if !slices.Equal(got, ids) {
				k.Errorf("%s finds %v, want %v", text, got, ids)
			}
		}
	},
	"a list is in the order of an attribute, page by page": func(k *testCase) {
		for i, amount := range []string{"10", "9", "-1", "-10", "0", "9.5", "9", "9"} {
			k.attributed(fmt.Sprintf("i-%d", i), "amount = "+amount)
		}
		k.attributed("none", `who = "ann"`)
		for limit := range 4 {
			up := k.ids(backend.InstanceQuery{OrderBy: "amount", Limit: limit + 1})
			equal(k, len(up), 8)
			equal(k, up[:3], []string{"i-3", "i-2", "i-4"})
			equal(k, up[6:], []string{"i-5", "i-0"})
			ties := slices.Sorted(slices.Values(up[3:6]))
			equal(k, ties, []string{"i-1", "i-6", "i-7"})
			down := k.ids(backend.InstanceQuery{OrderBy: "amount", Descending: true, Limit: limit + 1})
			slices.Reverse(down)
			equal(k, down, up)
		}
		equal(k, k.ids(backend.InstanceQuery{OrderBy: "amount", Where: k.where("amount < 9 and amount > -5"), Definition: "default/d", Limit: 1}), []string{"i-2", "i-4"})
		equal(k, len(k.ids(backend.InstanceQuery{OrderBy: "never"})), 0)
		for _, after := range []string{"x", "zz.1", "64", "64.", ".1"} {
			if _, err := k.s.Instances.Instances(k.ctx, backend.InstanceQuery{OrderBy: "amount", After: after}); problem.CodeOf(err) != "page.invalid" {
				k.Errorf("after %q: %v", after, err)
			}
		}
	},
}
