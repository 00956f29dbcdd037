package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/pieces"
	"github.com/aqueduct-engine/aqueduct/store"
)

// PositionBits of an entry's number are its position in the stream.
const PositionBits = 24

// tx is the transaction that the writer has open.
type tx struct {
	w          *writer
	now        int64
	wrote      bool // since the present member began
	deliveries []*delivery
	out        outbox
}

func (t *tx) reset(w *writer) {
	clear(t.deliveries)
	*t = tx{w: w, now: w.s.micros(), deliveries: t.deliveries[:0], out: t.out}
	t.out.reset(t)
}

func (t *tx) exec(name string, args ...any) (id, changed int64, err error) {
	id, changed, err = t.w.c.Exec(name, args...)
	if changed > 0 {
		t.wrote = true
	}
	return id, changed, err
}

// guard runs a statement that must change a row, or the change is refused.
func (t *tx) guard(refusal error, name string, args ...any) error {
	_, n, err := t.exec(name, args...)
	if err == nil && n == 0 {
		return refusal
	}
	return err
}

// Commit implements store.Writer.
func (s *Store) Commit(ctx context.Context, c store.Change) error {
	return wrap("commit", s.do(ctx, func(t *tx) error { return t.change(nil, &c) }))
}

// change applies one change. Guards come first, the likeliest before the
// others, so that a refused change has normally written nothing.
func (t *tx) change(d *delivery, c *store.Change) error {
	if d != nil {
		t.deliveries = append(t.deliveries, d)
	}
	if c.Inside != nil {
		t.wrote = true
		whole, err := c.Inside(t.w.perform(Tx{t}))
		if err != nil {
			return err
		}
		c = &whole
	}
	if err := rows.Fit(c); err != nil {
		return err
	}
	if len(t.w.extras) == 0 && c.HasExtras() {
		return problem.New(problem.Internal, "store.change", "the change has tasks, waits or a definition, and the store was opened without them")
	}
	id := instanceOf(c)
	no, err := t.snapshot(c, id)
	if err != nil {
		return err
	}
	if err := t.guards(no, id, c); err != nil {
		return err
	}
	for _, x := range t.w.extras {
		if err := x.Guard(Tx{t}, c); err != nil {
			return err
		}
	}
	if d != nil {
		if err := t.guard(store.ErrLost, "message_delete", d.id, d.enq, t.w.s.nodes.no); err != nil {
			return err
		}
	}
	if err := t.also(c.Also); err != nil {
		return err
	}
	if err := t.rows(no, id, &c.Rows); err != nil {
		return err
	}
	for _, x := range t.w.extras {
		if err := x.Write(Tx{t}, no, id, c); err != nil {
			return err
		}
	}
	if c.DeadLetter != nil {
		if err := t.deadLetter(d, *c.DeadLetter); err != nil {
			return err
		}
	}
	for _, m := range c.Send {
		t.out.send(m)
	}
	for i := range c.With {
		if err := t.change(nil, &c.With[i]); err != nil {
			return err
		}
	}
	if d != nil {
		t.out.finished = append(t.out.finished, d.m.Queue)
	}
	return nil
}

// also consumes the messages of further deliveries of this node.
func (t *tx) also(messages []store.Message) error {
	for _, m := range messages {
		id, enq, ok := rowOf(m.ID)
		if !ok {
			return fmt.Errorf("message %s: %w", m.ID, store.ErrLost)
		}
		t.deliveries = append(t.deliveries, &delivery{id: id, enq: enq, m: m})
		if err := t.guard(store.ErrLost, "message_delete", id, enq, t.w.s.nodes.no); err != nil {
			return fmt.Errorf("message %s: %w", m.ID, err)
		}
		t.out.finished = append(t.out.finished, m.Queue)
	}
	return nil
}

// instanceOf returns the instance that a change is about, or "".
func instanceOf(c *store.Change) string {
	r := &c.Rows
	switch {
	case c.Snapshot != nil:
		return c.Snapshot.InstanceID
	case r.Instance != nil:
		return r.Instance.ID
	case len(r.Stream) > 0:
		return r.Stream[0].InstanceID
	case len(r.Waits) > 0:
		return r.Waits[0].InstanceID
	case len(r.Tasks) > 0:
		return r.Tasks[0].InstanceID
	}
	return ""
}

