package oracle

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// dialect is Oracle's.
var dialect = rows.Dialect{Bind: func(n int) string { return ":" + strconv.Itoa(n) }, Limit: "fetch first ? rows only"}

func read(name string, args ...any) *rows.Select { return dialect.Select(text(name), args...) }

// list runs a reading.
func list[T any](ctx context.Context, s *Store, r *rows.Select) (items []T, err error) {
	err = fill(ctx, s, r, &items)
	return items, err
}

// fill runs a reading into the slice that items points to.
func fill(ctx context.Context, s *Store, r *rows.Select, items any) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	err := scan(ctx, s, r, items)
	for range readTries {
		if aq.Classify(err) != aq.Reconnect || ctx.Err() != nil {
			break
		}
		err = scan(ctx, s, r, items) // the connection had died in the pool
	}
	return err
}

// readTries is how often a reading that has lost its connection is repeated:
// every connection of the pool may have died.
const readTries = 3

func scan(ctx context.Context, s *Store, r *rows.Select, items any) error {
	s.readCalls.Add(1)
	return explain(r.Fill(ctx, s.db, items, projections.MaxPageBytes))
}

// single is list for a reading that finds one row, or store.ErrNotFound.
func single[T any](ctx context.Context, s *Store, r *rows.Select) (T, error) {
	items, err := list[T](ctx, s, r)
	return rows.One(items, err, store.ErrNotFound)
}

// Instance implements backend.InstanceReader.
func (s instances) Instance(ctx context.Context, id string) (projections.Instance, error) {
	r := read("instance_select")
	r.Where("I.INSTANCE_ID = ?", id)
	i, err := single[projections.Instance](ctx, s.Store, r)
	return i, wrap("instance "+id, err)
}

// Instances implements backend.InstanceReader. Of equal starts the larger id comes
// first.
func (s instances) Instances(ctx context.Context, q backend.InstanceQuery) (p backend.Page[projections.Instance], err error) {
	filter := lists.Filter{Alias: "I.", Key: "INSTANCE_ID", Time: moment, Newest: newest}
	if q.OrderBy != "" {
		return s.ordered(ctx, &q, &filter)
	}
	r, limit := read("instance_select"), projections.Bounded(q.Limit)
	filter.Where(r, &q)
	if q.After != "" {
		us, id, err := rows.Mark(q.After)
		if err != nil {
			return p, wrap("instances", err)
		}
		at := time.UnixMicro(us).UTC()
		behind(r, "I.STARTED_ON_UTC", "<", "CAST(? AS TIMESTAMP(6))", at, "I.INSTANCE_ID", id)
	}
	r.Order("I.STARTED_ON_UTC desc, I.INSTANCE_ID desc", limit+1)
	found, err := list[lists.InstanceRow](ctx, s.Store, r)
	mark := func(i lists.InstanceRow) string { return fmt.Sprintf("%d.%s", i.StartedAt.UnixMicro(), i.ID) }
	return lists.Cut(found, limit, lists.InstanceRow.Item, mark), wrap("instances", err)
}

// newest is the condition on instances that are among those at which a list looks for a text:
// the expression is that of an index.
var newest = fmt.Sprintf("CASE WHEN I.ERROR_TYPE IS NOT NULL THEN I.STARTED_ON_UTC END >= (select min(E.STARTED_ON_UTC) from ("+
	"select N.STARTED_ON_UTC from WF_INSTANCES N where CASE WHEN N.ERROR_TYPE IS NOT NULL THEN N.STARTED_ON_UTC END is not null "+
	"order by CASE WHEN N.ERROR_TYPE IS NOT NULL THEN N.STARTED_ON_UTC END desc fetch first %d rows only) E)", backend.MaxSearched)

// moment is how a moment is compared.
func moment(t time.Time) (bind string, arg any) { return "CAST(? AS TIMESTAMP(6))", stamp(t) }

