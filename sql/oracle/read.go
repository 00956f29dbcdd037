package oracle

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
)

// reading builds one bounded select: a head from query/, conditions, an order.
type reading struct {
	text strings.Builder
	args []any
	and  bool
}

func read(name string, args ...any) *reading {
	r := &reading{args: args}
	r.text.WriteString(text(name))
	return r
}

// where adds a condition; each ? in it is the bind of the next argument.
func (r *reading) where(condition string, args ...any) {
	if r.and {
		r.text.WriteString(" and ")
	} else {
		r.text.WriteString("\nwhere ")
	}
	r.and = true
	r.bind(condition, args)
}

func (r *reading) bind(part string, args []any) {
	for _, a := range args {
		before, after, _ := strings.Cut(part, "?")
		r.args = append(r.args, a)
		r.text.WriteString(before + ":" + strconv.Itoa(len(r.args)))
		part = after
	}
	r.text.WriteString(part)
}

// equals adds a condition unless value is empty.
func (r *reading) equals(column, value string) {
	if value != "" {
		r.where(column+" = ?", value)
	}
}

func (r *reading) order(by string, limit int) {
	r.bind("\norder by "+by+" fetch first ? rows only", []any{limit})
}

// bounded gives a list its limit.
func bounded(limit int) int {
	if limit <= 0 {
		return projections.DefaultLimit
	}
	return min(limit, projections.MaxLimit)
}

// list runs a reading and scans every row into the fields whose db tags are
// the names of the columns.
func list[T any](ctx context.Context, s *Store, r *reading) ([]T, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	items, err := scan[T](ctx, s, r)
	for range readTries {
		if aq.Classify(err) != aq.Reconnect || ctx.Err() != nil {
			break
		}
		items, err = scan[T](ctx, s, r) // the connection had died in the pool
	}
	return items, err
}

// readTries is how often a reading that has lost its connection is repeated:
// every connection of the pool may have died.
const readTries = 3

func scan[T any](ctx context.Context, s *Store, r *reading) ([]T, error) {
	rows, err := s.db.QueryContext(ctx, r.text.String(), r.args...)
	if err != nil {
		return nil, explain(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, explain(err)
	}
	items := []T{}
	var full projections.Measure
	for rows.Next() {
		var item T
		to, err := fields(reflect.ValueOf(&item).Elem(), columns)
		if err != nil {
			return nil, err
		}
		if err := rows.Scan(to...); err != nil {
			return nil, explain(err)
		}
		if items = append(items, item); full.With(&items[len(items)-1]) {
			break
		}
	}
	return items, explain(rows.Err())
}

// fields finds where the columns of a row go.
func fields(v reflect.Value, columns []string) ([]any, error) {
	by := map[string]any{}
	tagged(v, by)
	to := make([]any, len(columns))
	for i, name := range columns {
		p, ok := by[name]
		if !ok {
			return nil, fmt.Errorf("column %s goes to no field of %s", name, v.Type())
		}
		to[i] = into{p}
	}
	return to, nil
}

func tagged(v reflect.Value, by map[string]any) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if tag := f.Tag.Get("db"); tag != "" {
			by[tag] = v.Field(i).Addr().Interface()
		} else if f.Type.Kind() == reflect.Struct && f.Anonymous {
			tagged(v.Field(i), by)
		}
	}
}

// single is list for a reading that finds one row, or store.ErrNotFound.
func single[T any](ctx context.Context, s *Store, r *reading) (T, error) {
	var none T
	items, err := list[T](ctx, s, r)
	if err != nil {
		return none, err
	}
	if len(items) == 0 {
		return none, store.ErrNotFound
	}
	return items[0], nil
}

// page cuts a list that was asked for one row more than limit.
func page[R, T any](rows []R, limit int, item func(R) T, mark func(R) string) projections.Page[T] {
	p := projections.Page[T]{}
	if n := min(len(rows), limit); len(rows) > limit || projections.Full(rows) {
		rows = rows[:n]
		p.Next = mark(rows[n-1])
	}
	p.Items = make([]T, len(rows))
	for i, r := range rows {
		p.Items[i] = item(r)
	}
	return p
}

// mark reads the end of a page: a number and what follows it.
func mark(after string) (int64, string, error) {
	number, rest, _ := strings.Cut(after, ".")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, "", problem.New(problem.Invalid, "page.invalid", "%.64q is not the end of a page", after)
	}
	return n, rest, nil
}