// snapshot writes the snapshot over its predecessor and returns the number of
// the instance, or just looks the number up. 0 = the change names no instance.
func (t *tx) snapshot(c *store.Change, id string) (int64, error) {
	if id == "" {
		return 0, nil
	}
	s := c.Snapshot
	if s == nil {
		return t.number(id)
	}
	encoded, err := c.Encoded, error(nil)
	if encoded == nil {
		if encoded, err = s.Encode(); err != nil {
			return 0, err
		}
	}
	sum := projections.Sum(encoded)
	next, err := t.w.cuts.Next(id, c.Base(), encoded, sum)
	if err != nil {
		return 0, err
	}
	r, task := &c.Runtime, any(nil)
	if w, ok := s.Primary(); ok {
		task = conn.Text(w.TaskID)
	}
	if c.Base() == 0 {
		return t.start(c, task, sum, next)
	}
	no, known := t.w.numbers[id]
	for {
		if !known {
			if no, err = t.number(id); err != nil {
				if errors.Is(err, store.ErrNotFound) {
					err = fmt.Errorf("%s has no version %d: %w", id, c.Base(), store.ErrStale)
				}
				return 0, err
			}
		}
		_, n, err := t.exec("state_update", s.Version, conn.Micros(r.Due), task, conn.Text(r.LastSignalID), conn.Text(r.ExecutedBy), conn.Micros(r.ExecutedAt),
			t.now, sum, next.Rest, next.Layout, no, id, c.Base(), next.Expected)
		if err != nil {
			return 0, err
		}
		if n == 1 {
			t.remember(id, no)
			return no, next.Written(no, s.Version, t.exec)
		}
		if next.Expected == nil {
			return 0, fmt.Errorf("%s is not at version %d: %w", id, c.Base(), store.ErrStale)
		}
		known = false
		next.Anew()
	}
}

// start writes the first snapshot of an instance.
func (t *tx) start(c *store.Change, task any, sum int64, next *pieces.Next) (int64, error) {
	s, r := c.Snapshot, &c.Runtime
	if i := c.Rows.Instance; i != nil && i.StartKey != "" {
		row, err := t.w.c.One("instance_started", 1, i.StartKey, i.BusinessKey, i.Definition)
		if err != nil {
			return 0, err
		}
		if row != nil {
			return 0, fmt.Errorf("start %s: start key %q has begun %v: %w", s.InstanceID, i.StartKey, row[0], store.ErrDuplicate)
		}
	}
	no, n, err := t.exec("state_insert", s.InstanceID, s.Version, conn.Micros(r.Due), task, conn.Text(r.LastSignalID), conn.Text(r.ExecutedBy),
		conn.Micros(r.ExecutedAt), t.now, t.now, sum, next.Rest, next.Layout)
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, fmt.Errorf("start %s: the instance exists: %w", s.InstanceID, store.ErrDuplicate)
	}
	t.remember(s.InstanceID, no)
	return no, next.Written(no, s.Version, t.exec)
}

// remember keeps a number for the next snapshot of its instance, which is checked against the row's own id.
func (t *tx) remember(id string, no int64) {
	m := t.w.numbers
	if len(m) >= numbersMax {
		for k := range m {
			delete(m, k)
			break
		}
	}
	m[id] = no
}

func (t *tx) number(id string) (int64, error) {
	row, err := t.w.c.One("state_number", 1, id)
	if err != nil {
		return 0, err
	}
	if row == nil {
		return 0, fmt.Errorf("instance %s: %w", id, store.ErrNotFound)
	}
	return row[0].(int64), nil
}

// guards refuses what is not as the change expects it.
func (t *tx) guards(no int64, id string, c *store.Change) error {
	if err := t.claims(c.Claims, true); err != nil {
		return err
	}
	for _, s := range c.Rows.Settled {
		entry, err := t.entry(no, s.Position)
		if err != nil {
			return err
		}
		if err := t.guard(store.ErrTaken, "stream_settle", t.now, s.Unknown, entry); err != nil {
			return fmt.Errorf("settle %s/%d: %w", id, s.Position, err)
		}
	}
	return t.claims(c.Claims, false)
}

func (t *tx) claims(claims []store.Claim, seen bool) error {
	for _, m := range claims {
		if m.Seen != seen {
			continue
		}
		if err := t.claimCommand(m); err != nil {
			return fmt.Errorf("claim %s/%d: %w", m.InstanceID, m.Position, err)
		}
	}
	return nil
}

