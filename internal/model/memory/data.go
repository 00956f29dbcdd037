package memory

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// data is the whole database. Its values are never changed, only replaced, so
// that a copy of the maps is a copy of everything.
type data struct {
	now             time.Time // of the change under way
	last            int64     // number given last
	snapshots       map[string]stored
	instances       map[string]numbered[projections.Instance]
	streams         map[string][]entry // by instance, in order of position
	tasks           map[string]numbered[projections.Task]
	events          map[string][]projections.TaskEvent          // by task
	waits           map[string]projections.Wait                 // by token
	attributes      map[string]map[string]projections.Attribute // by instance and name
	deadLetters     map[string]numbered[projections.DeadLetter]
	deadLetterEdits map[string][]backend.DeadLetterEdit // in order, from number 0
	notices         []backend.Notice
	audit           []store.Audit                  // in the order of the commits
	settings        backend.Recorded               // never changed
	tokens          map[string]backend.Token       // by id
	activities      map[[2]string]backend.Activity // by instance and id
	plans           map[string]plan
	messages        map[int64]message
	inbox           map[string]backend.Event
	locks           map[string]lock
	records         []definition.Record // in the order of publication
}

type stored struct {
	raw     []byte
	sum     uint32
	version int64
	due     time.Time
}

// numbered is a row with the order in which it was made.
type numbered[T any] struct {
	no  int64
	row T
}

type entry struct {
	projections.Entry
	run string // of the node that has claimed it
}

type message struct {
	store.Message
	no     int64
	leased string // run; "" = nobody
}

type lock struct {
	owner string
	until time.Time
}

func (t *data) clone() *data {
	c := *t
	c.snapshots, c.instances, c.streams = maps.Clone(t.snapshots), maps.Clone(t.instances), maps.Clone(t.streams)
	c.attributes = maps.Clone(t.attributes)
	c.tasks, c.events, c.waits = maps.Clone(t.tasks), maps.Clone(t.events), maps.Clone(t.waits)
	c.tokens, c.activities, c.plans = maps.Clone(t.tokens), maps.Clone(t.activities), maps.Clone(t.plans)
	c.deadLetterEdits = maps.Clone(t.deadLetterEdits)
	c.deadLetters, c.messages, c.inbox, c.locks = maps.Clone(t.deadLetters), maps.Clone(t.messages), maps.Clone(t.inbox), maps.Clone(t.locks)
	return &c
}

func (t *data) number() int64 {
	t.last++
	return t.last
}

// micros is a time as databases keep it.
func micros(at time.Time) time.Time {
	if at.IsZero() {
		return time.Time{}
	}
	return at.UTC().Truncate(time.Microsecond)
}

// bytes is a copy; none is null.
func bytes(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return slices.Clone(b)
}

func open(e entry) bool { return e.Processed != nil && !*e.Processed }

// replace puts an entry of a stream in the place of another.
func (t *data) replace(id string, i int, e entry) {
	t.streams[id] = slices.Clone(t.streams[id])
	t.streams[id][i] = e
}

// find is where a stream has a position.
func (t *data) find(id string, position int64) (int, bool) {
	i := slices.IndexFunc(t.streams[id], func(e entry) bool { return e.Position == position })
	return i, i >= 0
}

// apply makes a change, or refuses it.
func (t *data) apply(s *Store, d *delivery, c *store.Change) error {
	if err := rows.Fit(c); err != nil {
		return err
	}
	id, err := t.snapshot(c)
	if err != nil {
		return err
	}
	if err := t.guards(s, id, c); err != nil {
		return err
	}
	if p := c.Rows.Policy; p != nil && slices.ContainsFunc(t.records, func(r definition.Record) bool { return r.Name == p.Name && r.Ordinal > p.Ordinal }) {
		return store.ErrStale
	}
	if err := t.rows(s, id, &c.Rows); err != nil {
		return err
	}
	if c.Definition != nil {
		if err := t.publish(c.Definition); err != nil {
			return err
		}
	}
	t.noteAudit(c.Audit)
	for i := range c.With {
		if err := t.apply(s, nil, &c.With[i]); err != nil {
			return err
		}
	}
	if c.DeadLetter != nil {
		if err := t.deadLetter(d, *c.DeadLetter); err != nil {
			return err
		}
	}
	if d != nil {
		delete(t.messages, d.m.no)
	}
	for _, m := range c.Send {
		t.send(m)
	}
	return nil
}