func itself[T any](v T) T { return v }

// Instance implements projections.Reader.
func (s *Store) Instance(ctx context.Context, id string) (projections.Instance, error) {
	r := read("instance_select")
	r.where("I.INSTANCE_ID = ?", id)
	i, err := single[projections.Instance](ctx, s, r)
	return i, wrap("instance "+id, err)
}

// Instances implements projections.Reader. Of equal starts the larger id comes
// first.
func (s *Store) Instances(ctx context.Context, q projections.InstanceQuery) (projections.Page[projections.Instance], error) {
	none := projections.Page[projections.Instance]{}
	r, limit := read("instance_select"), bounded(q.Limit)
	r.equals("I.DEFINITION", q.Definition)
	r.equals("I.STATUS", q.Status)
	r.equals("I.BUSINESS_KEY", q.BusinessKey)
	r.equals("I.PARENT_ID", q.ParentID)
	if q.After != "" {
		us, id, err := mark(q.After)
		if err != nil {
			return none, wrap("instances", err)
		}
		at := time.UnixMicro(us).UTC()
		r.where("(I.STARTED_ON_UTC < CAST(? AS TIMESTAMP(6)) or I.STARTED_ON_UTC = CAST(? AS TIMESTAMP(6)) and I.INSTANCE_ID < ?)", at, at, id)
	}
	r.order("I.STARTED_ON_UTC desc, I.INSTANCE_ID desc", limit+1)
	rows, err := list[projections.Instance](ctx, s, r)
	next := func(i projections.Instance) string { return fmt.Sprintf("%d.%s", i.StartedAt.UnixMicro(), i.ID) }
	return page(rows, limit, itself, next), wrap("instances", err)
}

// Started implements projections.Reader.
func (s *Store) Started(ctx context.Context, definition, businessKey, startKey string) (projections.Instance, error) {
	r := read("instance_select")
	r.where("I.START_DIGEST = ?", startDigest(definition, businessKey, startKey))
	i, err := single[projections.Instance](ctx, s, r)
	return i, wrap("start key "+startKey, err)
}

// entryRow is an entry with its checksum.
type entryRow struct {
	Sum int64 `db:"CHECKSUM"`
	projections.Entry
}

