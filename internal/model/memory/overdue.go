package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Overdue implements backend.Overdue.
func (s *Store) Overdue(ctx context.Context, before time.Time, after string, limit int) (backend.Page[string], error) {
	type due struct {
		id string
		at time.Time
	}
	return view(ctx, s, func(t *data) (p backend.Page[string], err error) {
		var list []due
		for id, raw := range t.snapshots {
			if !raw.due.IsZero() && raw.due.Before(before) {
				list = append(list, due{id, raw.due})
			}
		}
		slices.SortFunc(list, func(a, b due) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id)) })
		list = list[1+slices.IndexFunc(list, func(d due) bool { return d.id == after }):]
		if len(list) > limit {
			list, p.Next = list[:limit], list[limit-1].id
		}
		for _, d := range list {
			p.Items = append(p.Items, d.id)
		}
		return p, nil
	})
}

// Sent implements backend.Overdue.
func (s *Store) Sent(ctx context.Context, tokens []string, _ time.Time) ([]string, error) {
	return view(ctx, s, func(t *data) (sent []string, err error) {
		for _, m := range t.messages {
			var names struct {
				Token   string `json:"waitingToken"`
				Payload struct {
					Tokens []string `json:"tokens"`
				} `json:"payload"`
			}
			if m.Queue == store.Commands || jsonv2.Unmarshal(m.Body, &names) != nil {
				continue
			}
			for _, token := range append(names.Payload.Tokens, names.Token) {
				if slices.Contains(tokens, token) && !slices.Contains(sent, token) {
					sent = append(sent, token)
				}
			}
		}
		return sent, nil
	})
}