// behind continues a list behind a row by its first column, with the value as it is
// bound, and its second. The condition that repeats the other is a range, which
// tells the database where in an index to begin: it makes none of an OR.
func behind(r *rows.Select, first, than, value string, at any, second string, id any) {
	r.Where(first+" "+than+"= "+value, at)
	r.Where(fmt.Sprintf("(%s %s %s or %s = %s and %s %s ?)", first, than, value, first, value, second, than), at, at, id)
}

// Started implements backend.InstanceReader.
func (s instances) Started(ctx context.Context, definition, businessKey, startKey string) (projections.Instance, error) {
	r := read("instance_select")
	r.Where("I.START_DIGEST = ?", startDigest(definition, businessKey, startKey))
	i, err := single[projections.Instance](ctx, s.Store, r)
	return i, wrap("start key "+startKey, err)
}

// NextLive implements backend.InstanceReader. What it compares is the index on instances
// that have not ended.
func (s instances) NextLive(ctx context.Context, definition, after string) (string, error) {
	r := read("instance_live")
	r.Where("CASE WHEN I.ENDED_ON_UTC IS NULL THEN I.DEFINITION END = ?", definition)
	if after != "" { // which is null here, and nothing is behind it
		r.Where("CASE WHEN I.ENDED_ON_UTC IS NULL THEN I.DEFINITION_VERSION END > ?", after)
	}
	found, err := list[lists.VersionRow](ctx, s.Store, r)
	return lists.First(found, lists.VersionRow.Item), wrap("versions of "+definition+" that live", err)
}

// entries runs a reading of entries.
func (s streams) entries(ctx context.Context, r *rows.Select) ([]projections.Entry, error) {
	found, err := list[projections.EntryRow](ctx, s.Store, r)
	return rows.Items(found, projections.EntryRow.Item), err
}

// Stream implements projections.StreamReader.
func (s streams) Stream(ctx context.Context, id string, after int64, limit int) ([]projections.Entry, error) {
	r := read("stream_select")
	behindPosition(r, id, after, limit)
	items, err := s.entries(ctx, r)
	return items, wrap("stream of "+id, err)
}

// behindPosition selects the entries of an instance behind a position, in their order.
func behindPosition(r *rows.Select, id string, after int64, limit int) {
	r.Where("S.INSTANCE_ID = ?", id)
	r.Where("S.POSITION > ?", after)
	r.Order("S.POSITION", projections.Bounded(limit))
}

// Recorded implements projections.StreamReader.
func (s streams) Recorded(ctx context.Context, id, signalID string) (bool, error) {
	found, err := list[struct {
		ID string `db:"SIGNAL_ID"`
	}](ctx, s.Store, read("stream_recorded", id, signalID))
	return len(found) > 0, wrap("signal "+signalID+" of "+id, err)
}

// Repeated implements backend.Repeats.
func (s streams) Repeated(ctx context.Context, id, signalID string) error {
	o := op{name: "stream_repeated", args: []any{id, signalID}, refuse: store.ErrNotFound}
	return wrap("repeat of "+signalID+" at "+id, runStatement(ctx, s.Store, &o))
}

// pendingKey is the expression of the index on unprocessed commands.
const (
	pendingKey      = "(CASE WHEN PROCESSED = 0 THEN INSTANCE_ID END)"
	pendingPosition = "(CASE WHEN PROCESSED = 0 THEN POSITION END)"
)

// Pending implements projections.StreamReader.
func (s streams) Pending(ctx context.Context, id string, limit int) ([]projections.Entry, error) {
	r := read("stream_select")
	if id != "" {
		r.Where(pendingKey+" = ?", id)
	} else {
		r.Where(pendingKey + " is not null")
	}
	r.Order(pendingKey+", "+pendingPosition, projections.Bounded(limit))
	items, err := s.entries(ctx, r)
	return items, wrap("pending", err)
}

