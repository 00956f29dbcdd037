// Package shapes writes the texts of both stores that name the columns of a row from the
// struct that has the row: statements that insert and select it, the tables and views of
// the larger database, and the script that adds a column to the embedded one. A field is
// added where it is declared; a test writes the rest, and holds it fresh.
package shapes

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
)

// shape is a row, and where its columns are named.
type shape struct {
	table, view string
	row         reflect.Type
	sums        []string // columns that the store adds to it
	numbered    bool     // the embedded store has no INSTANCE_ID there, but a number only
	hidden      []string // columns that the view does not show: secrets, and what only nodes ask
	kept        []string // columns that only the larger database has, and writes with the row
	order       string   // its own column there, in front; "" = none
	next        string   // how that is made
	inserts     string   // the statement of the embedded store that inserts it; the other's has the same name
	lists       []list
}

// list is a statement that selects the row, with the alias that its table has there.
type list struct{ file, alias, last string }

var shapes = []shape{
	{
		table: "WF_INSTANCES", view: "WF_V_INSTANCES", row: reflect.TypeFor[projections.Instance](),
		hidden: []string{"START_KEY", "AHEAD"}, kept: []string{"START_DIGEST"}, inserts: "sql/sqlite/query/instance_insert.sql",
		lists: []list{
			{"sql/embedded/query/instance_select.sql", "", "INSTANCE_NO"}, {"sql/oracle/query/instance_select.sql", "I.", ""},
			{"sql/embedded/query/instance_ordered.sql", "I.", "I.INSTANCE_NO, O.VALUE_KEY"}, {"sql/oracle/query/instance_ordered.sql", "I.", "O.VALUE_KEY"},
			{"sql/embedded/query/state_all.sql", "I.", ""}, {"sql/oracle/query/state_all.sql", "I.", ""},
		},
	},
	{
		table: "WF_TASKS", view: "WF_V_TASKS", row: reflect.TypeFor[projections.Task](), numbered: true,
		sums:   []string{"CHECKSUM", "ASSIGNED_CHECKSUM", "CANDIDATES_CHECKSUM", "END_CHECKSUM"},
		hidden: []string{"WAITING_TOKEN", "TASK_VERSION", "PAYLOAD", "FORM", "OUTPUT"},
		order:  "TASK_NO", next: "WF_TASK_SEQ.NEXTVAL", inserts: "sql/embedded/query/task_insert.sql",
		lists: []list{
			{"sql/embedded/query/task_select.sql", "T.", "T.TASK_NO"}, {"sql/embedded/query/task_next.sql", "T.", "T.TASK_NO"},
			{"sql/oracle/query/task_select.sql", "T.", "T.TASK_NO"},
		},
	},
}

// field is one column.
type field struct {
	name, doc string
	kind      reflect.Type
	width     string
}

func (s *shape) fields() (list []field) {
	for i := range s.row.NumField() {
		f := s.row.Field(i)
		if name := f.Tag.Get("db"); name != "" && name != "-" {
			list = append(list, field{name, f.Tag.Get("doc"), f.Type, f.Tag.Get("width")})
		}
	}
	return list
}

var (
	moment = reflect.TypeFor[time.Time]()
	body   = reflect.TypeFor[[]byte]()
)

// write brings every text below a root up to date, and says which were not.
func write(root string, save bool) (stale []string, err error) {
	for i := range shapes {
		texts, err := shapes[i].texts(root)
		if err != nil {
			return stale, err
		}
		for _, t := range texts {
			path := filepath.Join(root, t.file)
			if have, _ := os.ReadFile(path); string(have) == t.text {
				continue
			}
			stale = append(stale, t.file)
			if save {
				if err := os.WriteFile(path, []byte(t.text), 0o644); err != nil {
					return stale, err
				}
			}
		}
	}
	return stale, nil
}

type file struct{ file, text string }

// texts are the files of a shape as they should be.
func (s *shape) texts(root string) ([]file, error) {
	fields := s.fields()
	list := []file{
		{s.inserts, s.insertEmbedded(fields)},
		{"sql/oracle/query/" + filepath.Base(s.inserts), s.insertLarge(fields)},
	}
	for _, l := range s.lists {
		text, err := s.selected(root, l, fields)
		if err != nil {
			return nil, err
		}
		list = append(list, file{l.file, text})
	}
	table, err := s.tables(root, fields)
	if err != nil {
		return nil, err
	}
	views, err := s.views(root, fields)
	if err != nil {
		return nil, err
	}
	list = append(list, file{largeTables, table}, file{largeViews, views})
	added, err := s.embedded(root, fields)
	return append(list, added...), err
}

