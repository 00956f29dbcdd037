package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Dead letters are told of: in the log, in the metrics, and to the sink where that is
// wanted, whoever has made them. One node does it at a time. It removes a notice when
// it has told of its letter, so that a letter is told of at least once, and again only
// when a node ends in between.

const (
	tellLock  = "notices"
	tellTTL   = 20 * time.Second
	tellWait  = tellTTL / 2 // for a notice, or for another node to end
	tellLeave = 5 * time.Second
)

// deadLetterType is the type of the CloudEvent about a dead letter.
const deadLetterType = "io.aqueduct.dead-letter.v1"

// deadLetterSource is the source of these events.
var deadLetterSource = engine.EventSource("dead-letters")

// noticeMetrics counts what is told.
type noticeMetrics struct {
	told   *prometheus.CounterVec
	failed prometheus.Counter
}

func newNoticeMetrics() *noticeMetrics {
	return &noticeMetrics{
		told: counters("aqueduct_dead_letters_told_total", "Dead letters of the database that this node has told of, whoever has made them.", "queue", append(queueLabels, noQueue)...),
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "aqueduct_dead_letters_untold_total", Help: "Attempts to tell of a dead letter that have failed.",
		}),
	}
}

func (m *noticeMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.told, m.failed}
}

// deadLetterPublisher tells of dead letters.
type deadLetterPublisher struct {
	*jobs
	done string // notice that was told of, and may be there still
	last bool   // this node has the lock
}

// tell tells of dead letters until ctx ends.
func (j *jobs) tell(ctx context.Context) error {
	if j.Store.Notices == nil || j.Store.Locks == nil {
		return nil
	}
	t := &deadLetterPublisher{jobs: j}
	for failures := 0; ctx.Err() == nil; {
		err := t.next(ctx)
		if err == nil || ctx.Err() != nil {
			failures = 0
			continue
		}
		failures++
		j.notices.failed.Inc()
		delay := j.retries.Backoff(failures, tellLock)
		j.Log.Error("dead letters could not be told of", "error", err, "again", delay)
		sleep(ctx, delay)
	}
	if !t.last {
		return nil
	}
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellLeave)
	defer cancel()
	return j.Store.Locks.Unlock(leaving, tellLock) // another goes on at once, not when the lock ends
}

// next tells of the next dead letter, if one comes, or waits for the node that does.
func (t *deadLetterPublisher) next(ctx context.Context) error {
	mine, err := t.Store.Locks.Lock(ctx, tellLock, tellTTL)
	if err != nil {
		return err
	}
	if t.last = mine; !mine {
		sleep(ctx, tellWait)
		return nil
	}
	n, err := t.Store.Notices.Next(ctx, tellWait)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if n.Ref != t.done {
		if err := t.publish(ctx, &n); err != nil {
			return err
		}
		t.Log.Warn("a dead letter waits for an operator", "letter", n.DeadLetterID, "queue", n.Queue, "instance", n.InstanceID, "reason", n.Reason,
			"node", n.Node, "died", n.DiedAt)
		t.notices.told.WithLabelValues(queueLabel(n.Queue)).Inc()
		t.done = n.Ref
	}
	return t.Store.Notices.Told(ctx, n)
}

// queueLabels are the queues, as labels; noQueue is that of a letter that is of none.
var queueLabels = []string{string(store.Signals), string(store.Schedule), string(store.Commands)}

const noQueue = "none"

// queueLabel keeps the label to a closed set: who may send to the queue of notices
// says what he likes.
func queueLabel(queue string) string {
	switch q := store.Queue(queue); q {
	case store.Signals, store.Schedule, store.Commands:
		return queue
	}
	return noQueue
}

// publish has the sink told. What it refuses for good is passed over: the next letter
// may be as it likes.
func (t *deadLetterPublisher) publish(ctx context.Context, n *backend.Notice) error {
	if !t.DeadLetterEvents {
		return nil
	}
	if !t.Performer.Can(engine.TargetEvent) {
		return errors.New("this node has no target for events: set events.sink, the same on every node")
	}
	id, event, err := deadLetterEvent(n)
	if err != nil {
		return err
	}
	_, failure := t.Performer.Perform(ctx, engine.Command{Target: engine.TargetEvent, Input: event}, id, 1)
	switch {
	case failure == nil:
		return nil
	case failure.Retry:
		return fmt.Errorf("%s: %s", failure.Error.Title, failure.Error.Detail)
	}
	t.notices.failed.Inc()
	t.Log.Error("the sink refuses the event of a dead letter for good", "letter", n.DeadLetterID, "error", failure.Error.Detail)
	return nil
}

// deadLetterEvent is the event about a dead letter. Its id is the same whenever it is
// made, and another when a letter that was replayed dies again.
func deadLetterEvent(n *backend.Notice) (id string, event json.RawMessage, err error) {
	id = uuid.NewSHA1(engine.EventSpace, fmt.Appendf(nil, "dead-letter|%s|%d", n.DeadLetterID, n.DiedAt.UnixMicro())).String()
	event, err = json.Marshal(map[string]any{
		"specversion": "1.0", "id": id, "type": deadLetterType, "source": deadLetterSource, "subject": n.DeadLetterID,
		"time": n.DiedAt.Format(time.RFC3339Nano), "datacontenttype": "application/json", "data": n,
	})
	return id, event, err
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
