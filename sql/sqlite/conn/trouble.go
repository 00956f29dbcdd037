package conn

import (
	"log/slog"
	"sync"
	"time"
)

// Trouble tells the log what goes wrong again and again: at once, then with
// growing pauses, and when it is over.
type Trouble struct {
	mu    sync.Mutex
	since time.Time // of the first failure
	last  time.Time
	next  time.Time // when it is told again
	pause time.Duration
	count int
}

// Pauses between two lines about one trouble.
const (
	troublePause    = time.Second // doubled with each
	troublePauseMax = 5 * time.Minute
	troubleOver     = time.Second // without a failure
)

// Note takes the outcome of an attempt.
func (t *Trouble) Note(log *slog.Logger, what, path string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if err == nil {
		// On a full disk what is small goes through between what is not.
		if t.count > 0 && now.Sub(t.last) >= troubleOver {
			log.Info("sqlite: the database works again", "path", path, "failures", t.count, "after", t.last.Sub(t.since).Round(time.Millisecond))
			t.count, t.pause = 0, 0
		}
		return
	}
	if t.count == 0 {
		t.since, t.next = now, now
	}
	t.count++
	t.last = now
	if now.Before(t.next) {
		return
	}
	t.pause = min(max(2*t.pause, troublePause), troublePauseMax)
	t.next = now.Add(t.pause)
	log.Error(what, "path", path, "error", err, "failures", t.count, "told again in", t.pause)
}
