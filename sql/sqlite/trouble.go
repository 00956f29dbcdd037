package sqlite

import (
	"log/slog"
	"time"
)

// trouble tells the log what goes wrong again and again: at once, then with
// growing pauses, and when it is over.
type trouble struct {
	since time.Time // of the first failure in a row; zero = none
	next  time.Time // when it is told again
	pause time.Duration
	count int
}

// Pauses between two lines about one trouble.
const (
	troublePause    = time.Second // doubled with each
	troublePauseMax = 5 * time.Minute
)

// note takes the outcome of an attempt.
func (t *trouble) note(log *slog.Logger, what, path string, err error) {
	now := time.Now()
	switch {
	case err == nil && t.count > 0:
		log.Info("sqlite: the database works again", "path", path, "failures", t.count, "after", now.Sub(t.since).Round(time.Millisecond))
		*t = trouble{}
	case err == nil:
	case t.count == 0 || !now.Before(t.next):
		if t.count == 0 {
			t.since = now
		}
		t.count++
		t.pause = min(max(2*t.pause, troublePause), troublePauseMax)
		t.next = now.Add(t.pause)
		log.Error(what, "path", path, "error", err, "failures", t.count, "told again in", t.pause)
	default:
		t.count++
	}
}
