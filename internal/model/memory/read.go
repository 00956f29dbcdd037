package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

func bounded(limit int) int {
	if limit <= 0 {
		return projections.DefaultLimit
	}
	return min(limit, projections.MaxLimit)
}

func fits(want, got string) bool { return want == "" || want == got }

// newest is a page of what fits, the highest number first.
func newest[T any](rows map[string]numbered[T], after string, limit int, ok func(T) bool) (backend.Page[T], error) {
	p := backend.Page[T]{Items: []T{}}
	before := int64(1 << 62)
	if after != "" {
		n, err := strconv.ParseInt(after, 10, 64)
		if err != nil {
			return p, problem.New(problem.Invalid, "page.invalid", "%.64q is not the end of a page", after)
		}
		before = n
	}
	var list []numbered[T]
	for _, r := range rows {
		if r.no < before && ok(r.row) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b numbered[T]) int { return cmp.Compare(b.no, a.no) })
	if limit = bounded(limit); len(list) > limit {
		list = list[:limit]
		p.Next = strconv.FormatInt(list[limit-1].no, 10)
	}
	for _, r := range list {
		p.Items = append(p.Items, r.row)
	}
	return p, nil
}

// Instance implements backend.InstanceReader.
func (s *Store) Instance(ctx context.Context, id string) (projections.Instance, error) {
	return view(ctx, s, func(t *data) (projections.Instance, error) {
		r, ok := t.instances[id]
		if !ok {
			return r.row, fmt.Errorf("memory: instance %s: %w", id, store.ErrNotFound)
		}
		return r.row, nil
	})
}

// Instances implements backend.InstanceReader.
func (s *Store) Instances(ctx context.Context, q backend.InstanceQuery) (backend.Page[projections.Instance], error) {
	return view(ctx, s, func(t *data) (backend.Page[projections.Instance], error) {
		fit := t.fitsInstance(q)
		if q.OrderBy != "" {
			return t.ordered(q, fit)
		}
		return newest(t.instances, q.After, q.Limit, fit)
	})
}

// fitsInstance says whether an instance fits a query.
func (t *data) fitsInstance(q backend.InstanceQuery) func(projections.Instance) bool {
	return func(i projections.Instance) bool {
		return q.Scope.Has(i.Definition) && fits(q.Definition, i.Definition) && fits(q.Version, i.DefVersion) && fits(q.Status, i.Status) && fits(q.State, i.Position) &&
			fits(q.BusinessKey, i.BusinessKey) && fits(q.ParentID, i.ParentID) && (!q.Live || i.EndedAt.IsZero()) &&
			(fits(q.ErrorCode, i.ErrorType) || strings.HasSuffix(i.ErrorType, "/"+q.ErrorCode)) && strings.Contains(i.ErrorDetail, q.Text) &&
			(q.Before.IsZero() || i.UpdatedAt.Before(q.Before)) && t.where(i, q.Where)
	}
}

// Started implements backend.InstanceReader.
func (s *Store) Started(ctx context.Context, definition, businessKey, startKey string) (projections.Instance, error) {
	return view(ctx, s, func(t *data) (projections.Instance, error) {
		for _, r := range t.instances {
			if i := r.row; startKey != "" && i.StartKey == startKey && i.BusinessKey == businessKey && i.Definition == definition {
				return i, nil
			}
		}
		return projections.Instance{}, fmt.Errorf("memory: start key %s: %w", startKey, store.ErrNotFound)
	})
}

// entries is a bounded part of a stream.
func entries(list []entry, limit int, ok func(entry) bool) []projections.Entry {
	out := []projections.Entry{}
	for _, e := range list {
		if ok(e) && len(out) < bounded(limit) && !backend.Full(out) {
			out = append(out, e.Entry)
		}
	}
	return out
}

// Stream implements projections.StreamReader.
func (s *Store) Stream(ctx context.Context, id string, after int64, limit int) ([]projections.Entry, error) {
	return view(ctx, s, func(t *data) ([]projections.Entry, error) {
		return entries(t.streams[id], limit, func(e entry) bool { return e.Position > after }), nil
	})
}

// Recorded implements projections.StreamReader.
func (s *Store) Recorded(ctx context.Context, id, signalID string) (bool, error) {
	return view(ctx, s, func(t *data) (bool, error) {
		return slices.ContainsFunc(t.streams[id], func(e entry) bool { return signalID != "" && e.SignalID == signalID }), nil
	})
}

