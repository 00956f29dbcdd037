package oracle

import (
	"context"
	"fmt"
	"strings"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/store"
)

// wholeSends is how many messages the block of a whole change sends at most: with
// each number the database parses another text.
const (
	wholeSends = 8
	sendBinds  = 5 // values of one
)

// whole is a change as one block: its rows, its messages and the commit, in one round
// trip, where calls of their own take one to begin, one for the rows, one for each
// queue, and one to commit.
type whole struct {
	work *work
	text string
	args []any
}

// wholeOf makes the block of a change, or nil when one does not hold it.
func wholeOf(w *work) *whole {
	if w.apart {
		return nil
	}
	parts, sends, binds := blocks(w.ops), 0, 0
	for i := range w.ops {
		binds += len(w.ops[i].args)
	}
	for _, b := range w.sends {
		sends += len(b.list)
	}
	if len(parts) > 1 || sends > wholeSends || binds+sends*sendBinds > bindsMax {
		return nil
	}
	return blockOfWork(w)
}

// blockOfWork writes the block of a change that one holds.
func blockOfWork(w *work) *whole {
	sends := len(w.sends)
	rows, args, err := blockOf(w.ops)
	if err != nil {
		return nil // the usual way says what is wrong
	}
	var b strings.Builder
	if sends > 0 {
		b.WriteString("DECLARE\nO DBMS_AQ.ENQUEUE_OPTIONS_T;\nM DBMS_AQ.MESSAGE_PROPERTIES_T;\nI RAW(16);\n")
	}
	b.WriteString(strings.TrimSuffix(rows, "END;"))
	for _, batch := range w.sends {
		for _, m := range batch.list {
			if m.Check() != nil {
				return nil
			}
			n := len(args)
			fmt.Fprintf(&b, "M.CORRELATION := :%d; M.PRIORITY := :%d; M.DELAY := :%d; M.EXPIRATION := DBMS_AQ.NEVER;\n", n+1, n+2, n+3)
			fmt.Fprintf(&b, "DBMS_AQ.ENQUEUE(queue_name => :%d, enqueue_options => O, message_properties => M, payload => :%d, msgid => I);\n", n+4, n+5)
			args = append(args, m.Note, m.Priority, m.Seconds(), batch.queue.Name, m.Body)
		}
	}
	b.WriteString("COMMIT WRITE WAIT;\nEND;") // a commit in PL/SQL need not wait for the disk
	return &whole{w, b.String(), args}
}

// run executes the block on a session's transaction.
func (b *whole) run(ctx context.Context, session *aq.Session) error {
	err := session.ExecCommit(b.work.watched(ctx), b.text, b.args...)
	switch {
	case err == nil:
		return nil
	case aq.Unanswered(err):
		return store.Unknown(explain(err))
	}
	return refusedBlock(b.work.ops, b.text, err)
}
