package oracle

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
)

//go:embed schema/*.sql schema/upgrade/*.sql
var scripts embed.FS

// unit is one statement or PL/SQL unit of a script.
type unit struct {
	script string
	line   int
	text   string
}

// present are the codes that say an object is there already: a script may run
// again.
var present = map[int]bool{
	955: true, 1408: true, 1430: true, 2260: true, 2261: true, 2275: true, 24001: true, 24006: true, 24034: true,
}

// Installation says what Migrate installs, and where.
type Installation struct {
	DSN         string // of the owner of the schema
	RuntimeUser string // gets the grants that a node needs; empty = the owner runs the nodes
	Version     string // of this program
}

// Migrate brings an older schema to the version of this program, and installs what
// the schema of a user lacks: tables, queues, views and
// the package, in the scripts that a DBA can run with SQL*Plus as well. The
// user owns the objects; the scripts that need a DBA are not run. It returns
// the schema versions before and after.
func Migrate(ctx context.Context, i Installation) (from, to int, err error) {
	db, err := aq.Open(aq.Options{DSN: i.DSN})
	if err != nil {
		return 0, 0, err
	}
	defer db.Close()
	pool := db.Shared(1)
	if from, err = version(ctx, pool); err != nil {
		return 0, 0, wrap("migrate", explain(err))
	}
	if from > schemaVersion {
		return from, from, wrap("migrate", fmt.Errorf("the schema has version %d, this program knows %d", from, schemaVersion))
	}
	if from > 0 {
		if err := i.outdated(ctx, pool, from); err != nil {
			return from, from, wrap("migrate", explain(err))
		}
	}
	upgrades, err := upgradesFrom(from)
	if err != nil {
		return from, from, err
	}
	units, err := i.units()
	if err != nil {
		return from, from, err
	}
	for _, u := range upgrades {
		if err := u.run(ctx, pool, gone); err != nil {
			return from, from, wrap("migrate", fmt.Errorf("%s, line %d: %w", u.script, u.line, err))
		}
	}
	if from > 0 { // whose queues were started when they were made
		if units, err = withoutStarts(ctx, pool, units); err != nil {
			return from, from, wrap("migrate", explain(err))
		}
	}
	if err := executeAll(ctx, pool, units); err != nil {
		return from, from, wrap("migrate", err)
	}
	if from < schemaVersion {
		if err := setVersion(ctx, pool, from); err != nil {
			return from, from, wrap("migrate", explain(err))
		}
	}
	return from, schemaVersion, nil
}

// startsQueue finds the queue that a unit starts.
var startsQueue = regexp.MustCompile(`DBMS_AQADM\.START_QUEUE\(queue_name => '([^']+)'`)

// withoutStarts leaves out what starts queues that are there: an operator may have
// stopped them.
func withoutStarts(ctx context.Context, db *sql.DB, units []unit) ([]unit, error) {
	found, err := db.QueryContext(ctx, text("queue_names"))
	if err != nil {
		return nil, err
	}
	defer found.Close()
	there := map[string]bool{}
	for found.Next() {
		var name string
		if err := found.Scan(&rows.Into{To: &name}); err != nil {
			return nil, err
		}
		there[name] = true
	}
	return slices.DeleteFunc(units, func(u unit) bool {
		m := startsQueue.FindStringSubmatch(u.text)
		return m != nil && there[m[1]]
	}), found.Err()
}

// executeAll executes units. A package that does not compile is there all the same,
// and the database says so to who asks only.
func executeAll(ctx context.Context, db *sql.DB, units []unit) error {
	for _, u := range units {
		if err := u.run(ctx, db, nil); err != nil {
			return fmt.Errorf("%s, line %d: %w", u.script, u.line, err)
		}
	}
	found, err := db.QueryContext(ctx, text("check_errors"), errorsMax)
	if err != nil {
		return explain(err)
	}
	defer found.Close()
	var list []string
	for found.Next() {
		var kind, name, what string
		var line, column int
		if err := found.Scan(&rows.Into{To: &kind}, &rows.Into{To: &name}, &rows.Into{To: &line}, &rows.Into{To: &column}, &rows.Into{To: &what}); err != nil {
			return err
		}
		what, _, _ = strings.Cut(what, "\n")
		place := fmt.Sprintf("%s %s, line %d", kind, name, line)
		for _, u := range units {
			if m := compiles.FindStringSubmatch(u.text); m != nil && m[1] == kind && m[2] == name {
				place = fmt.Sprintf("%s, line %d (%s)", u.script, u.line+line-1, place)
			}
		}
		list = append(list, fmt.Sprintf("%s, column %d: %s", place, column, what))
	}
	if err := found.Err(); err != nil || len(list) == 0 {
		return err
	}
	return problem.New(problem.Invalid, "store.invalid", "the database has made what it cannot compile: %s", strings.Join(list, "; ")).
		WithHint("PLS-00201 is a right that the owner lacks by a direct grant: 00_users.sql; then migrate again, the version was not noted")
}

// errorsMax bounds what is told of what does not compile.
const errorsMax = 10