// Pending implements projections.StreamReader.
func (s *Store) Pending(ctx context.Context, id string, limit int) ([]projections.Entry, error) {
	return view(ctx, s, func(t *data) ([]projections.Entry, error) {
		var list []entry
		for _, of := range slices.Sorted(maps.Keys(t.streams)) {
			if fits(id, of) {
				list = append(list, t.streams[of]...)
			}
		}
		return entries(list, limit, open), nil
	})
}

// Received implements backend.StreamReader.
func (s *Store) Received(ctx context.Context, id, signalID string) (projections.Entry, error) {
	return view(ctx, s, func(t *data) (projections.Entry, error) {
		i := slices.IndexFunc(t.streams[id], func(e entry) bool { return signalID != "" && e.SignalID == signalID })
		if i < 0 {
			return projections.Entry{}, fmt.Errorf("memory: signal %s of %s: %w", signalID, id, store.ErrNotFound)
		}
		return t.streams[id][i].Entry, nil
	})
}

// isOf reports whether a command is of a type: that of its entry, its target or its name.
func isOf(e entry, what string) bool {
	var c struct {
		Target string `json:"target"`
		Ptr    string `json:"ptr"`
		Input  struct {
			Type string `json:"type"`
		} `json:"input"`
	}
	_ = json.Unmarshal(e.Data, &c) // what cannot be read has no name
	name := c.Ptr[strings.LastIndexByte(c.Ptr, '/')+1:]
	if name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name); e.Type == "EventEmitted" {
		name = c.Input.Type
	}
	return what == "" || what == e.Type || what == c.Target || what == name
}

// Commands implements backend.StreamReader.
func (s *Store) Commands(ctx context.Context, q backend.CommandQuery) (backend.Page[projections.Entry], error) {
	return view(ctx, s, func(t *data) (p backend.Page[projections.Entry], err error) {
		mark := func(id string, position int64) string { return fmt.Sprintf("%s\x00%020d", id, position) }
		var found []entry
		for _, of := range slices.Sorted(maps.Keys(t.streams)) {
			for _, e := range t.streams[of] {
				if q.Scope.Has(t.instances[of].row.Definition) && fits(q.InstanceID, of) && open(e) && isOf(e, q.Type) && mark(of, e.Position) > q.After && (q.Before.IsZero() || e.CreatedAt.Before(q.Before)) && strings.HasPrefix(e.LastError, q.Error) {
					found = append(found, e)
				}
			}
		}
		p.Items = entries(found, q.Limit, open)
		if n := len(p.Items); n < len(found) {
			p.Next = mark(p.Items[n-1].InstanceID, p.Items[n-1].Position)
		}
		return p, nil
	})
}

// Task implements backend.TaskReader.
func (s *Store) Task(ctx context.Context, id string) (projections.Task, error) {
	return view(ctx, s, func(t *data) (projections.Task, error) {
		r, ok := t.tasks[id]
		if !ok {
			return r.row, fmt.Errorf("memory: task %s: %w", id, store.ErrNotFound)
		}
		return r.row, nil
	})
}

// sorted are the tasks, the most urgent first, then the oldest.
func (t *data) sorted() []numbered[projections.Task] {
	return slices.SortedFunc(maps.Values(t.tasks), func(a, b numbered[projections.Task]) int {
		return cmp.Or(cmp.Compare(a.row.Priority, b.row.Priority), cmp.Compare(a.no, b.no))
	})
}

// Tasks implements backend.TaskReader.
func (s *Store) Tasks(ctx context.Context, q backend.TaskQuery) (backend.Page[projections.Task], error) {
	return view(ctx, s, func(t *data) (backend.Page[projections.Task], error) {
		p := backend.Page[projections.Task]{Items: []projections.Task{}}
		var priority int
		var no int64
		if q.After != "" {
			if _, err := fmt.Sscanf(q.After, "%d.%d", &priority, &no); err != nil {
				return p, problem.New(problem.Invalid, "page.invalid", "%.64q is not the end of a page", q.After)
			}
		}
		var last numbered[projections.Task]
		for _, r := range t.sorted() {
			k := r.row
			behind := q.After == "" || cmp.Or(cmp.Compare(k.Priority, priority), cmp.Compare(r.no, no)) > 0
			if !behind || !q.Scope.Has(k.Definition) || !inStatus(q.Status, k) || !fits(q.InstanceID, k.InstanceID) || !fits(q.Assignee, k.Assignee) || (q.User != "" || len(q.Groups) > 0) && !sees(k, q.User, q.Groups) {
				continue
			}
			if len(p.Items) == bounded(q.Limit) || backend.Full(p.Items) {
				p.Next = fmt.Sprintf("%d.%d", last.row.Priority, last.no)
				break
			}
			p.Items, last = append(p.Items, k), r
		}
		return p, nil
	})
}