// snapshot writes the snapshot, and says which instance the change is about.
func (t *data) snapshot(c *store.Change) (string, error) {
	s, r := c.Snapshot, &c.Rows
	if s == nil {
		id := ""
		switch {
		case r.Instance != nil:
			id = r.Instance.ID
		case len(r.Stream) > 0:
			id = r.Stream[0].InstanceID
		case len(r.Waits) > 0:
			id = r.Waits[0].InstanceID
		case len(r.Tasks) > 0:
			id = r.Tasks[0].InstanceID
		}
		if _, ok := t.snapshots[id]; id != "" && !ok {
			return "", fmt.Errorf("instance %s: %w", id, store.ErrNotFound)
		}
		return id, nil
	}
	raw := c.Encoded
	if raw == nil {
		var err error
		if raw, err = s.Encode(); err != nil {
			return "", err
		}
	}
	had, ok := t.snapshots[s.InstanceID]
	switch {
	case c.Base() == 0 && ok:
		return "", fmt.Errorf("start %s: the instance exists: %w", s.InstanceID, store.ErrDuplicate)
	case c.Base() != 0 && had.version != c.Base():
		return "", fmt.Errorf("%s is not at version %d: %w", s.InstanceID, c.Base(), store.ErrStale)
	}
	t.snapshots[s.InstanceID] = stored{raw: slices.Clone(raw), sum: crc32.ChecksumIEEE(raw), version: s.Version, due: c.Runtime.Due}
	return s.InstanceID, nil
}

// guards refuses what is not as the change expects it.
func (t *data) guards(s *Store, id string, c *store.Change) error {
	if err := t.claims(s, c.Claims, true); err != nil {
		return err
	}
	for _, done := range c.Rows.Settled {
		if id == "" {
			return unnamed()
		}
		i, ok := t.find(id, done.Position)
		if !ok || !open(t.streams[id][i]) {
			return fmt.Errorf("settle %s/%d: %w", id, done.Position, store.ErrTaken)
		}
		t.settle(id, i, done.Unknown, time.Time{})
	}
	if err := t.claims(s, c.Claims, false); err != nil {
		return err
	}
	for _, e := range c.Tasks {
		if err := t.edit(e); err != nil {
			return fmt.Errorf("task %s: %w", e.ID, err)
		}
	}
	for _, e := range c.Rows.TaskEnds {
		k, ok := t.tasks[e.ID]
		if !ok || !awaits(k.row) || e.Version != 0 && e.Version != k.row.Version {
			return fmt.Errorf("end task %s: %w", e.ID, store.ErrStale)
		}
		k.row.Status, k.row.EndedBy, k.row.EndedAt, k.row.Outcome, k.row.Output = e.Status, e.By, micros(e.At), e.Outcome, bytes(e.Output)
		k.row.Version++
		t.tasks[e.ID] = k
	}
	return nil
}

func unnamed() error {
	return problem.New(problem.Internal, "store.change", "the change has rows of an instance and does not name it")
}

func awaits(k projections.Task) bool {
	return k.Status == projections.TaskReady || k.Status == projections.TaskReserved
}

// settle ends a command; unknown says that nobody has heard what became of it.
func (t *data) settle(id string, i int, unknown bool, givenUp time.Time) {
	e := t.streams[id][i]
	done := true
	e.Unknown = unknown && (e.Unknown || e.ClaimedBy != "" && e.Attempts > 0)
	e.Processed, e.ProcessedAt, e.ClaimedBy, e.run, e.NextAttemptAt = &done, t.now, "", "", time.Time{}
	e.GivenUpAt = micros(givenUp)
	t.replace(id, i, e)
}

func (t *data) claims(s *Store, claims []store.Claim, seen bool) error {
	for _, m := range claims {
		if m.Seen != seen {
			continue
		}
		if err := t.claim(s, m); err != nil {
			return fmt.Errorf("claim %s/%d: %w", m.InstanceID, m.Position, err)
		}
	}
	return nil
}

func (t *data) claim(s *Store, m store.Claim) error {
	i, ok := t.find(m.InstanceID, m.Position)
	if !ok {
		return store.ErrTaken
	}
	e := t.streams[m.InstanceID][i]
	if !open(e) || !m.Any && e.ClaimedBy != m.Expect {
		return store.ErrTaken
	}
	if m.Done {
		t.settle(m.InstanceID, i, m.Unknown, m.GivenUp)
		return nil
	}
	if !m.ExpectNext.IsZero() && !e.NextAttemptAt.Equal(micros(m.ExpectNext)) {
		return store.ErrTaken
	}
	if m.Seen && (e.Attempts != m.Attempts || e.ClaimedBy != "" && e.Attempts > 0) {
		return store.ErrTaken
	}
	e.ClaimedBy, e.run = m.Owner, s.runOf(m.Owner)
	e.Attempts, e.NextAttemptAt, e.LastError, e.DeliveredAt, e.Deliveries = m.Attempts, micros(m.NextAt), m.Error, micros(m.Delivered), m.Deliveries
	e.Unknown, e.GivenUpAt = m.Unknown, micros(m.GivenUp)
	t.replace(m.InstanceID, i, e)
	return nil
}