// Received implements backend.StreamReader.
func (s streams) Received(ctx context.Context, id, signalID string) (projections.Entry, error) {
	r := read("stream_select")
	r.Where("(CASE WHEN S.SIGNAL_ID is not null THEN S.INSTANCE_ID END) = ?", id)
	r.Where("S.SIGNAL_ID = ?", signalID)
	row, err := single[projections.EntryRow](ctx, s.Store, r)
	return row.Item(), wrap("signal "+signalID+" of "+id, err)
}

// Commands implements backend.StreamReader.
func (s streams) Commands(ctx context.Context, q backend.CommandQuery) (backend.Page[projections.Entry], error) {
	r := read("stream_select")
	r.Where(pendingKey + " is not null")
	r.Equals(pendingKey, q.InstanceID)
	lists.OfInstanceWithin(r, "I.INSTANCE_ID = S.INSTANCE_ID", q.Scope)
	lists.CommandsWhere(r, &q, func(path string) string { return "JSON_VALUE(S.DATA FORMAT JSON, '" + path + "')" })
	if !q.Before.IsZero() {
		r.Where("S.CREATED_ON_UTC < CAST(? AS TIMESTAMP(6))", q.Before)
	}
	if q.Error != "" {
		r.Where("substr(S.LAST_ERROR, 1, length(?)) = ?", q.Error, q.Error)
	}
	if q.After != "" {
		position, id, err := rows.Mark(q.After)
		if err != nil {
			return backend.Page[projections.Entry]{}, err
		}
		behind(r, pendingKey, ">", "?", id, pendingPosition, position)
	}
	limit := projections.Bounded(q.Limit)
	r.Order(pendingKey+", "+pendingPosition, limit+1)
	found, err := list[projections.EntryRow](ctx, s.Store, r)
	return lists.Cut(found, limit, projections.EntryRow.Item, lists.CommandMark), wrap("commands", err)
}

// WaitSpecs implements backend.WaitReader.
func (s waits) WaitSpecs(ctx context.Context, eventType string) ([]string, error) {
	found, err := list[lists.SpecRow](ctx, s.Store, read("wait_specs", eventType, backend.MaxCount))
	return rows.Items(found, lists.SpecRow.Item), wrap("specs of "+eventType, err)
}

// Waits implements backend.WaitReader.
func (s waits) Waits(ctx context.Context, eventType, spec, keyHash string, after projections.Wait, limit int) ([]projections.Wait, error) {
	r := read("wait_select")
	r.Where("W.EVENT_TYPE = ?", eventType)
	r.Where("STANDARD_HASH(W.SPEC, 'SHA256') = STANDARD_HASH(?, 'SHA256')", spec) // which the index has: a spec is too long for it
	r.Where("W.SPEC = ?", spec)
	if keyHash == "" {
		r.Where("W.KEY_HASH is null")
	} else {
		r.Where("W.KEY_HASH = ?", keyHash)
	}
	if after.Token != "" {
		r.Where("W.WAITING_TOKEN > ?", after.Token)
	}
	r.Order("W.WAITING_TOKEN", projections.Bounded(limit))
	items, err := list[projections.Wait](ctx, s.Store, r)
	return items, wrap("waits for "+eventType, err)
}

// DeadLetter implements backend.DeadLetterReader.
func (s deadLetters) DeadLetter(ctx context.Context, id string) (projections.DeadLetter, error) {
	r := read("dead_letter_select")
	r.Where("L.DEAD_LETTER_ID = ?", id)
	row, err := single[lists.DeadLetterRow](ctx, s.Store, r)
	return row.DeadLetter, wrap("dead letter "+id, err)
}

// DeadLetters implements backend.DeadLetterReader.
func (s deadLetters) DeadLetters(ctx context.Context, q backend.DeadLetterQuery) (p backend.Page[projections.DeadLetter], err error) {
	r, limit := read("dead_letter_select"), projections.Bounded(q.Limit)
	(&lists.Filter{Alias: "L.", Time: moment}).DeadLetters(r, &q, definitionOfDeadLetter)
	lists.OfInstanceWithin(r, "I.INSTANCE_ID = L.INSTANCE_ID", q.Scope)
	if err := r.Behind("L.LETTER_NO", q.After); err != nil {
		return p, wrap("dead letters", err)
	}
	r.Order("L.LETTER_NO desc", limit+1)
	found, err := list[lists.DeadLetterRow](ctx, s.Store, r)
	return lists.Cut(found, limit, lists.DeadLetterRow.Item, lists.DeadLetterRow.Mark), wrap("dead letters", err)
}

