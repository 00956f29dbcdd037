package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/embedded/schema"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/files"
	"github.com/aqueduct-engine/aqueduct/store/survey"
)

// Room on the disk of the database, in bytes.
const (
	minFree  = 64 << 20 // below it a node may stop at any moment
	warnFree = 1 << 30
)

// CheckOptions says what Check looks at.
type CheckOptions struct {
	Path string

	// Verify says what is wrong with a definition.
	Verify func(definition.Record) error
	// Quick leaves out what reads every row, and every page.
	Quick bool
}

// Check looks at a database without changing it, beside nodes that run on it or
// without. It reads every page and, as the nodes would, every row that can be
// told to be damaged.
func Check(ctx context.Context, e CheckOptions) []survey.Finding {
	x := &checker{path: e.Path, verify: e.Verify}
	path, err := files.Located(e.Path)
	if err != nil {
		x.wrong("file-present", "name another path", "%s", err)
		return x.list
	}
	x.path = path
	if !x.present() {
		return x.list
	}
	x.folder()
	x.disk()
	c, err := conn.Open(path, "mode=rw")
	if err != nil {
		x.failed("file-writable", conn.Explain(err, path))
		return x.list
	}
	defer c.Close()
	x.c = c
	current := func(check func()) func() { // the tables of another version are others
		return func() {
			if x.current {
				check()
			}
		}
	}
	checks := []func(){x.owned, x.writable, x.journal, x.version, current(x.deadLetters)}
	if !e.Quick {
		checks = append(checks, x.integrity, current(x.rows))
	}
	for _, check := range checks {
		if ctx.Err() != nil {
			x.wrong("examination", "try again", "%s", ctx.Err())
			break
		}
		check()
	}
	return x.list
}

// checker gathers findings on one file.
type checker struct {
	path    string
	c       *conn.Conn
	current bool // the schema has the version that this program knows
	list    []survey.Finding

	verify func(definition.Record) error
}

func (x *checker) add(check string, g survey.Severity, fix, found string, args ...any) {
	x.list = append(x.list, survey.Finding{Check: check, Severity: g, Found: fmt.Sprintf(found, args...), Fix: fix})
}

func (x *checker) good(check, found string, args ...any) {
	x.add(check, survey.Good, "", found, args...)
}

func (x *checker) wrong(check, fix, found string, args ...any) {
	x.add(check, survey.Wrong, fix, found, args...)
}

// failed takes the fix from the problem.
func (x *checker) failed(check string, err error) {
	fix := "restore a backup, or look at the file with sqlite3"
	var p *problem.Error
	if errors.As(err, &p) && p.Hint != "" {
		fix = p.Hint
	}
	x.wrong(check, fix, "%s", err)
}

func (x *checker) present() bool {
	info, err := os.Stat(x.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x.wrong("file-present", "engine-node migrate --store sqlite://"+x.path, "there is no file %s", x.path)
		return false
	case err != nil:
		x.wrong("file-present", "give the user of the node rights on it and its folders", "%s", err)
		return false
	case !info.Mode().IsRegular():
		x.wrong("file-present", "name another path", "%s is no file", x.path)
		return false
	}
	x.good("file-present", "%s, %d bytes", x.path, info.Size())
	return true
}

// folder looks whether files can be made beside the database: its log, and the
// folder of the nodes.
func (x *checker) folder() {
	dir := filepath.Dir(x.path)
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		x.wrong("folder-writable", "chmod u+wx "+dir+", for the user of the node", "nothing can be made in %s: %s", dir, err)
		return
	}
	x.good("folder-writable", "%s", dir)
}

func (x *checker) disk() {
	var s unix.Statfs_t
	if err := unix.Statfs(x.path, &s); err != nil {
		x.add("disk-free", survey.Warning, "df "+x.path, "it could not be found out: %s", err)
		return
	}
	free := int64(s.Bavail) * int64(s.Bsize) //nolint:unconvert // their types differ between systems
	fix := "make room on the disk of " + x.path
	switch {
	case free < minFree:
		x.wrong("disk-free", fix, "%d MiB free, less than %d", free>>20, minFree>>20)
	case free < warnFree:
		x.add("disk-free", survey.Warning, fix, "%d MiB free, less than %d", free>>20, warnFree>>20)
	default:
		x.good("disk-free", "%d MiB", free>>20)
	}
}

