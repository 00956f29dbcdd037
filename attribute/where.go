package attribute

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Limits of a filter.
const (
	MaxWhere      = 4 << 10 // bytes
	MaxConditions = 16
	MaxIn         = 100 // values of one in
)

// Fields are what a filter may name beside attributes: what every instance has.
var Fields = map[string]Kind{"state": Text, "status": Text, "businessKey": Text, "startedAt": Time, "updatedAt": Time}

// words have a meaning of their own in a filter.
var words = []string{"and", "or", "not", "in", "startsWith", "true", "false", "null"}

var numberForm = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$`)

var nameForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// Named says why something cannot be the name of an attribute; "" = it can.
func Named(name string) string {
	_, field := Fields[name]
	switch {
	case !nameForm.MatchString(name) || len(name) > MaxName:
		return "a name has 1 to 64 letters, digits and _, and begins with a letter"
	case field:
		return "every instance has a field of this name"
	case slices.Contains(words, name):
		return "it is a word of filters"
	}
	return ""
}

// Condition is a part of a filter, which all of its parts fit.
type Condition struct {
	Name     string
	Operator string // =, !=, <, <=, >, >=, in, startsWith
	Values   []Value
	Column   int // where it begins in the filter, from 1
}

// IsField says that the condition is on what every instance has.
func (c *Condition) IsField() bool {
	_, ok := Fields[c.Name]
	return ok
}

// Moment is a value of the kind Time.
func (v *Value) Moment() time.Time {
	at, _ := moment(v.Text) // it is canonical
	return at
}

// Bound is a comparison of a key.
type Bound struct {
	Operator string // =, <>, <, <=, >, >=
	Key      []byte
}

// Bounds are what the key of an attribute must fit, all of them: a range of its kind. Of
// = and in, which are sets, there are none.
func (c *Condition) Bounds() []Bound {
	key := c.Values[0].Key
	first, behind := Bound{">=", key[:1]}, Bound{"<", []byte{key[0] + 1}}
	switch c.Operator {
	case "<", "<=":
		return []Bound{first, {c.Operator, key}}
	case ">", ">=":
		return []Bound{{c.Operator, key}, behind}
	case "!=":
		return []Bound{first, behind, {"<>", key}}
	case "startsWith":
		end := bytes.Clone(key)
		end[len(end)-1]++ // no byte of a text is the last of all bytes
		return []Bound{{">=", key}, {"<", end}}
	}
	return nil
}

// Where reads a filter: conditions with "and" between them. What is none is
// filter.invalid, with the column in its place.
func Where(text string) ([]Condition, error) {
	p := &parser{text: text}
	if len(text) > MaxWhere {
		return nil, p.wrong(MaxWhere, "the filter has %d bytes; it may have %d", len(text), MaxWhere)
	}
	var list []Condition
	for {
		c, err := p.condition()
		if err != nil {
			return nil, err
		}
		if list = append(list, c); len(list) > MaxConditions {
			return nil, p.wrong(0, "the filter has more than %d conditions", MaxConditions)
		}
		token, column := p.next()
		switch token {
		case "":
			return list, nil
		case "and":
		default:
			return nil, p.wrong(column, "%s stands where the filter ends or goes on with and", shown(token))
		}
	}
}

// parser reads a filter.
type parser struct {
	text string
	at   int
}

var tokens = regexp.MustCompile(`^(?:"(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z0-9_.]*|\d{4}-\d\d-\d\d(?:T[0-9:.]+(?:Z|[+-]\d\d:\d\d))?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[<>!]=|[<>=(),])`)

// next is the next token, "" at the end, and where it begins. What is none is a token, too.
func (p *parser) next() (token string, at int) {
	p.at += len(p.text[p.at:]) - len(strings.TrimLeft(p.text[p.at:], " \t\r\n"))
	at = p.at
	if token = tokens.FindString(p.text[at:]); token == "" && at < len(p.text) {
		token = p.text[at:]
		if i := strings.IndexAny(token[1:], " \t\r\n"); i >= 0 {
			token = token[:1+i]
		}
	}
	p.at += len(token)
	return token, at
}

func shown(token string) string {
	if token == "" {
		return "the end"
	}
	const most = 40
	if r := []rune(token); len(r) > most {
		token = string(r[:most]) + "…"
	}
	return token
}

// column is that of a byte, in characters.
func (p *parser) column(at int) int { return utf8.RuneCountInString(p.text[:min(at, len(p.text))]) + 1 }

// wrong is an error at a byte of the filter.
func (p *parser) wrong(at int, format string, args ...any) error {
	e := problem.New(problem.Invalid, "filter.invalid", format, args...).
		WithHint(`write conditions such as: amount > 1000 and state = "Review"`)
	e.Where = []problem.Place{{Pointer: "query.where", Line: 1, Column: p.column(at), Code: "filter.invalid", Detail: e.Detail}}
	return e
}

func (p *parser) condition() (c Condition, err error) {
	name, column := p.next()
	c.Name, c.Column = name, p.column(column)
	if !nameForm.MatchString(name) || len(name) > MaxName || slices.Contains(words, name) {
		return c, p.wrong(column, "%s stands where the name of an attribute is expected", shown(name))
	}
	c.Operator, column = p.next()
	switch c.Operator {
	case "=", "!=", "<", "<=", ">", ">=", "startsWith":
		v, at, err := p.value()
		if err != nil {
			return c, err
		}
		c.Values = []Value{v}
		return c, p.fits(&c, at)
	case "in":
		return c, p.in(&c)
	}
	return c, p.wrong(column, "%s stands where a comparison is expected: =, !=, <, <=, >, >=, in, startsWith", shown(c.Operator))
}

// in reads the values of an in.
func (p *parser) in(c *Condition) error {
	token, at := p.next()
	for separator := "("; ; separator = "," {
		if token != separator {
			return p.wrong(at, `%s stands where %s is expected: in ("a", "b")`, shown(token), separator)
		}
		v, at0, err := p.value()
		if err != nil {
			return err
		}
		if c.Values = append(c.Values, v); len(c.Values) > MaxIn {
			return p.wrong(at0, "in has more than %d values", MaxIn)
		}
		if err := p.fits(c, at0); err != nil {
			return err
		}
		if token, at = p.next(); token == ")" {
			return nil
		}
	}
}

// fits says whether the value read last is one that the condition can have.
func (p *parser) fits(c *Condition, at int) error {
	v := &c.Values[len(c.Values)-1]
	want, field := Fields[c.Name]
	ordered := c.Operator != "=" && c.Operator != "!=" && c.Operator != "in" && c.Operator != "startsWith"
	switch {
	case v.Kind != c.Values[0].Kind:
		return p.wrong(at, "the values of an in are of one type, and %s is a %s beside a %s", shown(v.Text), v.Kind, c.Values[0].Kind)
	case field && v.Kind != want:
		return p.wrong(at, "%s is a %s, and is compared with a %s", c.Name, want, v.Kind)
	case field && v.Kind == Text && ordered:
		return p.wrong(at, "%s has no order: compare it by =, !=, in or startsWith", c.Name)
	case field && v.Text == "":
		return p.wrong(at, "%s is never empty", c.Name)
	case c.Operator == "startsWith" && (v.Kind != Text || v.Text == ""):
		return p.wrong(at, "startsWith takes a text that is not empty")
	case v.Kind == Boolean && ordered:
		return p.wrong(at, "true and false have no order")
	}
	return nil
}

// value reads a literal: a text in quotes, a number, a moment, true or false.
func (p *parser) value() (v Value, at int, err error) {
	token, at := p.next()
	text := token
	switch {
	case token == "true" || token == "false":
		v.Kind = Boolean
	case strings.HasPrefix(token, `"`):
		raw, err := jsontext.AppendUnquote(nil, token)
		if err != nil {
			return v, at, p.wrong(at, "%s is no text: it is written as in JSON, with quotes at both ends", shown(token))
		}
		v.Kind, text = Text, string(raw)
	case len(token) >= len(time.DateOnly) && token[4] == '-':
		v.Kind = Time
	case numberForm.MatchString(token):
		v.Kind = Decimal
	default:
		return v, at, p.wrong(at, `%s stands where a value is expected: "text", 12.5, true, 2026-01-31 or 2026-01-31T12:00:00Z`, shown(token))
	}
	if v.Text, v.Key, err = encode(v.Kind, text); err != nil {
		err = p.wrong(at, "%s", detail(err))
	}
	return v, at, err
}

// Check holds conditions, and the name that a list is ordered by ("" = none), against what the
// versions of a definition declare: filter.attribute says what none has, or has with another type.
func Check(list []Condition, order string, known []Declared) error {
	kinds := map[string][]Kind{}
	for _, d := range known {
		kinds[d.Name] = append(kinds[d.Name], d.Kind)
	}
	unknown := func(name, where string, column int) error {
		e := problem.New(problem.Invalid, "filter.attribute", "no version declares a search attribute %s", shown(name))
		e.Where = []problem.Place{{Pointer: where, Line: 1, Column: column, Code: "filter.attribute", Detail: e.Detail}}
		return e
	}
	for i := range list {
		c := &list[i]
		if c.IsField() {
			continue
		}
		if kinds[c.Name] == nil {
			return unknown(c.Name, "query.where", c.Column)
		}
		if !slices.Contains(kinds[c.Name], c.Values[0].Kind) {
			e := problem.New(problem.Invalid, "filter.attribute", "%s is a %s, and is compared with a %s", c.Name, kinds[c.Name][0], c.Values[0].Kind)
			e.Where = []problem.Place{{Pointer: "query.where", Line: 1, Column: c.Column, Code: "filter.attribute", Detail: e.Detail}}
			return e
		}
	}
	if order != "" && kinds[order] == nil {
		return unknown(order, "query.orderBy", 1)
	}
	return nil
}
