package testdb

import (
	"context"
	"database/sql"
	"strings"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
)

// Purge empties the queues of signals and timers of a place, as an operator would by
// SQL, whatever works on it.
func Purge(ctx context.Context, place string) error {
	if strings.HasPrefix(place, "user=") {
		db, err := sql.Open("godror", place)
		if err != nil {
			return err
		}
		defer db.Close()
		_, err = db.ExecContext(ctx, "DECLARE O DBMS_AQADM.AQ$_PURGE_OPTIONS_T; BEGIN O.BLOCK := TRUE; "+
			"DBMS_AQADM.PURGE_QUEUE_TABLE('WF_SIGNAL_QTAB', NULL, O); DBMS_AQADM.PURGE_QUEUE_TABLE('WF_SCHEDULE_QTAB', NULL, O); END;")
		return err
	}
	c, err := conn.Open(place, "")
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		if err := c.Script("delete from WF_MESSAGES where QUEUE in ('signal', 'schedule')"); !conn.IsBusy(err) || ctx.Err() != nil {
			return err
		}
	}
}
