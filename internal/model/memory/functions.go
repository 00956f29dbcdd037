package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Declare implements backend.Functions.
func (s people) Declare(ctx context.Context, targets []string) error {
	return s.update(ctx, func(*data) error {
		s.performs = slices.Clone(targets)
		return nil
	})
}

// Declared implements backend.Functions.
func (s people) Declared(ctx context.Context) ([]string, error) {
	return view(ctx, s.Store, func(*data) (all []string, err error) {
		for _, other := range s.db.live {
			all = append(all, other.performs...)
		}
		slices.Sort(all)
		return slices.Compact(all), nil
	})
}

// Unclaimed implements backend.Functions.
func (s people) Unclaimed(ctx context.Context, limit int) ([]backend.Count, error) {
	return view(ctx, s.Store, func(t *data) (found []backend.Count, err error) {
		counts := map[string]int{}
		for _, stream := range t.streams {
			for _, e := range stream {
				var c struct {
					Target string `json:"target"`
				}
				if !open(e) || e.ClaimedBy != "" || limit == 0 {
					continue
				}
				_ = json.Unmarshal(e.Data, &c) // one that is damaged is for no target
				counts[c.Target]++
				limit--
			}
		}
		for target, n := range counts {
			found = append(found, backend.Count{What: backend.CountUnclaimed, Name: target, Rows: n})
		}
		slices.SortFunc(found, func(a, b backend.Count) int { return cmp.Compare(a.Name, b.Name) })
		return found, nil
	})
}