func inStatus(want string, k projections.Task) bool {
	return fits(want, k.Status) || want == backend.TaskOpen && awaits(k)
}

// sees says whether a task is in the list of a person: it is theirs, or it is
// nobody's and they may claim it.
func sees(k projections.Task, user string, groups []string) bool {
	if user != "" && slices.Contains(backend.Names(k.ExcludedUsers), user) {
		return false
	}
	if k.Assignee != "" {
		return k.Assignee == user
	}
	users, allowed := backend.Names(k.CandidateUsers), backend.Names(k.CandidateGroups)
	return len(users)+len(allowed) == 0 || user != "" && slices.Contains(users, user) ||
		slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(allowed, g) })
}

// TaskEvents implements backend.TaskReader.
func (s *Store) TaskEvents(ctx context.Context, id string) ([]projections.TaskEvent, error) {
	return view(ctx, s, func(t *data) ([]projections.TaskEvent, error) {
		if _, ok := t.tasks[id]; !ok {
			return nil, fmt.Errorf("memory: events of task %s: %w", id, store.ErrNotFound)
		}
		return append([]projections.TaskEvent{}, t.events[id]...), nil
	})
}

// ClaimNext implements backend.TaskStore.
func (s *Store) ClaimNext(ctx context.Context, c backend.NextClaim) ([]projections.Task, error) {
	got := []projections.Task{}
	err := s.update(ctx, func(t *data) error {
		for _, r := range t.sorted() {
			if len(got) == c.Limit {
				break
			}
			e, ok := c.Edit(r.row)
			if !ok || !c.Scope.Has(r.row.Definition) || r.row.Status != projections.TaskReady {
				continue
			}
			if err := t.edit(e); err != nil {
				return err
			}
			got = append(got, t.tasks[r.row.ID].row)
		}
		return nil
	})
	return got, err
}

// WaitSpecs implements backend.WaitReader.
func (s *Store) WaitSpecs(ctx context.Context, eventType string) ([]string, error) {
	return view(ctx, s, func(t *data) ([]string, error) {
		list := []string{}
		for _, w := range t.waits {
			if w.EventType == eventType {
				list = append(list, w.Spec)
			}
		}
		slices.Sort(list)
		return slices.Compact(list), nil
	})
}

// Waits implements backend.WaitReader.
func (s *Store) Waits(ctx context.Context, eventType, spec, keyHash string, after projections.Wait, limit int) ([]projections.Wait, error) {
	return view(ctx, s, func(t *data) ([]projections.Wait, error) {
		list := []projections.Wait{}
		for _, token := range slices.Sorted(maps.Keys(t.waits)) {
			w := t.waits[token]
			if w.EventType == eventType && w.Spec == spec && w.KeyHash == keyHash && token > after.Token && len(list) < bounded(limit) {
				list = append(list, w)
			}
		}
		return list, nil
	})
}

// DeadLetter implements backend.DeadLetterReader.
func (s *Store) DeadLetter(ctx context.Context, id string) (projections.DeadLetter, error) {
	return view(ctx, s, func(t *data) (projections.DeadLetter, error) {
		r, ok := t.deadLetters[id]
		if !ok {
			return r.row, fmt.Errorf("memory: dead letter %s: %w", id, store.ErrNotFound)
		}
		return r.row, nil
	})
}

// DeadLetters implements backend.DeadLetterReader.
func (s *Store) DeadLetters(ctx context.Context, q backend.DeadLetterQuery) (backend.Page[projections.DeadLetter], error) {
	return view(ctx, s, func(t *data) (backend.Page[projections.DeadLetter], error) {
		return newest(t.deadLetters, q.After, q.Limit, t.fitsDeadLetter(q))
	})
}