// runOf is the run of a node that lives; of no other is anything known.
func (s *Store) runOf(node string) string {
	for run, other := range s.db.live {
		if other.node == node {
			return run
		}
	}
	return ""
}

func (t *data) edit(e store.TaskEdit) error {
	k, ok := t.tasks[e.ID]
	if !ok || !awaits(k.row) || k.row.Version != e.Version {
		return store.ErrStale
	}
	k.row.Status, k.row.Assignee, k.row.Role = e.Status, e.Assignee, e.Role
	k.row.Version++
	if x := e.Escalation; x != nil {
		k.row.CandidateUsers, k.row.CandidateGroups, k.row.EscalatedAt = x.CandidateUsers, x.CandidateGroups, micros(x.At)
	}
	t.tasks[e.ID] = k
	if e.Event.Event == "" {
		return nil
	}
	e.Event.TaskID = e.ID
	return t.event(e.Event)
}

func (t *data) event(e projections.TaskEvent) error {
	k, ok := t.tasks[e.TaskID]
	if !ok {
		return fmt.Errorf("event of task %s: %w", e.TaskID, store.ErrNotFound)
	}
	e.InstanceID, e.At, e.Data = k.row.InstanceID, micros(e.At), bytes(e.Data)
	t.events[e.TaskID] = append(slices.Clone(t.events[e.TaskID]), e)
	return nil
}

// rows writes the projections.
func (t *data) rows(s *Store, id string, r *projections.Rows) error {
	if r.Instance != nil {
		if err := t.instance(*r.Instance); err != nil {
			return err
		}
	}
	for _, e := range r.Stream {
		if err := t.append(s, id, e); err != nil {
			return err
		}
	}
	for _, k := range r.Tasks {
		if k.InstanceID == "" {
			k.InstanceID = id
		}
		if _, ok := t.tasks[k.ID]; ok {
			return fmt.Errorf("task %s: %w", k.ID, store.ErrDuplicate)
		}
		k.CreatedAt, k.DueAt, k.EndedAt, k.EscalatedAt = micros(k.CreatedAt), micros(k.DueAt), micros(k.EndedAt), micros(k.EscalatedAt)
		k.Payload, k.Form, k.Output = bytes(k.Payload), bytes(k.Form), bytes(k.Output)
		t.tasks[k.ID] = numbered[projections.Task]{t.number(), k}
	}
	for _, e := range r.TaskEvents {
		if err := t.event(e); err != nil {
			return err
		}
	}
	for _, token := range r.WaitsGone {
		if id == "" {
			return unnamed()
		}
		if t.waits[token].InstanceID == id {
			delete(t.waits, token)
		}
	}
	for _, w := range r.Waits {
		if w.InstanceID == "" {
			w.InstanceID = id
		}
		w.CreatedAt = micros(w.CreatedAt)
		t.waits[w.Token] = w
	}
	t.attribute(id, r.Attributes)
	return nil
}

func (t *data) instance(i projections.Instance) error {
	i.StartedAt, i.UpdatedAt, i.EndedAt = micros(i.StartedAt), micros(i.UpdatedAt), micros(i.EndedAt)
	if had, ok := t.instances[i.ID]; ok && i.Version != 1 {
		h := &had.row
		h.DefVersion, h.Status, h.Position, h.Version = i.DefVersion, i.Status, i.Position, i.Version
		h.ErrorType, h.ErrorDetail, h.UpdatedAt, h.EndedAt, h.Ahead = i.ErrorType, i.ErrorDetail, i.UpdatedAt, i.EndedAt, i.Ahead
		t.instances[i.ID] = had
		return nil
	}
	for id, other := range t.instances {
		same := i.StartKey != "" && other.row.StartKey == i.StartKey && other.row.BusinessKey == i.BusinessKey && other.row.Definition == i.Definition
		if id == i.ID || same {
			return fmt.Errorf("instance %s: %w", i.ID, store.ErrDuplicate)
		}
	}
	t.instances[i.ID] = numbered[projections.Instance]{t.number(), i}
	return nil
}

// positionsMax is how long a stream may be in any store.
const positionsMax = 1 << 24

