package oracle

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
)

// clock is the clock of the database: this host's, and the difference between
// them when it was last measured.
type clock struct {
	host  func() time.Time
	ahead atomic.Int64
}

func (c *clock) now() time.Time { return c.host().Add(time.Duration(c.ahead.Load())).UTC() }

// measure asks the database for the time. The answer was true about half a
// round trip ago.
func (c *clock) measure(ctx context.Context, db querier) error {
	var there time.Time
	asked := c.host()
	if err := db.QueryRowContext(ctx, text("now")).Scan(&there); err != nil {
		return err
	}
	back := c.host()
	ahead := there.Sub(asked.Add(back.Sub(asked) / 2))
	// Below what a round trip can tell, the clocks are the same.
	if ahead.Abs() <= back.Sub(asked) {
		ahead = 0
	}
	c.ahead.Store(int64(ahead))
	return nil
}

// Now implements backend.Clock.
func (s *Store) Now() time.Time { return s.clock.now() }

// Skew is how far the clock of the database is ahead of this host's.
func (s *Store) Skew() time.Duration { return time.Duration(s.clock.ahead.Load()) }

// join makes this run of the node known. A live run of the same name keeps it;
// one that is dead is waited out.
func (s member) join(ctx context.Context) error {
	until := time.Now().Add(s.o.DeadAfter + s.o.Heartbeat)
	for {
		if _, err := s.exec(ctx, "node_remove", s.o.Node, s.o.DeadAfter.Seconds()); err != nil {
			return err
		}
		_, err := s.exec(ctx, "node_insert", s.run, s.o.Node, s.o.Version)
		if err == nil || aq.Classify(err) != aq.Duplicate {
			return err
		}
		if time.Now().After(until) {
			return inUse(s.o.Node)
		}
		pause(ctx, s.o.Heartbeat/2)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func inUse(node string) *problem.Error {
	return problem.New(problem.Conflict, "store.node-in-use", "a live node has the name %q", node).
		WithHint("give every node of a database its own name")
}

// oust ends the store of a run that was silent for so long that another has its name:
// what the two claim is one node's, and none of it would be fenced.
func (s member) oust() {
	s.outlived("this node was silent for too long, and another has its name: it ends", inUse(s.o.Node))
}

// outlived ends the store of a node that is not to go on.
func (s member) outlived(why string, p *problem.Error) {
	s.ousted.Store(p)
	s.log.Error("oracle: "+why, "node", s.o.Node, "error", p)
	s.end()
}

// sameEpoch ends the store of a node that outlives a restore, which it was silent for: it remembers
// what the database has forgotten, and would give its keys and ids a second time.
func (s member) sameEpoch(ctx context.Context) error {
	known := s.epoch.Load()
	if known == 0 {
		return nil // nobody here goes by it
	}
	now, err := epochIn(ctx, s.db)
	if err != nil || now == known || s.epoch.Load() != known { // which a restore of its own raises
		return err
	}
	p := problem.New(problem.Conflict, "store.restored", "the database was restored: node %q is of epoch %d, and the database of %d", s.o.Node, known, now).
		WithHint("start the node again")
	s.outlived("the database was restored while this node ran: it ends", p)
	return p
}

// beat renews the heartbeat until the end of the store.
func (s member) beat() {
	tick, drain, idle := time.NewTicker(s.o.Heartbeat), time.NewTicker(drainEvery), time.NewTicker(s.o.Idle)
	defer tick.Stop()
	defer idle.Stop()
	defer drain.Stop()
	for {
		select {
		case <-s.life.Done():
			return
		case <-idle.C:
			s.pool.trim()
			continue
		case <-drain.C:
			if _, err := sweep(s.life, s.db, "inflight_old", "inflight_delete", crashMemory.Seconds()); err != nil && s.life.Err() == nil {
				s.log.Warn("oracle: old notes of crashes", "error", explain(err))
			}
			if n, err := (janitor(s)).Drain(s.life); err != nil && s.life.Err() == nil {
				s.log.Warn("oracle: exception queues", "error", err)
			} else if n > 0 {
				s.log.Error("oracle: messages that the database gave up are dead letters now", "count", n)
			}
			continue
		case <-tick.C:
		}
		if err := s.beatOnce(s.life); err != nil && s.life.Err() == nil {
			s.log.Warn("oracle: heartbeat", "node", s.o.Node, "error", explain(err))
		}
	}
}

// beatStatements is what one heartbeat executes: it asks for the epoch, beats, looks for
// the dead, asks for the time and for the crashes of others.
const beatStatements = 5

func (s member) beatOnce(ctx context.Context) error {
	s.beatCalls.Add(beatStatements)
	if err := s.sameEpoch(ctx); err != nil {
		return err
	}
	n, err := s.exec(ctx, "node_beat", receivers(s).heldOf(store.Signals), receivers(s).heldOf(store.Schedule), receivers(s).heldOf(store.Commands), s.run)
	if err != nil {
		return err
	}
	if n == 0 { // it was too long silent, and others have recovered what it held
		_, err := s.exec(ctx, "node_insert", s.run, s.o.Node, s.o.Version)
		if aq.Classify(err) == aq.Duplicate {
			s.oust()
		}
		if err != nil {
			return err
		}
		if err := backlog(s).again(ctx); err != nil {
			return err
		}
	}
	dead, err := sweep(ctx, s.db, "node_sweep", "node_delete", s.o.DeadAfter.Seconds(), s.run) // but for itself, however late it is
	if err != nil {
		return err
	}
	if dead > 0 {
		s.log.Info("oracle: nodes have ended", "count", dead)
		select {
		case s.failed <- struct{}{}:
		default:
		}
	}
	if err := s.clock.measure(ctx, s.db); err != nil {
		return err
	}
	return s.ledger.refresh(ctx)
}

// crashMemory is how long the note of a crash is kept when its message does
// not come again.
const crashMemory = 24 * time.Hour

// depart says that this run ends, and what it noted with it.
func (s member) depart(ctx context.Context) error {
	_, err := sweep(ctx, s.db, "inflight_clear", "inflight_delete", s.run)
	_, errNode := s.exec(ctx, "node_delete", s.run)
	return errors.Join(err, errNode)
}

// schemaVersion is what this program knows.
const schemaVersion = 2

func checkSchema(ctx context.Context, s *Store) error {
	have, err := version(ctx, s.db)
	if err != nil {
		return err
	}
	switch {
	case have == 0:
		return problem.New(problem.Unavailable, "store.schema", "the schema %s has no tables of Aqueduct", s.schema).
			WithHint("install them: engine-node migrate, or the scripts with SQL*Plus")
	case have < schemaVersion:
		return problem.New(problem.Unavailable, "store.schema", "the schema has version %d, this program needs %d", have, schemaVersion).
			WithHint("run engine-node migrate")
	case have > schemaVersion:
		return problem.New(problem.Unavailable, "store.newer", "the schema has version %d, this program knows %d", have, schemaVersion).
			WithHint("run the newer program that has migrated it")
	}
	return nil
}

// versionName is the fact in WF_META that says the version of the schema.
const versionName = "schema-version"

// version is the version of the schema, 0 for none.
func version(ctx context.Context, db querier) (int, error) {
	var raw []byte
	err := db.QueryRowContext(ctx, text("meta_value"), versionName).Scan(&rows.Into{To: &raw})
	const noTable = 942
	for _, code := range aq.Codes(err) {
		if code == noTable {
			return 0, nil
		}
	}
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil || len(raw) == 0 {
		return 0, err
	}
	return int(raw[0]), nil
}