// names are columns in the order in which a statement has them: those with bodies come
// last, for the larger database binds nothing behind one.
func (s *shape) names(fields []field, bodies bool) (list []string) {
	for _, f := range fields {
		if f.kind != body {
			list = append(list, f.name)
		}
	}
	list = append(append(list, s.kept...), s.sums...)
	for _, f := range fields {
		if bodies && f.kind == body {
			list = append(list, f.name)
		}
	}
	return list
}

// insertEmbedded has the values by position, as rows.Columns gives them.
func (s *shape) insertEmbedded(fields []field) string {
	names := []string{"INSTANCE_NO"}
	for _, f := range fields {
		if f.name != "INSTANCE_ID" || !s.numbered {
			names = append(names, f.name)
		}
	}
	names = append(names, s.sums...)
	return wrapped("insert into "+s.table+" (", names, ")") + "values (" + strings.TrimSuffix(strings.Repeat("?, ", len(names)), ", ") + ")\n"
}

// insertLarge has them by name.
func (s *shape) insertLarge(fields []field) string {
	var names, values []string
	if s.order != "" {
		names, values = []string{s.order}, []string{s.next}
	}
	for _, name := range s.names(fields, true) {
		value := ":" + name
		if i := slices.IndexFunc(fields, func(f field) bool { return f.name == name }); i >= 0 && fields[i].kind == moment {
			value = "CAST(:" + name + " AS TIMESTAMP(6))"
		}
		names, values = append(names, name), append(values, value)
	}
	return wrapped("insert into "+s.table+" (", names, ")") + wrapped("values (", values, ")")
}

// wrapped is a list in lines.
func wrapped(head string, list []string, tail string) string {
	const width = 160
	var b strings.Builder
	line := head
	for i, x := range list {
		if i < len(list)-1 {
			x += ","
		} else {
			x += tail
		}
		switch {
		case line == head || line == "  ":
			line += x
		case len(line)+len(x) < width:
			line += " " + x
		default:
			b.WriteString(line + "\n")
			line = "  " + x
		}
	}
	return b.String() + line + "\n"
}

// selected writes the columns of a statement anew, from the first one of the row to the
// line that says from where.
func (s *shape) selected(root string, l list, fields []field) (string, error) {
	have, err := os.ReadFile(filepath.Join(root, l.file))
	if err != nil {
		return "", err
	}
	text := string(have)
	from := strings.Index(text, "\nfrom ")
	some := make([]string, len(fields))
	for i, f := range fields {
		some[i] = f.name
	}
	first := regexp.MustCompile(`(?m)(^select |^  )` + regexp.QuoteMeta(l.alias) + `(` + strings.Join(some, "|") + `), `).FindStringSubmatchIndex(text[:max(from, 0)])
	if from < 0 || first == nil {
		return "", fmt.Errorf("%s: the columns of %s are not found", l.file, s.table)
	}
	var names []string
	for _, name := range s.names(fields, true) {
		if slices.Contains(s.kept, name) {
			continue
		}
		if name == "INSTANCE_ID" && s.numbered && strings.HasPrefix(l.file, "sql/embedded/") {
			names = append(names, "R.INSTANCE_ID") // of the snapshot: the row has a number
			continue
		}
		names = append(names, l.alias+name)
	}
	if l.last != "" {
		names = append(names, l.last)
	}
	return text[:first[2]] + strings.TrimSuffix(wrapped(text[first[2]:first[3]], names, ""), "\n") + text[from:], nil
}

const (
	largeTables = "sql/oracle/schema/10_tables.sql"
	largeViews  = "sql/oracle/schema/30_views.sql"
)

// large is the type of a column of the larger database.
func (f *field) large() string {
	number, bytes := strings.CutSuffix(f.width, "B")
	switch {
	case f.kind == moment:
		return "TIMESTAMP(6)"
	case f.kind == body:
		return "BLOB"
	case f.kind.Kind() == reflect.Int64:
		return "NUMBER(18)"
	case f.kind.Kind() == reflect.Int:
		return "NUMBER(9)"
	case bytes:
		return "VARCHAR2(" + number + ")"
	}
	return "VARCHAR2(" + number + " CHAR)"
}

