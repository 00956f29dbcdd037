package oracle

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/godror/godror"

	"github.com/aqueduct-engine/aqueduct/projections"
)

// What a check says of the database itself.

func (x databaseCheck) client() {
	v, err := godror.ClientVersion(x.ctx, x.db)
	if err != nil {
		x.failed("client-version", err)
		return
	}
	if v.Version < MinClient {
		x.warn("client-version", "install Oracle Instant Client 23 on the host of the node", "client library %d.%d is older than %d", v.Version, v.Release, MinClient)
		return
	}
	x.good("client-version", "client library %d.%d", v.Version, v.Release)
}

func (x databaseCheck) version() {
	rows, err := x.rows("check_version")
	if err != nil || len(rows) == 0 {
		x.unread("database-version", "", orNothing(err))
		return
	}
	product, version := rows[0][0], rows[0][1]
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < MinVersion {
		x.wrong("database-version", "upgrade the database to 19c or later", "%s %s is older than %dc", product, version, MinVersion)
		return
	}
	x.good("database-version", "%s, version %s", product, version)
}

// orNothing is an error for a query that should have given a row.
func orNothing(err error) error {
	if err == nil {
		return fmt.Errorf("the query gives no row")
	}
	return err
}

const charset = "AL32UTF8"

func (x databaseCheck) charset() {
	have, err := x.text("check_charset")
	switch {
	case err != nil || have == "":
		x.unread("database-charset", "", orNothing(err))
	case have != charset:
		x.wrong("database-charset", "move to a database with "+charset+": the character set of this one cannot keep every text",
			"database character set %s", have)
	default:
		x.good("database-charset", "%s", have)
	}
}

// mayRead is the statement that lets the user read a view of the database.
func (x databaseCheck) mayRead(view string) string {
	return fmt.Sprintf("as SYS: GRANT SELECT ON SYS.%s TO %s", view, x.user)
}

// nls looks at how the sessions of this host compare and order texts.
func nls(x *checker) {
	rows, err := x.rows("check_nls")
	var found []string
	for _, r := range rows {
		found = append(found, r[0]+" = "+r[1])
	}
	switch {
	case err != nil:
		x.unread("session-nls", "", err)
	case len(found) > 0:
		x.wrong("session-nls", "unset NLS_SORT and NLS_COMP on the host of the node, and start it with NLS_LANG=AMERICAN_AMERICA.AL32UTF8",
			"%s: texts are not compared byte by byte, indexes do not help, and pages of lists skip rows", strings.Join(found, ", "))
	default:
		x.good("session-nls", "texts are compared and ordered byte by byte")
	}
}

// parameters looks at what the timers of the queues need, and the indexes.
func (x databaseCheck) parameters() {
	const timers, jobs, sharing = "parameter-aq_tm_processes", "parameter-job_queue_processes", "parameter-cursor_sharing"
	rows, err := x.rows("check_parameters")
	value := map[string][]string{}
	for _, r := range rows {
		value["parameter-"+r[0]] = r
	}
	for _, check := range []string{timers, jobs, sharing} {
		v := value[check]
		name := strings.TrimPrefix(check, "parameter-")
		switch {
		case err != nil || v == nil:
			x.unread(check, x.mayRead("V_$PARAMETER"), orNothing(err))
		case check == sharing && v[1] != "EXACT":
			x.warn(check, "as SYS: ALTER SYSTEM SET cursor_sharing = EXACT, or a logon trigger of "+x.user+" that sets it for its sessions",
				"cursor_sharing = %s: the database takes constants out of statements, and no longer knows the indexes that are built on them", v[1])
		case v[1] != "0" || v[2] == "TRUE":
			x.good(check, "%s = %s, %s", name, v[1], map[bool]string{true: "not set", false: "set"}[v[2] == "TRUE"])
		case check == timers:
			x.wrong(check, "as SYS: ALTER SYSTEM RESET aq_tm_processes SCOPE=SPFILE, and ALTER SYSTEM SET aq_tm_processes = 1 until the restart",
				"aq_tm_processes = 0: the queue monitor is off, and no timer comes")
		default:
			x.warn(check, "as SYS: ALTER SYSTEM SET job_queue_processes = 20", "job_queue_processes = 0: the database gathers no statistics by itself")
		}
	}
}

