package oracle

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/aq"
)

// What a check says of the schema: it expects what the scripts make.

func (x schemaCheck) schemaVersion() {
	have, err := version(x.ctx, x.db)
	switch {
	case err != nil:
		x.failed("schema-version", err)
	case have == 0:
		x.wrong("schema-version", "engine-node migrate as the owner, or 10_tables.sql to 50_grants.sql; and store.owner names the owner",
			"the schema %s has no tables of Aqueduct, or %s may not read them", x.owner, x.user)
	case have < schemaVersion:
		x.wrong("schema-version", "engine-node migrate as the owner", "version %d, this program needs %d", have, schemaVersion)
	case have > schemaVersion:
		x.wrong("schema-version", "run the program that has migrated it", "version %d, this program knows %d", have, schemaVersion)
	default:
		x.good("schema-version", "version %d", have)
	}
}

// object is a thing that a script makes.
type object struct{ kind, name, script string }

var makes = regexp.MustCompile(`^CREATE (?:OR REPLACE )?(?:UNIQUE )?(TABLE|VIEW|SEQUENCE|INDEX|PACKAGE BODY|PACKAGE) (\w+)`)

// made lists what the scripts make.
func made() ([]object, error) {
	units, err := Installation{}.units()
	if err != nil {
		return nil, err
	}
	var list []object
	for _, u := range units {
		if m := makes.FindStringSubmatch(u.text); m != nil {
			list = append(list, object{kind: m[1], name: m[2], script: u.script})
		}
	}
	return list, nil
}

// objects looks for everything that the scripts make. The body of the package
// is only seen by its owner; for others pkg calls it.
func (x schemaCheck) objects() {
	want, err := made()
	var there, indexes [][]string
	if err == nil {
		there, err = x.rows("check_objects", x.owner)
	}
	if err == nil {
		indexes, err = x.rows("check_indexes", x.owner)
	}
	if err != nil {
		x.failed("schema-objects", err)
		return
	}
	status := map[string]string{}
	for _, r := range append(there, indexes...) {
		if status[r[0]+" "+r[1]] != "INVALID" {
			status[r[0]+" "+r[1]] = r[2]
		}
	}
	x.missing(want, status)
	x.invalid(status)
}

func (x schemaCheck) missing(want []object, status map[string]string) {
	var missing, scripts []string
	for _, o := range want {
		if status[o.kind+" "+o.name] != "" || o.kind == "PACKAGE BODY" && x.apart() {
			continue
		}
		missing = append(missing, o.kind+" "+o.name)
		if !slices.Contains(scripts, o.script) {
			scripts = append(scripts, o.script)
		}
	}
	if len(missing) == 0 {
		x.good("schema-objects", "all %d are there", len(want))
		return
	}
	fix := "as the owner: " + strings.Join(scripts, ", ")
	if x.apart() {
		fix += ", 50_grants.sql " + x.user
	}
	x.wrong("schema-objects", fix, "missing, or not granted to %s: %s", x.user, few(missing))
}

// invalid says what is there and cannot be used.
func (x schemaCheck) invalid(status map[string]string) {
	var bad, fix []string
	for name, s := range status {
		kind, object, _ := strings.Cut(name, " ")
		if kind == "PACKAGE" && strings.HasPrefix(object, "BODY ") {
			kind, object = "PACKAGE BODY", strings.TrimPrefix(object, "BODY ")
		}
		qualified := x.owner + "." + object
		switch {
		case s == "VALID" || s == "N/A":
			continue
		case kind == "INDEX":
			fix = append(fix, "ALTER INDEX "+qualified+" REBUILD")
		case kind == "PACKAGE BODY":
			fix = append(fix, "ALTER PACKAGE "+qualified+" COMPILE BODY")
		default:
			fix = append(fix, "ALTER "+kind+" "+qualified+" COMPILE")
		}
		bad = append(bad, name)
	}
	slices.Sort(bad)
	slices.Sort(fix)
	if len(bad) == 0 {
		x.good("schema-invalid", "none of %d", len(status))
		return
	}
	x.wrong("schema-invalid", "as the owner: "+strings.Join(fix, "; "), "%s", few(bad))
}

var makesColumn = regexp.MustCompile(`(?m)^  (\w+) (?:VARCHAR2|NUMBER|RAW|TIMESTAMP|CLOB|BLOB)\b.*?,?$`)

// columns looks for every column of the tables that are there. Scripts that are run
// again leave a table as it is.
func (x schemaCheck) columns() {
	units, err := Installation{}.units()
	var rows [][]string
	if err == nil {
		rows, err = x.rows("check_columns", x.owner)
	}
	if err != nil {
		x.failed("schema-columns", err)
		return
	}
	there := map[string]bool{}
	for _, r := range rows {
		there[r[0]], there[r[0]+"."+r[1]] = true, true
	}
	count := 0
	var missing, fix []string
	for _, u := range units {
		m := makes.FindStringSubmatch(u.text)
		if m == nil || m[1] != "TABLE" || !there[m[2]] {
			continue
		}
		for _, c := range makesColumn.FindAllStringSubmatch(u.text, -1) {
			if count++; !there[m[2]+"."+c[1]] {
				missing = append(missing, m[2]+"."+c[1])
				fix = append(fix, "ALTER TABLE "+x.owner+"."+m[2]+" ADD ("+strings.TrimRight(strings.TrimSpace(c[0]), ",")+")")
			}
		}
	}
	if len(missing) == 0 {
		x.good("schema-columns", "all %d are there", count)
		return
	}
	x.wrong("schema-columns", "as the owner: "+strings.Join(fix, "; ")+"; then the scripts again", "missing: %s", few(missing))
}