// writable begins to write and stops.
func (x *checker) writable() {
	err := unix.Access(x.path, unix.W_OK)
	if err == nil {
		if err = x.c.Script("begin immediate"); err == nil {
			err = x.c.Script("rollback")
		}
	}
	if err != nil {
		x.failed("file-writable", conn.Explain(err, x.path))
		return
	}
	x.good("file-writable", "yes")
}

func (x *checker) owned() {
	if err := schema.Foreign(x.c, x.path); err != nil {
		x.failed("application", conn.Explain(err, x.path))
		return
	}
	x.good("application", "aqueduct")
}

// rows reads every row that tells damage, or repeats another.
func (x *checker) rows() {
	db, err := conn.Pool(x.path, "_query_only=1")
	if err != nil {
		x.failed("checksums", conn.Explain(err, x.path))
		return
	}
	defer db.Close()
	states := survey.NewStates()
	if checkRows(x, db, "checksums", "state_all", func(s *survey.State, _ error) error { return states.Row(*s) }) {
		x.list = append(x.list, states.Findings()...)
	}
	damaged[projections.EntryRow](x, db, "streams", "stream_select")
	damaged[lists.TaskRow](x, db, "tasks", "task_select")
	damaged[lists.TaskEventRow](x, db, "task-events", "task_events")
	damaged[messageRow](x, db, "messages", "message_all")
	s := survey.Table{Check: "definitions"}
	if checkRows(x, db, s.Check, "definition_all", func(r *definition.Record, _ error) error { return s.Row(x.verify(*r)) }) {
		x.list = append(x.list, s.Finding())
	}
}

// messageRow is a message as it lies in its queue.
type messageRow struct {
	ID   int64  `db:"MSG_ID"`
	Body []byte `db:"PAYLOAD"`
}

// Verify implements rows.Verifier.
func (m *messageRow) Verify() error {
	return survey.VerifyMessage(strconv.FormatInt(m.ID, 10), m.Body)
}

// damaged counts rows that are not as they were written.
func damaged[T any](x *checker, db *sql.DB, check, query string) {
	s := survey.Table{Check: check}
	if checkRows(x, db, check, query, func(_ *T, damage error) error { return s.Row(damage) }) {
		x.list = append(x.list, s.Finding())
	}
}

// checkRows reads every row of a query, or says that the check could not.
func checkRows[T any](x *checker, db *sql.DB, check, query string, each func(*T, error) error) bool {
	found, err := db.Query(conn.Statement(query, queries, sqlite.Statements))
	if err == nil {
		err = rows.Each(found, func(item *T, damage error) (bool, error) { return true, each(item, damage) })
	}
	if err != nil {
		x.failed(check, conn.Explain(err, x.path))
	}
	return err == nil
}

func (x *checker) journal() {
	mode, err := x.c.Text("pragma journal_mode")
	switch {
	case err != nil:
		x.failed("journal-mode", conn.Explain(err, x.path))
	case mode != "wal":
		x.add("journal-mode", survey.Warning, "engine-node migrate --store sqlite://"+x.path+", or start a node: both switch it", "%s: readers and the writer wait for each other", mode)
	default:
		x.good("journal-mode", "wal")
	}
}

func (x *checker) integrity() {
	row, err := x.c.Text("pragma quick_check(1)")
	switch {
	case err != nil:
		x.failed("integrity", conn.Explain(err, x.path))
	case row != "ok":
		x.wrong("integrity", "stop the nodes and restore a backup; sqlite3's .recover may save rows", "%s", row)
	default:
		x.good("integrity", "quick check ok")
	}
}

func (x *checker) version() {
	have, known, err := schema.Versions(x.c, x.path)
	switch {
	case err != nil:
		x.failed("schema-version", err)
	case have < known:
		x.wrong("schema-version", "back up, then engine-node migrate --store sqlite://"+x.path, "version %d, this program needs %d", have, known)
	case have > known:
		x.wrong("schema-version", "run the program that has migrated it", "version %d, this program knows %d", have, known)
	default:
		x.current = true
		x.good("schema-version", "version %d", have)
	}
}

func (x *checker) deadLetters() {
	n, err := x.c.Number("select count(*) from WF_DEAD_LETTERS")
	switch {
	case err != nil:
		x.failed("dead-letters", conn.Explain(err, x.path))
	case n > 0:
		x.add("dead-letters", survey.Warning, "engine-node dlq list; then replay or discard", "%d dead letters", n)
	default:
		x.good("dead-letters", "none")
	}
}
