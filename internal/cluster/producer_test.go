package cluster

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/godror/godror"

	"github.com/aqueduct-engine/aqueduct/internal/cluster/history"
)

// producer is an application: it writes a row of its own and signals an
// instance in one transaction, and rolls back every fifth.
type producer struct {
	b     *testCluster
	name  string
	rand  *rand.Rand
	pause time.Duration // between two transactions, at most
	conn  *sql.Conn
	queue *godror.Queue

	mu       sync.Mutex
	log      []history.Signal
	instance string // the open one
	sent     int    // committed signals to it
	count    int    // of signals and instances, for names
}

// producers run until stop is called; then each gives its instance what it
// still lacks.
type producers struct {
	list []*producer
	quit chan struct{}
	done sync.WaitGroup
}

func (b *testCluster) produce(n int, seed uint64, pause time.Duration) *producers {
	all := &producers{quit: make(chan struct{})}
	for i := range n {
		p := &producer{b: b, name: fmt.Sprintf("p%d", i), rand: rand.New(rand.NewPCG(seed, uint64(i))), pause: pause}
		all.list = append(all.list, p)
		all.done.Go(func() { p.run(all.quit) })
	}
	return all
}

// stop ends the producers and returns their log.
func (all *producers) stop() []history.Signal {
	close(all.quit)
	all.done.Wait()
	return all.log()
}

func (all *producers) log() []history.Signal {
	var log []history.Signal
	for _, p := range all.list {
		p.mu.Lock()
		log = append(log, p.log...)
		p.mu.Unlock()
	}
	return log
}

// committed are the signals whose commit has been confirmed so far.
func (all *producers) committed() map[string]bool {
	ids := map[string]bool{}
	for _, s := range all.log() {
		if s.Outcome == history.Committed {
			ids[s.ID] = true
		}
	}
	return ids
}

func (p *producer) run(quit <-chan struct{}) {
	defer p.disconnect(nil)
	for {
		select {
		case <-quit:
			if p.instance == "" {
				return
			}
		default:
			time.Sleep(time.Duration(p.rand.Int64N(int64(p.pause))))
		}
		if p.conn == nil && !p.connect() {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		p.step()
	}
}

// step makes one transaction.
func (p *producer) step() {
	begins := p.instance == ""
	if begins {
		p.count++
		p.instance, p.sent = fmt.Sprintf("%s-i%d", p.name, p.count), 0
	}
	p.count++
	s := history.Signal{ID: fmt.Sprintf("%s-s%d", p.name, p.count), Instance: p.instance, How: "package"}
	if p.rand.IntN(2) == 0 {
		s.How = "raw message"
	}
	outcome, err := p.transaction(s, begins, p.rand.IntN(5) == 0)
	if err != nil {
		p.disconnect(err)
	}
	s.Outcome = outcome
	p.mu.Lock()
	p.log = append(p.log, s)
	p.mu.Unlock()
	counts := outcome == history.Committed || outcome == history.Unknown && p.arrived(s.ID)
	if counts {
		p.sent++
	}
	if !counts && begins || p.sent == ticks {
		p.instance = ""
	}
}

// transaction writes the row, starts the instance if need be, and signals. Its
// error means that the connection is of no use any more.
func (p *producer) transaction(s history.Signal, begins, rollback bool) (history.Outcome, error) {
	ctx := context.Background() // the driver leaves a deadline's time limit behind
	tx, err := p.conn.BeginTx(ctx, nil)
	if err != nil {
		return history.RolledBack, err
	}
	_, err = tx.Exec("insert into TEST_ORDERS (ORDER_ID, INSTANCE_ID) values (:1, :2)", s.ID, s.Instance)
	if err == nil && begins {
		_, err = tx.Exec("DECLARE V RAW(16); BEGIN V := AQUEDUCT_API.START_INSTANCE(p_definition => :1, p_instance_id => :2, p_input => '{}'); END;",
			"cluster/tally", s.Instance)
	}
	if err == nil {
		err = p.signal(tx, s)
	}
	if err != nil || rollback {
		return history.RolledBack, errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return history.Unknown, err
	}
	return history.Committed, nil
}

// signal sends within the transaction, in one of the two ways.
func (p *producer) signal(tx *sql.Tx, s history.Signal) error {
	if s.How == "package" {
		data, err := json.Marshal(s.ID)
		if err != nil {
			return err
		}
		_, err = tx.Exec("DECLARE V RAW(16); BEGIN V := AQUEDUCT_API.SIGNAL(p_instance_id => :1, p_type => 'tick', p_data => :2, p_signal_id => :3); END;",
			s.Instance, string(data), s.ID)
		return err
	}
	body, err := json.Marshal(map[string]any{
		"signalId": s.ID, "workflowInstanceId": s.Instance, "runtimeProvider": "aqueduct", "signalType": "ExternalSignal",
		"expectedVersion": 0, "occurredAtUtc": time.Now().UTC().Format(time.RFC3339Nano),
		"payload": map[string]any{"id": s.ID, "source": "test", "type": "tick", "data": s.ID},
	})
	if err != nil {
		return err
	}
	return p.queue.Enqueue([]godror.Message{{Raw: body, Priority: 5, Expiration: -1 * time.Second, DeliveryMode: godror.DeliverPersistent}})
}

func (p *producer) connect() bool {
	conn, err := p.b.pool.Conn(context.Background())
	if err != nil {
		return false
	}
	q, err := godror.NewQueue(context.Background(), conn, "WF_SIGNAL_Q", "", godror.WithEnqOptions(godror.DefaultEnqOptions))
	if err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		_ = conn.Close()
		return false
	}
	p.conn, p.queue = conn, q
	if p.b.standIn != nil && p.rand != nil {
		// One of the next commits has an unknown outcome.
		action := []string{"cut", "cut_after", "error_after=3113"}[p.rand.IntN(3)]
		if _, err := conn.ExecContext(context.Background(), fmt.Sprintf("alter session set ocisim_fault = 'commit:%d:%s'", 20+p.rand.IntN(60), action)); err != nil {
			p.disconnect(err)
			return false
		}
	}
	return true
}

// disconnect gives the connection up; after an error it is dropped.
func (p *producer) disconnect(cause error) {
	if p.conn == nil {
		return
	}
	_ = p.queue.Close()
	if cause != nil {
		_ = p.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	_ = p.conn.Close()
	p.conn, p.queue = nil, nil
}

// arrived decides an unknown outcome as an application does: by its own row.
func (p *producer) arrived(id string) bool {
	for {
		if n := p.b.count("select count(*) from TEST_ORDERS where ORDER_ID = :1", id); n >= 0 {
			return n == 1
		}
		time.Sleep(50 * time.Millisecond)
	}
}