// compiles finds what is compiled by a unit.
var compiles = regexp.MustCompile(`^CREATE OR REPLACE (PACKAGE BODY|PACKAGE|VIEW) (\w+)`)

// outdated refuses to migrate under nodes of another program: they know the
// schema, and the package, as they were. Nodes of this one are in nobody's way as
// long as the version of the schema stays.
func (i Installation) outdated(ctx context.Context, db *sql.DB, from int) error {
	found, err := db.QueryContext(ctx, text("node_versions"), DefaultDeadAfter.Seconds())
	if err != nil {
		return err
	}
	defer found.Close()
	var others []string
	for found.Next() {
		var node, version string
		if err := found.Scan(&rows.Into{To: &node}, &rows.Into{To: &version}); err != nil {
			return err
		}
		if version != i.Version || from < schemaVersion {
			others = append(others, strings.TrimSpace(node+" "+version))
		}
	}
	if err := found.Err(); err != nil || len(others) == 0 {
		return err
	}
	return problem.New(problem.Unavailable, "store.in-use", "%d nodes of another program run on the schema: %s; this is %s",
		len(others), strings.Join(others[:min(len(others), 5)], ", "), i.Version).
		WithHint("stop them first, back up, and start the new program on all; a node that was killed counts for %s", DefaultDeadAfter)
}

// upgradesFrom are what an older schema needs before the scripts run.
func upgradesFrom(from int) (list []unit, err error) {
	for to := from + 1; from > 0 && to <= schemaVersion; to++ {
		name := fmt.Sprintf("upgrade/%d.sql", to)
		raw, err := scripts.ReadFile("schema/" + name)
		if err != nil {
			return nil, err
		}
		list = append(list, split(name, string(raw))...)
	}
	return list, nil
}

// gone are the codes that say an object is gone already: an upgrade may run again.
var gone = map[int]bool{942: true, 1418: true, 1451: true, 24002: true, 24010: true}

func setVersion(ctx context.Context, db *sql.DB, from int) error {
	if from > 0 {
		_, err := db.ExecContext(ctx, text("meta_update"), []byte{schemaVersion}, versionName)
		return err
	}
	_, err := db.ExecContext(ctx, text("meta_insert"), versionName, []byte{schemaVersion})
	if aq.Classify(err) == aq.Duplicate {
		return nil
	}
	return err
}

// run executes a unit; that its object is there is no error, nor are the codes that
// are passed.
func (u unit) run(ctx context.Context, db *sql.DB, passed map[int]bool) error {
	_, err := db.ExecContext(ctx, u.text)
	for _, code := range aq.Codes(err) {
		if present[code] || passed[code] {
			return nil
		}
		const notCompiled, noTable = 6550, 942
		if code == notCompiled && passed[noTable] && aq.Names(err, noTable) {
			return nil
		}
	}
	return err
}

// The owner's scripts, by what they hold.
var ownerScripts = []string{"10_tables", "20_queues", "30_views", "40_package", "45_admin"}

const grantsScript = "50_grants"

// userName is a name that a script may be given.
var userName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_$#]{0,127}$`)

// units are what an installation executes, in order.
func (i Installation) units() ([]unit, error) {
	names := slices.Clone(ownerScripts)
	if i.RuntimeUser != "" {
		if !userName.MatchString(i.RuntimeUser) {
			return nil, problem.New(problem.Invalid, "store.options", "%.40q is no name of a user", i.RuntimeUser)
		}
		names = append(names, grantsScript)
	}
	var list []unit
	for _, name := range names {
		raw, err := scripts.ReadFile("schema/" + name + ".sql")
		if err != nil {
			return nil, err
		}
		list = append(list, split(name+".sql", strings.ReplaceAll(string(raw), "&runtime_user", strings.ToUpper(i.RuntimeUser)))...)
	}
	return list, nil
}

// split takes a script apart as SQL*Plus does: a unit ends with a line that is
// a single slash. Commands of SQL*Plus itself and comments between units are
// left out.
func split(script, text string) []unit {
	var list []unit
	var lines []string
	start := 0
	for n, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if trimmed == "/" {
			if len(lines) > 0 {
				list = append(list, unit{script: script, line: start, text: strings.TrimSpace(strings.Join(lines, "\n"))})
			}
			lines = nil
			continue
		}
		if len(lines) == 0 && (trimmed == "" || strings.HasPrefix(trimmed, "--") || plusCommand(trimmed)) {
			continue
		}
		if len(lines) == 0 {
			start = n + 1
		}
		lines = append(lines, line)
	}
	return list
}

// plusCommand says whether a line is for SQL*Plus itself.
func plusCommand(line string) bool {
	word, _, _ := strings.Cut(strings.ToUpper(line), " ")
	switch word {
	case "PROMPT", "WHENEVER", "SET", "DEFINE", "UNDEFINE", "ACCEPT", "SPOOL", "SHOW", "EXIT", "CONNECT", "COLUMN", "VERIFY":
		return true
	}
	return strings.HasPrefix(word, "@@")
}
