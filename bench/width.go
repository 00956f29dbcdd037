package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// size is a workload at one of its sizes: how many workflows, of how many parts each, from
// how many callers.
type size struct{ workflows, parts, callers int }

// grows measures one thing at two sizes, each on a node of its own, and notes what a part of
// the larger costs beside one of the smaller: in time, and of processors.
func (o *Options) grows(ctx context.Context, name, part string, sizes [2]size, doc func(parts int) string, input func(parts int) any) ([]Row, error) {
	var rows []Row
	for _, s := range sizes {
		workflow := fmt.Sprintf("%s-%d", name, s.parts)
		err := o.fresh(ctx, name, []string{document(workflow, doc(s.parts))}, func(n *node, _ string) error {
			given := input(s.parts)
			one := func(int) error {
				done, err := n.launch(ctx, workflow, newID(), given)
				if err == nil {
					_, err = within(ctx, done)
				}
				return err
			}
			if err := one(0); err != nil { // fills what is kept of the definition
				return err
			}
			spent := o.spending(n.db)
			row, err := measured(workflow, s.workflows, s.callers, ownCPU, one)
			if err != nil {
				return err
			}
			spent(&row)
			row.RatePerSecond *= float64(s.parts)
			row.Note += fmt.Sprintf("; the rate is of %s, %.0f us of CPU each", part, row.CPUMicros/float64(s.parts))
			rows = append(rows, row)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	few, many := &rows[0], &rows[1]
	few1, many1 := few.CPUMicros/float64(sizes[0].parts), many.CPUMicros/float64(sizes[1].parts)
	many.Note += fmt.Sprintf("; each %.2f times the time and %.2f times the CPU of one of %d", few.RatePerSecond/many.RatePerSecond, many1/few1, sizes[0].parts)
	return rows, nil
}

func numbered(int) any { return map[string]any{"n": 1} }

// forks: branches of one call each, as many under way at once either way.
func forks(ctx context.Context, o *Options) ([]Row, error) {
	sizes := [2]size{{o.count(1_000, 20), 10, callers}, {o.count(20, 1), 1_000, 1}}
	if o.Quick {
		sizes[1].parts = 100
	}
	return o.grows(ctx, "fork", "branches", sizes, func(parts int) string {
		var list strings.Builder
		for i := range parts {
			fmt.Fprintf(&list, "          - b%d: {call: noop, with: {n: %d}}\n", i, i)
		}
		return "  - all:\n      fork:\n        branches:\n" + list.String()
	}, numbered)
}

// forEaches: calls for each of a list, some at once.
func forEaches(ctx context.Context, o *Options) ([]Row, error) {
	sizes := [2]size{{o.count(1_000, 20), 10, callers}, {o.count(20, 1), 1_000, 1}}
	return o.grows(ctx, "foreach", "calls", sizes, func(parts int) string {
		return fmt.Sprintf("  - all: {call: forEach, with: {in: '${ [range(%d)] }', call: noop}}\n", parts)
	}, numbered)
}

// rounds: a loop over a list, one call after another, one workflow at a time.
func rounds(ctx context.Context, o *Options) ([]Row, error) {
	sizes := [2]size{{o.count(20, 2), 100, 1}, {1, 10_000, 1}}
	if o.Quick {
		sizes[1].parts = 300
	}
	return o.grows(ctx, "for", "rounds", sizes, func(int) string {
		return "  - all:\n      for: {each: i, in: '${ .items }'}\n      do:\n        - one: {call: noop, with: {n: '${ $i.n }'}}\n"
	}, func(parts int) any {
		items := make([]any, parts)
		for i := range items {
			items[i] = map[string]any{"n": i}
		}
		return map[string]any{"items": items}
	})
}

// payloadCalls is how many turns a workflow of payloads has its data in.
const payloadCalls = 5

// payloads: workflows of five calls that keep large data beside.
func payloads(ctx context.Context, o *Options) ([]Row, error) {
	var rows []Row
	for _, bytes := range []int{1_000, 100_000} {
		name := fmt.Sprintf("payload-%d", bytes)
		tasks := ""
		for i := range payloadCalls {
			tasks += fmt.Sprintf("  - step%d: {call: noop, with: {n: %d}, output: {as: '${ $context + {n: %d} }'}}\n", i+1, i+1, i+1)
		}
		doc := document(name, "  - keep: {set: {kept: '${ .data }'}, export: {as: '.'}}\n"+tasks)
		var lines []any
		for size := 0; size < bytes; size += 50 {
			lines = append(lines, map[string]any{"sku": fmt.Sprintf("sku-%05d", 7919*size%100_000), "quantity": size % 7})
		}
		err := o.fresh(ctx, "payload", []string{doc}, func(n *node, _ string) error {
			spent := o.spending(n.db)
			row, err := measured(name, o.count(min(4_000, 40_000_000/bytes), 20), callers, ownCPU, func(int) error {
				done, err := n.launch(ctx, name, newID(), map[string]any{"data": lines})
				if err == nil {
					_, err = within(ctx, done)
				}
				return err
			})
			if err != nil {
				return err
			}
			spent(&row)
			row.RatePerSecond *= payloadCalls
			row.Note += "; the rate is of steps"
			if rows = append(rows, row); len(rows) > 1 {
				rows[1].Note += fmt.Sprintf("; each %.1f times the CPU of one with %d bytes", row.CPUMicros/rows[0].CPUMicros, 1_000)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// inbox: events that come before those who listen for them, and those who find them.
func inbox(ctx context.Context, o *Options) ([]Row, error) {
	keeping := *o
	keeping.eventTTL = time.Hour
	doc := document("early", "  - park: {listen: {to: {one: {with: {type: early}, correlate: {k: {from: .data.k, expect: '${ .k }'}}}}}}\n")
	kept, found := Row{}, Row{}
	err := keeping.fresh(ctx, "inbox", []string{doc}, func(n *node, _ string) error {
		ids := make([]string, o.count(1_000, 50)) // each looks at all that are kept of its type
		spent := o.spending(n.db)
		var err error
		kept, err = measured("inbox-keep", len(ids), callers, ownCPU, func(i int) error {
			ids[i] = newID()
			event, err := json.Marshal(map[string]any{"specversion": "1.0", "id": ids[i], "source": "bench", "type": "early", "data": map[string]any{"k": ids[i]}})
			if err == nil {
				_, err = n.rt.PublishEvent(ctx, event, nil)
			}
			return err
		})
		if err != nil {
			return err
		}
		spent(&kept)
		spent = o.spending(n.db)
		found, err = measured("inbox-find", len(ids), callers, ownCPU, func(i int) error {
			done, err := n.launch(ctx, "early", newID(), map[string]any{"k": ids[i]})
			if err == nil {
				_, err = within(ctx, done)
			}
			return err
		})
		spent(&found)
		return err
	})
	return []Row{kept, found}, err
}