func (t *data) append(s *Store, id string, e projections.Entry) error {
	if e.InstanceID == "" {
		e.InstanceID = id
	}
	if _, ok := t.snapshots[e.InstanceID]; !ok {
		return fmt.Errorf("instance %s: %w", e.InstanceID, store.ErrNotFound)
	}
	if e.Position < 0 || e.Position >= positionsMax {
		return problem.New(problem.TooLarge, "limit.stream", "stream position %d is not below %d", e.Position, positionsMax)
	}
	for _, other := range t.streams[e.InstanceID] {
		if other.Position == e.Position {
			return fmt.Errorf("stream position %s/%d is taken: %w", id, e.Position, store.ErrStale)
		}
		if e.SignalID != "" && other.SignalID == e.SignalID {
			return fmt.Errorf("signal %s of %s: %w", e.SignalID, id, store.ErrDuplicate)
		}
	}
	e.IsInput = false
	e.CreatedAt, e.ProcessedAt, e.NextAttemptAt, e.DeliveredAt = micros(e.CreatedAt), micros(e.ProcessedAt), micros(e.NextAttemptAt), micros(e.DeliveredAt)
	e.Data, e.Metadata = bytes(e.Data), bytes(e.Metadata)
	list := append(slices.Clone(t.streams[e.InstanceID]), entry{e, s.runOf(e.ClaimedBy)})
	slices.SortFunc(list, func(a, b entry) int { return int(a.Position - b.Position) })
	t.streams[e.InstanceID] = list
	return nil
}

// publish adds a version of a definition.
func (t *data) keep(e backend.Event) (kept bool, err error) {
	if err := rows.Fit(e); err != nil {
		return false, err
	}
	e.ReceivedAt, e.ExpiresAt, e.Body = micros(e.ReceivedAt), micros(e.ExpiresAt), slices.Clone(e.Body)
	if had, ok := t.inbox[e.Key]; ok && had.ExpiresAt.After(e.ReceivedAt) {
		return false, nil
	}
	t.inbox[e.Key] = e
	return true, nil
}

func (t *data) publish(r *store.Definition) error {
	for _, had := range t.records {
		if had.Name == r.Name && (had.Version == r.Version || had.Ordinal == r.Ordinal) {
			return fmt.Errorf("definition %s@%s: %w", r.Name, r.Version, store.ErrDuplicate)
		}
	}
	t.records = append(slices.Clone(t.records), definition.Record{
		Name: r.Name, Version: r.Version, Digest: r.Digest, Kind: r.Kind, Title: r.Title, Source: bytes(r.Source), Document: bytes(r.Document),
		PublishedAt: micros(r.PublishedAt), Ordinal: r.Ordinal,
	})
	return nil
}

// deadLetter takes the delivery's message out of circulation.
func (t *data) deadLetter(d *delivery, l projections.DeadLetter) error {
	if l.ID == "" {
		l.ID = uuid.NewString()
	}
	if d != nil {
		l.Queue, l.Priority = cmp.Or(l.Queue, string(d.m.Queue)), cmp.Or(l.Priority, d.m.Priority)
		if l.Envelope == nil {
			l.Envelope = d.m.Body
		}
	}
	if _, ok := t.deadLetters[l.ID]; ok {
		return fmt.Errorf("dead letter %s: %w", l.ID, store.ErrDuplicate)
	}
	l.Envelope = append([]byte{}, l.Envelope...)
	l.EnqueuedAt, l.DiedAt = micros(l.EnqueuedAt), micros(l.DiedAt)
	t.deadLetters[l.ID] = numbered[projections.DeadLetter]{t.number(), l}
	t.notices = append(slices.Clone(t.notices), backend.Notice{
		Ref: strconv.FormatInt(t.number(), 10), DeadLetterID: l.ID, Queue: l.Queue, InstanceID: l.InstanceID, Reason: l.Reason, Detail: l.Detail,
		Attempts: l.Attempts, Node: l.Node, DiedAt: l.DiedAt,
	})
	return nil
}

// send puts a message on its queue.
func (t *data) send(m store.Send) {
	no := t.number()
	if m.Priority == 0 {
		m.Priority = store.DefaultPriority
	}
	due := m.Due
	if !due.IsZero() { // never early
		due = due.Add(time.Microsecond - 1).UTC().Truncate(time.Microsecond)
	}
	t.messages[no] = message{no: no, Message: store.Message{
		ID: strconv.FormatInt(no, 10), Queue: m.Queue, Body: append([]byte{}, m.Body...), Priority: m.Priority, Attempts: m.Attempts, EnqueuedAt: t.now, DueAt: due,
	}}
}