func (x databaseCheck) clock() {
	c := clock{host: time.Now}
	if err := c.measure(x.ctx, x.db); err != nil {
		x.failed("clock-skew", err)
		return
	}
	skew := time.Duration(c.ahead.Load()).Round(100 * time.Millisecond)
	fix := "let both hosts follow the same NTP servers (chronyc tracking)"
	switch {
	case skew.Abs() > DefaultDeadAfter:
		x.wrong("clock-skew", fix, "the clock of the database is %s ahead of this host's, more than %s", skew, DefaultDeadAfter)
	case skew.Abs() > MaxSkew:
		x.warn("clock-skew", fix, "the clock of the database is %s ahead of this host's, more than %s", skew, MaxSkew)
	default:
		x.good("clock-skew", "%s, of %s", skew, MaxSkew)
	}
}

// exceptions counts what the database has given up. A node moves it to the
// dead letters within drainEvery.
func (x databaseCheck) exceptions() {
	for _, q := range []struct{ name, query string }{
		{"WF_SIGNAL", "expired_signal"}, {"WF_SCHEDULE", "expired_schedule"}, {"WF_COMMAND", "expired_command"}, {"WF_DLQ", "expired_dlq"},
	} {
		check := "exception-queue-AQ$_" + q.name + "_QTAB_E"
		n, err := x.number(q.query, projections.MaxLimit)
		switch {
		case err != nil:
			x.unread(check, "as the owner: GRANT SELECT ON AQ$"+q.name+"_QTAB TO "+x.user, err)
		case n > 0 && q.name == "WF_DLQ":
			x.warn(check, "start a node: it drops expired notices within "+drainEvery.String()+"; if nodes run, look at their logs", "%d messages", n)
		case n > 0:
			x.warn(check, "start a node: it makes them dead letters within "+drainEvery.String()+"; if nodes run, look at their logs", "%d messages", n)
		default:
			x.good(check, "empty")
		}
	}
}

func (x databaseCheck) deadLetters() {
	n, err := x.number("check_dead_letters")
	switch {
	case err != nil:
		x.unread("dead-letters", "as the owner: GRANT SELECT ON WF_DEAD_LETTERS TO "+x.user, err)
	case n > 0:
		x.warn("dead-letters", "engine-node dlq list; then replay or discard", "%d dead letters", n)
	default:
		x.good("dead-letters", "none")
	}
}

// headroom looks for the sessions that a node takes.
func (x databaseCheck) headroom() {
	if x.e.Sessions > 0 {
		x.good("sessions", "a node takes at most %d; one with nothing to do keeps %d that wait for messages", x.e.Sessions, 1+2*Waiters+1)
	}
	rows, err := x.rows("check_limits")
	if err != nil || len(rows) == 0 {
		x.unread("headroom", x.mayRead("V_$RESOURCE_LIMIT"), orNothing(err))
		return
	}
	for _, r := range rows {
		check := "headroom-" + r[0]
		used, errUsed := strconv.Atoi(r[1])
		limit, errLimit := strconv.Atoi(r[2])
		switch {
		case r[2] == "UNLIMITED":
			x.good(check, "%s used, no limit", r[1])
		case errUsed != nil || errLimit != nil:
			x.unread(check, "", fmt.Errorf("%q of %q are no numbers", r[1], r[2]))
		case limit-used < x.e.Sessions:
			x.wrong(check, fmt.Sprintf("fewer consumers (queue.*-consumers), or as SYS: ALTER SYSTEM SET %s = %d SCOPE=SPFILE, and restart", r[0], limit+x.e.Sessions),
				"%d of %d used: no room for the %d sessions of one more node", used, limit, x.e.Sessions)
		default:
			x.good(check, "%d of %d used; one more node takes %d", used, limit, x.e.Sessions)
		}
	}
}