// Reasons implements backend.BacklogReader.
func (s backlog) Reasons(ctx context.Context, q backend.DeadLetterQuery) ([]backend.ReasonCount, bool, error) {
	r := read("dead_letter_reasons")
	(&lists.Filter{Alias: "L.", Time: moment}).DeadLetters(r, &q, definitionOfDeadLetter)
	lists.OfInstanceWithin(r, "I.INSTANCE_ID = L.INSTANCE_ID", q.Scope)
	r.Order("L.LETTER_NO desc", backend.MaxCount+1)
	found, err := list[lists.ReasonRow](ctx, s.Store, r)
	counts, more := lists.Reasons(found, backend.MaxCount)
	return counts, more, wrap("dead letters", err)
}

// definitionOfDeadLetter is that of its instance, where that is there.
const definitionOfDeadLetter = "(select I.DEFINITION from WF_INSTANCES I where I.INSTANCE_ID = L.INSTANCE_ID)"

// Gaps implements backend.BacklogReader.
func (s backlog) Gaps(ctx context.Context) (backend.Gaps, error) {
	gaps, err := single[backend.Gaps](ctx, s.Store, read("gaps", backend.MaxCount))
	return gaps, wrap("gaps", err)
}

// countedRows is how many kinds of rows a statement counts, each with a bind of its own.
const countedRows = 7

// Counts implements backend.BacklogReader.
func (s backlog) Counts(ctx context.Context) ([]backend.Count, error) {
	counts, err := list[backend.Count](ctx, s.Store, read("open_counts", slices.Repeat([]any{backend.MaxOpen}, countedRows)...))
	return counts, wrap("counts", err)
}

// Members implements backend.NodeReader.
func (s backlog) Members(ctx context.Context) ([]backend.Node, error) {
	nodes, err := list[backend.Node](ctx, s.Store, read("node_members", projections.MaxLimit))
	return nodes, wrap("nodes", err)
}

// Queues implements backend.BacklogReader. A message that a worker holds is still
// ready in the view of the queue; what nodes say they hold is taken from that. One
// statement counts all: what becomes ready meanwhile, or goes from one queue to another, is
// counted once.
func (s backlog) Queues(ctx context.Context) ([]backend.Queue, error) {
	type held struct {
		Signal   int `db:"HELD_SIGNAL"`
		Schedule int `db:"HELD_SCHEDULE"`
		Command  int `db:"HELD_COMMAND"`
	}
	others, err := single[held](ctx, s.Store, read("node_held", s.run, s.o.DeadAfter.Seconds()))
	if err != nil {
		return nil, wrap("queues", err)
	}
	depths, err := list[struct {
		Queue   string    `db:"QUEUE"`
		Ready   int       `db:"READY"`
		Delayed int       `db:"DELAYED"`
		Oldest  time.Time `db:"OLDEST_ON_UTC"`
	}](ctx, s.Store, read("queues", backend.MaxCount, backend.MaxCount, backend.MaxCount))
	if err != nil {
		return nil, wrap("queues", err)
	}
	elsewhere := map[store.Queue]int{store.Signals: others.Signal, store.Schedule: others.Schedule, store.Commands: others.Command}
	queues := []backend.Queue{}
	for _, q := range depths {
		name := store.Queue(q.Queue)
		leased := min(receivers(s).heldOf(name)+elsewhere[name], q.Ready)
		row := backend.Queue{Name: q.Queue, Ready: q.Ready - leased, Delayed: q.Delayed, Leased: leased}
		if row.Ready > 0 {
			row.OldestAt = q.Oldest
		}
		queues = append(queues, row)
	}
	return queues, nil
}
