package lists

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/attribute"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Filter writes the conditions of a list of instances, or of dead letters, as a store names them. What people
// have written is bound, never a part of the text.
type Filter struct {
	Alias string                                   // of the table, with its dot
	Key   string                                   // the column by which WF_ATTRIBUTES knows an instance
	Time  func(t time.Time) (bind string, arg any) // how a moment is compared
	// Newest is the condition on the newest backend.MaxSearched instances with an error, at which a list looks
	// for a text; "" = at all, as a plan does.
	Newest string
}

// columns are what fields of filters are in WF_INSTANCES.
var columns = map[string]string{
	"state": "STATE", "status": "STATUS", "businessKey": "BUSINESS_KEY", "startedAt": "STARTED_ON_UTC", "updatedAt": "UPDATED_ON_UTC",
}

// Where adds what a query asks for.
func (f *Filter) Where(r *rows.Select, q *backend.InstanceQuery) {
	r.Equals(f.Alias+"DEFINITION", q.Definition)
	r.Equals(f.Alias+"DEFINITION_VERSION", q.Version)
	r.Equals(f.Alias+"STATUS", q.Status)
	if q.Live {
		r.Where(f.Alias + "ENDED_ON_UTC is null")
	}
	r.Equals(f.Alias+"STATE", q.State)
	r.Equals(f.Alias+"BUSINESS_KEY", q.BusinessKey)
	r.Equals(f.Alias+"PARENT_ID", q.ParentID)
	if q.ErrorCode != "" || q.Text != "" {
		r.Where(f.Alias + "ERROR_TYPE is not null") // which has an index
	}
	if q.ErrorCode != "" {
		of := f.Alias + "ERROR_TYPE"
		r.Where("("+of+" = ? or substr("+of+", length("+of+") - length(?) + 1) = ?)", q.ErrorCode, "/"+q.ErrorCode, "/"+q.ErrorCode)
	}
	if q.Text != "" {
		r.Where("instr("+f.Alias+"ERROR_DETAIL, ?) > 0", q.Text)
		if f.Newest != "" {
			r.Where(f.Newest)
		}
	}
	f.before(r, "UPDATED_ON_UTC", q.Before)
	Within(r, f.Alias+"DEFINITION", q.Scope)
	for i := range q.Where {
		if c := &q.Where[i]; c.IsField() {
			f.field(r, c)
		} else {
			f.attribute(r, c)
		}
	}
}

func (f *Filter) before(r *rows.Select, column string, t time.Time) {
	if !t.IsZero() {
		bind, arg := f.Time(t)
		r.Where(f.Alias+column+" < "+bind, arg)
	}
}

// DeadLetters adds what a query of dead letters asks for; definition is that of the
// instance that one is of.
func (f *Filter) DeadLetters(r *rows.Select, q *backend.DeadLetterQuery, definition string) {
	r.Equals(f.Alias+"QUEUE", q.Queue)
	r.Equals(f.Alias+"REASON", q.Reason)
	r.Equals(f.Alias+"INSTANCE_ID", q.InstanceID)
	if q.Definition != "" {
		r.Where(definition+" = ?", q.Definition)
	}
	if q.Text != "" {
		r.Where("instr("+f.Alias+"DETAIL, ?) > 0", q.Text)
	}
	f.before(r, "DIED_ON_UTC", q.Before)
}

// attribute asks for a value. The few that have one of some values are found by it; how many
// are in a range nobody knows: it is asked of each instance.
func (f *Filter) attribute(r *rows.Select, c *attribute.Condition) {
	own, args := f.Alias+f.Key, []any{c.Name}
	bounds := c.Bounds()
	if bounds == nil {
		for _, v := range c.Values {
			args = append(args, v.Key)
		}
		r.Where(own+" in (select A."+f.Key+" from WF_ATTRIBUTES A where A.NAME = ? and A.VALUE_KEY in ("+marks(len(c.Values))+"))", args...)
		return
	}
	text := "exists (select 1 from WF_ATTRIBUTES A where A." + f.Key + " = " + own + " and A.NAME = ?"
	for _, b := range bounds {
		text += " and A.VALUE_KEY " + b.Operator + " ?"
		args = append(args, b.Key)
	}
	r.Where(text+")", args...)
}

func (f *Filter) field(r *rows.Select, c *attribute.Condition) {
	column, operator := f.Alias+columns[c.Name], c.Operator
	if operator == "!=" {
		operator = "<>"
	}
	var args []any
	bind := "?"
	for i := range c.Values {
		var arg any = c.Values[i].Text
		if c.Values[i].Kind == attribute.Time {
			bind, arg = f.Time(c.Values[i].Moment())
		}
		args = append(args, arg)
	}
	switch operator {
	case "in":
		r.Where(column+" in ("+strings.TrimSuffix(strings.Repeat(bind+", ", len(args)), ", ")+")", args...)
	case "startsWith":
		r.Where("substr("+column+", 1, ?) = ?", len([]rune(c.Values[0].Text)), args[0])
	default:
		r.Where(column+" "+operator+" "+bind, args...)
	}
}

func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

// Ordered adds what a query asks for to a reading in the order of an attribute, and ends it.
func (f *Filter) Ordered(r *rows.Select, q *backend.InstanceQuery) error {
	than, way := ">", ""
	if q.Descending {
		than, way = "<", " desc"
	}
	r.Where("O.NAME = ?", q.OrderBy)
	f.Where(r, q)
	if q.After != "" {
		key, id, err := f.mark(q.After)
		if err != nil {
			return err
		}
		r.Where("O.VALUE_KEY "+than+"= ?", key) // a range, which says where in the index to begin
		r.Where("(O.VALUE_KEY "+than+" ? or O.VALUE_KEY = ? and O."+f.Key+" "+than+" ?)", key, key, id)
	}
	r.Order("O.VALUE_KEY"+way+", O."+f.Key+way, projections.Bounded(q.Limit)+1)
	return nil
}

// mark reads the end of a page.
func (f *Filter) mark(after string) (key []byte, id any, err error) {
	text, rest, _ := strings.Cut(after, ".")
	key, err = hex.DecodeString(text)
	id = rest
	if f.Key == "INSTANCE_NO" && err == nil {
		id, err = strconv.ParseInt(rest, 10, 64)
	}
	if err != nil || len(key) == 0 || rest == "" {
		return nil, nil, problem.New(problem.Invalid, "page.invalid", "%.64q is not the end of a page in this order", after)
	}
	return key, id, nil
}

// OrderedRow is an instance with the value that it is ordered by.
type OrderedRow struct {
	InstanceRow
	Key []byte `db:"VALUE_KEY"`
}

// Item is what the row shows.
func (o OrderedRow) Item() projections.Instance { return o.Instance }

// Mark is where the page behind an instance begins: by its number, where it has one.
func (o OrderedRow) Mark() string {
	id := o.ID
	if o.No != 0 {
		id = strconv.FormatInt(o.No, 10)
	}
	return hex.EncodeToString(o.Key) + "." + id
}