// Reasons implements backend.BacklogReader.
func (s *Store) Reasons(ctx context.Context, q backend.DeadLetterQuery) (counts []backend.ReasonCount, more bool, err error) {
	counts, err = view(ctx, s, func(t *data) ([]backend.ReasonCount, error) {
		var found []lists.ReasonRow
		fit := t.fitsDeadLetter(q)
		for _, l := range t.deadLetters {
			if fit(l.row) {
				found = append(found, lists.ReasonRow{Reason: l.row.Reason})
			}
		}
		counts, _ := lists.Reasons(found, len(found))
		return counts, nil
	})
	return counts, false, err
}

// fitsDeadLetter says whether a dead letter fits a query.
func (t *data) fitsDeadLetter(q backend.DeadLetterQuery) func(projections.DeadLetter) bool {
	return func(l projections.DeadLetter) bool {
		return q.Scope.Has(t.instances[l.InstanceID].row.Definition) && fits(q.Queue, l.Queue) && fits(q.Reason, l.Reason) && fits(q.InstanceID, l.InstanceID) &&
			fits(q.Definition, t.instances[l.InstanceID].row.Definition) && strings.Contains(l.Detail, q.Text) && (q.Before.IsZero() || l.DiedAt.Before(q.Before))
	}
}

// Lock implements backend.Locks.
func (s *Store) Lock(ctx context.Context, name string, ttl time.Duration) (bool, error) {
	taken := errors.New("taken")
	err := s.update(ctx, func(t *data) error {
		if l, ok := t.locks[name]; ok && l.owner != s.node && l.until.After(t.now) {
			return taken
		}
		t.locks[name] = lock{s.node, t.now.Add(ttl)}
		return nil
	})
	if errors.Is(err, taken) {
		return false, nil
	}
	return err == nil, err
}

// Unlock implements backend.Locks.
func (s *Store) Unlock(ctx context.Context, name string) error {
	return s.update(ctx, func(t *data) error {
		if t.locks[name].owner == s.node {
			delete(t.locks, name)
		}
		return nil
	})
}

// PutDefinitions implements definition.Repository.
func (s *Store) PutDefinitions(ctx context.Context, records []definition.Record) (created bool, err error) {
	var c store.Change
	for _, r := range records {
		c.With = append(c.With, store.Change{Definition: &store.Definition{
			Name: r.Name, Version: r.Version, Digest: r.Digest, Kind: r.Kind, Title: r.Title, Source: r.Source, Document: r.Document,
			PublishedAt: r.PublishedAt, Ordinal: r.Ordinal,
		}})
	}
	err = s.Commit(ctx, c)
	if errors.Is(err, store.ErrDuplicate) {
		return false, nil
	}
	return err == nil, err
}

// Definition implements definition.Repository.
func (s *Store) Definition(ctx context.Context, name, version string) (definition.Record, error) {
	return view(ctx, s, func(t *data) (definition.Record, error) {
		for _, r := range t.records {
			if r.Name == name && r.Version == version {
				return r, nil
			}
		}
		return definition.Record{}, problem.Wrap(store.ErrNotFound, problem.NotFound, "definition.unknown", "definition %s@%s is not published", name, version)
	})
}

// Versions implements definition.Repository: in the order of publication.
func (s *Store) Versions(ctx context.Context, name string, after int) ([]definition.Record, error) {
	return view(ctx, s, func(t *data) ([]definition.Record, error) {
		list := []definition.Record{}
		for _, r := range t.records {
			if r.Name == name && r.Ordinal > after {
				r.Source, r.Document = nil, nil
				list = append(list, r)
			}
		}
		return list, nil
	})
}

// Definitions implements definition.Repository.
func (s *Store) Definitions(ctx context.Context, after string, limit int) ([]definition.Record, error) {
	name, version := after, ""
	if i := strings.LastIndexByte(after, '@'); i >= 0 {
		name, version = after[:i], after[i+1:]
	}
	return view(ctx, s, func(t *data) ([]definition.Record, error) {
		sorted := slices.SortedFunc(slices.Values(t.records), func(a, b definition.Record) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
		})
		list := []definition.Record{}
		for _, r := range sorted {
			if cmp.Or(cmp.Compare(r.Name, name), cmp.Compare(r.Version, version)) > 0 && len(list) < bounded(limit) &&
				strings.HasPrefix(r.Name, definition.PolicyPrefix) == strings.HasPrefix(after, definition.PolicyPrefix) {
				r.Source, r.Document = nil, nil
				list = append(list, r)
			}
		}
		return list, nil
	})
}