// tables adds to the script of the larger database the columns that it has not, and has
// the comments say what the fields say.
func (s *shape) tables(root string, fields []field) (string, error) {
	have, err := os.ReadFile(filepath.Join(root, largeTables))
	if err != nil {
		return "", err
	}
	text := string(have)
	for _, f := range fields {
		i := strings.Index(text, "CREATE TABLE "+s.table+" (\n")
		if i < 0 {
			return "", fmt.Errorf("%s has no table %s", largeTables, s.table)
		}
		end := i + strings.Index(text[i:], "\n  CONSTRAINT ")
		column := regexp.MustCompile(`\n  ` + f.name + ` (\S+( CHAR\))?)`).FindStringSubmatch(text[i : end+1])
		if column == nil {
			text = text[:end] + "\n  " + f.name + " " + f.large() + "," + text[end:]
		} else if kind := strings.TrimSuffix(column[1], ","); kind != f.large() {
			return "", fmt.Errorf("%s: %s.%s is %s, its field %s", largeTables, s.table, f.name, kind, f.large())
		}
		text = commented(text, s.table, f, true)
	}
	return text, nil
}

// commented is a script with the comment of a column, behind those of its table.
func commented(text, table string, f field, anew bool) string {
	head := "COMMENT ON COLUMN " + table + "." + f.name + " IS '"
	want := head + strings.ReplaceAll(f.doc, "'", "''") + "'\n/\n"
	if i := strings.Index(text, head); i >= 0 {
		if !anew {
			return text
		}
		return text[:i] + want + text[i+strings.Index(text[i:], "\n/\n")+3:]
	}
	last := strings.LastIndex(text, "COMMENT ON COLUMN "+table+".")
	end := last + strings.Index(text[last:], "\n/\n") + 3
	return text[:end] + want + text[end:]
}

// views adds to the view of operators the columns that it does not show. What it says of
// those that it shows stays: it is a contract.
func (s *shape) views(root string, fields []field) (string, error) {
	have, err := os.ReadFile(filepath.Join(root, largeViews))
	if err != nil {
		return "", err
	}
	text := string(have)
	i := strings.Index(text, "CREATE OR REPLACE VIEW "+s.view+" AS\n")
	if i < 0 {
		return "", fmt.Errorf("%s has no view %s", largeViews, s.view)
	}
	for _, f := range fields {
		end := i + strings.Index(text[i:], "\nFROM "+s.table+" ")
		if slices.Contains(s.hidden, f.name) || regexp.MustCompile(`\b`+f.name+`\b`).MatchString(text[i:end]) {
			continue
		}
		alias := text[end+len("\nFROM "+s.table+" "):][:1]
		text = text[:end] + ",\n       " + alias + "." + f.name + text[end:]
		text = commented(text, s.view, f, false)
	}
	return text, nil
}

// embedded is the script that adds to the embedded store the columns that no script has.
func (s *shape) embedded(root string, fields []field) ([]file, error) {
	scripts, err := filepath.Glob(filepath.Join(root, "sql/embedded/schema/*.sql"))
	if err != nil {
		return nil, err
	}
	var all strings.Builder
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			return nil, err
		}
		all.Write(text)
	}
	known, add := s.made(all.String()), ""
	for _, f := range fields {
		if f.name == "INSTANCE_ID" || known[f.name] { // or the number
			continue
		}
		kind := "text"
		switch {
		case f.kind == body:
			kind = "blob"
		case f.kind.Kind() != reflect.String:
			kind = "integer"
		}
		add += "alter table " + s.table + " add column " + f.name + " " + kind + "; -- " + f.doc + "\n"
	}
	if add == "" {
		return nil, nil
	}
	what := strings.ToLower(strings.TrimPrefix(s.table, "WF_"))
	return []file{{fmt.Sprintf("sql/embedded/schema/%04d_%s.sql", len(scripts)+1, what), add}}, nil
}

// made are the columns of a table that scripts make.
func (s *shape) made(scripts string) map[string]bool {
	known := map[string]bool{}
	if m := regexp.MustCompile(`(?s)create table ` + s.table + ` \((.*?)\n\)`).FindStringSubmatch(scripts); m != nil {
		for _, c := range regexp.MustCompile(`(?m)^  (\w+) `).FindAllStringSubmatch(m[1], -1) {
			known[c[1]] = true
		}
	}
	for _, c := range regexp.MustCompile(`alter table `+s.table+` add column (\w+)`).FindAllStringSubmatch(scripts, -1) {
		known[c[1]] = true
	}
	return known
}