func (t *tx) claimCommand(m store.Claim) error {
	no, err := t.number(m.InstanceID)
	if errors.Is(err, store.ErrNotFound) {
		return store.ErrTaken
	}
	if err != nil {
		return err
	}
	entry, err := t.entry(no, m.Position)
	if err != nil {
		return err
	}
	if m.Done {
		return t.guard(store.ErrTaken, "stream_done", t.now, conn.Micros(m.GivenUp), m.Unknown, entry, m.Any, m.Expect)
	}
	owner, err := t.nodeNumber(m.Owner)
	if err != nil {
		return err
	}
	return t.guard(store.ErrTaken, "stream_claim", owner, int64(m.Attempts), conn.Micros(m.NextAt), conn.Text(m.Error),
		conn.Micros(m.Delivered), int64(m.Deliveries), m.Unknown, conn.Micros(m.GivenUp), entry, conn.Micros(m.ExpectNext), m.Any, m.Expect, m.Seen, int64(m.Attempts))
}

// entry is the number of a stream entry.
func (t *tx) entry(no, position int64) (int64, error) {
	if no == 0 {
		return 0, problem.New(problem.Internal, "store.change", "the change has rows of an instance and does not name it")
	}
	if position < 0 || position >= 1<<PositionBits {
		return 0, problem.New(problem.TooLarge, "limit.stream", "stream position %d is not below %d", position, 1<<PositionBits)
	}
	return no<<PositionBits | position, nil
}

// nodeNumber returns the number for a node's name, nil for nobody.
func (t *tx) nodeNumber(name string) (any, error) {
	if name == "" {
		return nil, nil
	}
	if no, ok := t.w.nodeNos[name]; ok {
		return no, nil
	}
	row, err := t.w.c.One("node_number", 1, name)
	if err != nil {
		return nil, err
	}
	no, ok := row[0].(int64)
	if !ok {
		no, _, err = t.exec("node_insert", name, t.now)
	}
	return no, err
}

// deadLetter takes the delivery's message out of circulation.
func (t *tx) deadLetter(d *delivery, l projections.DeadLetter) error {
	if l.ID == "" {
		l.ID = uuid.NewString()
	}
	if d != nil {
		l.Queue, l.Priority = cmp.Or(l.Queue, string(d.m.Queue)), cmp.Or(l.Priority, d.m.Priority)
		if l.Envelope == nil {
			l.Envelope = d.m.Body
		}
	}
	if l.Envelope == nil {
		l.Envelope = []byte{}
	}
	_, _, err := t.exec("dead_letter_insert", l.ID, conn.Text(l.Queue), conn.Text(l.InstanceID), conn.Text(l.Reason), conn.Text(l.Detail), int64(l.Attempts),
		conn.Text(l.Node), conn.Micros(l.EnqueuedAt), conn.Micros(l.DiedAt), int64(l.Priority), l.Envelope)
	return conn.Unique(err, fmt.Errorf("dead letter %s: %w", l.ID, store.ErrDuplicate))
}

// Load implements store.Writer.
func (s *Store) Load(ctx context.Context, id string) (snapshot.Snapshot, error) {
	got, err := s.load(ctx, id)
	return got, wrap("load "+id, conn.Explain(err, s.path))
}

func (s *Store) load(ctx context.Context, id string) (snapshot.Snapshot, error) {
	s.gate.RLock() // Close waits for running calls
	defer s.gate.RUnlock()
	if s.closed {
		return snapshot.Snapshot{}, store.ErrClosed
	}
	var c *conn.Conn
	select {
	case c = <-s.loaders:
	case <-ctx.Done():
		return snapshot.Snapshot{}, ctx.Err()
	}
	row, err := c.One("state_load", 3, id)
	s.loaders <- c
	if err != nil {
		return snapshot.Snapshot{}, err
	}
	if row == nil {
		return snapshot.Snapshot{}, store.ErrNotFound
	}
	raw, _ := row[2].([]byte)
	if sum, _ := row[1].(int64); sum != projections.Sum(raw) {
		return snapshot.Snapshot{}, problem.New(problem.Internal, "snapshot.corrupt", "the snapshot does not have its checksum")
	}
	return snapshot.Decode(raw)
}