// entries runs a reading of entries, and checks each.
func (s *Store) entries(ctx context.Context, r *reading) ([]projections.Entry, error) {
	rows, err := list[entryRow](ctx, s, r)
	if err != nil {
		return nil, err
	}
	items := make([]projections.Entry, len(rows))
	for i := range rows {
		items[i] = rows[i].Entry
		if err := items[i].Check(items[i].Data, rows[i].Sum); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// Stream implements projections.Reader.
func (s *Store) Stream(ctx context.Context, id string, after int64, limit int) ([]projections.Entry, error) {
	r := read("stream_select")
	r.where("S.INSTANCE_ID = ?", id)
	r.where("S.POSITION > ?", after)
	r.order("S.POSITION", bounded(limit))
	items, err := s.entries(ctx, r)
	return items, wrap("stream of "+id, err)
}

// Recorded implements projections.Reader.
func (s *Store) Recorded(ctx context.Context, id, signalID string) (bool, error) {
	rows, err := list[struct {
		ID string `db:"SIGNAL_ID"`
	}](ctx, s, read("stream_recorded", id, signalID))
	return len(rows) > 0, wrap("signal "+signalID+" of "+id, err)
}

// pendingKey is the expression of the index on unprocessed commands.
const (
	pendingKey      = "(CASE WHEN PROCESSED = 0 THEN INSTANCE_ID END)"
	pendingPosition = "(CASE WHEN PROCESSED = 0 THEN POSITION END)"
)

// Pending implements projections.Reader.
func (s *Store) Pending(ctx context.Context, id string, limit int) ([]projections.Entry, error) {
	r := read("stream_select")
	if id != "" {
		r.where(pendingKey+" = ?", id)
	} else {
		r.where(pendingKey + " is not null")
	}
	r.order(pendingKey+", "+pendingPosition, bounded(limit))
	items, err := s.entries(ctx, r)
	return items, wrap("pending", err)
}

// WaitSpecs implements projections.Reader.
func (s *Store) WaitSpecs(ctx context.Context, eventType string) ([]string, error) {
	rows, err := list[struct {
		Spec string `db:"SPEC"`
	}](ctx, s, read("wait_specs", eventType, projections.MaxCount))
	specs := make([]string, len(rows))
	for i, r := range rows {
		specs[i] = r.Spec
	}
	return specs, wrap("specs of "+eventType, err)
}

// Waits implements projections.Reader.
func (s *Store) Waits(ctx context.Context, eventType, spec, keyHash, after string, limit int) ([]projections.Wait, error) {
	r := read("wait_select")
	r.where("W.EVENT_TYPE = ?", eventType)
	r.where("W.SPEC = ?", spec)
	if keyHash == "" {
		r.where("W.KEY_HASH is null")
	} else {
		r.where("W.KEY_HASH = ?", keyHash)
	}
	if after != "" {
		r.where("W.WAITING_TOKEN > ?", after)
	}
	r.order("W.WAITING_TOKEN", bounded(limit))
	items, err := list[projections.Wait](ctx, s, r)
	return items, wrap("waits for "+eventType, err)
}

// letterRow is a dead letter with the number that pages go by.
type letterRow struct {
	No int64 `db:"LETTER_NO"`
	projections.DeadLetter
}

func (r letterRow) letter() projections.DeadLetter { return r.DeadLetter }

// DeadLetter implements projections.Reader.
func (s *Store) DeadLetter(ctx context.Context, id string) (projections.DeadLetter, error) {
	r := read("letter_select")
	r.where("L.DEAD_LETTER_ID = ?", id)
	row, err := single[letterRow](ctx, s, r)
	return row.DeadLetter, wrap("dead letter "+id, err)
}

// DeadLetters implements projections.Reader.
func (s *Store) DeadLetters(ctx context.Context, q projections.DeadLetterQuery) (projections.Page[projections.DeadLetter], error) {
	r, limit := read("letter_select"), bounded(q.Limit)
	r.equals("L.QUEUE", q.Queue)
	r.equals("L.REASON", q.Reason)
	r.equals("L.INSTANCE_ID", q.InstanceID)
	if q.After != "" {
		n, _, err := mark(q.After)
		if err != nil {
			return projections.Page[projections.DeadLetter]{}, wrap("dead letters", err)
		}
		r.where("L.LETTER_NO < ?", n)
	}
	r.order("L.LETTER_NO desc", limit+1)
	rows, err := list[letterRow](ctx, s, r)
	return page(rows, limit, letterRow.letter, func(r letterRow) string { return strconv.FormatInt(r.No, 10) }), wrap("dead letters", err)
}

// Gaps implements projections.Reader.
func (s *Store) Gaps(ctx context.Context) (projections.Gaps, error) {
	gaps, err := single[projections.Gaps](ctx, s, read("gaps", projections.MaxCount))
	return gaps, wrap("gaps", err)
}

// Queues implements projections.Reader. A message that a worker holds is still
// ready in the view of the queue; what nodes say they hold is taken from that.
func (s *Store) Queues(ctx context.Context) ([]projections.Queue, error) {
	type held struct {
		Signal   int `db:"HELD_SIGNAL"`
		Schedule int `db:"HELD_SCHEDULE"`
		Command  int `db:"HELD_COMMAND"`
	}
	others, err := single[held](ctx, s, read("node_held", s.run, s.o.DeadAfter.Seconds()))
	if err != nil {
		return nil, wrap("queues", err)
	}
	queues := []projections.Queue{}
	for _, q := range []struct {
		name   store.Queue
		others int
	}{{store.Signals, others.Signal}, {store.Schedule, others.Schedule}, {store.Commands, others.Command}} {
		depth, err := single[struct {
			Ready   int       `db:"READY"`
			Delayed int       `db:"DELAYED"`
			Oldest  time.Time `db:"OLDEST_ON_UTC"`
		}](ctx, s, read("queue_"+string(q.name), projections.MaxCount))
		if err != nil {
			return nil, wrap("queues", err)
		}
		leased := min(s.heldOf(q.name)+q.others, depth.Ready)
		row := projections.Queue{Name: string(q.name), Ready: depth.Ready - leased, Delayed: depth.Delayed, Leased: leased}
		if row.Ready > 0 {
			row.OldestAt = depth.Oldest
		}
		queues = append(queues, row)
	}
	return queues, nil
}