// few shortens a list for a line.
func few(list []string) string {
	const most = 8
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

// pkg calls the package: only that shows that its body can be executed.
func (x schemaCheck) pkg() {
	id, err := x.text("check_package")
	const unknown, noRight = 904, 1031
	codes := aq.Codes(err)
	switch {
	case slices.Contains(codes, unknown) || slices.Contains(codes, noRight):
		x.wrong("schema-package", "as the owner: 40_package.sql, and GRANT EXECUTE ON AQUEDUCT_API TO "+x.user, "%s cannot call the package AQUEDUCT_API: %s", x.user, oneLine(err))
	case err != nil:
		x.wrong("schema-package", "as the owner: ALTER PACKAGE AQUEDUCT_API COMPILE, then SHOW ERRORS PACKAGE BODY AQUEDUCT_API", "the package AQUEDUCT_API cannot be executed: %s", oneLine(err))
	case id == "":
		x.wrong("schema-package", "as the owner: 40_package.sql", "the package AQUEDUCT_API makes no ids")
	default:
		x.good("schema-package", "AQUEDUCT_API answers")
	}
}

// queueFacts are what 20_queues.sql says of every queue.
const (
	queueRetries   = "10000"
	queueDelay     = "0"
	queueRetention = "0"
)

func (x schemaCheck) queues() {
	rows, err := x.rows("check_queues", x.owner)
	if err != nil {
		x.failed("queues", err)
		return
	}
	there := map[string][]string{}
	for _, r := range rows {
		there[r[0]] = r
	}
	for _, name := range []string{"WF_SIGNAL", "WF_SCHEDULE", "WF_COMMAND", "WF_DLQ"} {
		x.queue(name+"_Q", there[name+"_Q"])
		x.exceptionQueue("AQ$_"+name+"_QTAB_E", there["AQ$_"+name+"_QTAB_E"])
	}
}

// subscribers looks for the nodes among those who get notices of dead letters.
func (x schemaCheck) subscribers() {
	const check = "subscribers-" + noticeObject + "_Q"
	found, err := x.rows("check_subscribers")
	if err != nil {
		x.unread(check, "as the owner: GRANT SELECT ON AQ$"+noticeObject+"_QTAB_S TO "+x.user, err)
		return
	}
	var names []string
	for _, r := range found {
		names = append(names, r[0])
	}
	if !slices.Contains(names, noticeNodes) {
		x.warn(check, "as the owner: BEGIN DBMS_AQADM.ADD_SUBSCRIBER(queue_name => '"+noticeObject+"_Q', subscriber => SYS.AQ$_AGENT('"+noticeNodes+"', NULL, NULL)); END;",
			"nodes are told of no dead letter: %s is no subscriber", noticeNodes)
		return
	}
	x.good(check, "%s", few(names))
}

func (x schemaCheck) queue(name string, r []string) {
	check := "queue-" + name
	if r == nil {
		x.noQueue(check, name)
		return
	}
	var bad, fix []string
	if r[2] != "YES" || r[3] != "YES" {
		bad = append(bad, "stopped (enqueue "+r[2]+", dequeue "+r[3]+")")
		fix = append(fix, fmt.Sprintf("DBMS_AQADM.START_QUEUE('%s.%s')", x.owner, name))
	}
	if r[4] != queueRetries || r[5] != queueDelay || r[6] != queueRetention {
		bad = append(bad, fmt.Sprintf("max_retries %s, retry_delay %s, retention %s", r[4], r[5], r[6]))
		fix = append(fix, fmt.Sprintf("DBMS_AQADM.ALTER_QUEUE(queue_name => '%s.%s', max_retries => %s, retry_delay => %s, retention_time => %s)",
			x.owner, name, queueRetries, queueDelay, queueRetention))
	}
	if len(bad) > 0 {
		x.wrong(check, "as the owner: BEGIN "+strings.Join(fix, "; ")+"; END;", "%s", strings.Join(bad, "; "))
		return
	}
	x.good(check, "started, max_retries %s, retry_delay %s, retention %s", r[4], r[5], r[6])
}

func (x schemaCheck) exceptionQueue(name string, r []string) {
	check := "queue-" + name
	switch {
	case r == nil:
		x.noQueue(check, name)
	case r[3] != "YES":
		x.wrong(check, fmt.Sprintf("as the owner: BEGIN DBMS_AQADM.START_QUEUE('%s.%s', enqueue => FALSE, dequeue => TRUE); END;", x.owner, name),
			"not open for dequeuing: what lies there stays there")
	default:
		x.good(check, "open for dequeuing")
	}
}

func (x schemaCheck) noQueue(check, name string) {
	fix := "as the owner: 20_queues.sql"
	if x.apart() {
		fix += ", 50_grants.sql " + x.user
	}
	x.wrong(check, fix, "there is no queue %s.%s, or %s has no privilege on it", x.owner, name, x.user)
}
