package rows

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Dialect is how a database writes what differs.
type Dialect struct {
	Bind  func(n int) string // the place of the nth argument, from 1
	Limit string             // the clause after the order; its ? is the bind
}

// Select is one bounded select: a head, conditions, an order.
type Select struct {
	Args []any

	dialect Dialect
	text    strings.Builder
	and     bool
}

// Select begins one with a head that has binds for args.
func (d Dialect) Select(head string, args ...any) *Select {
	s := &Select{dialect: d, Args: args}
	s.text.WriteString(head)
	return s
}

// Text is the select as the database reads it.
func (s *Select) Text() string { return s.text.String() }

// Where adds a condition; each ? in it is the bind of the next argument.
func (s *Select) Where(condition string, args ...any) {
	if s.and {
		s.text.WriteString(" and ")
	} else {
		s.text.WriteString("\nwhere ")
	}
	s.and = true
	s.Add(condition, args...)
}

// Add adds a part of the text as it is, with its binds.
func (s *Select) Add(part string, args ...any) {
	for _, a := range args {
		before, after, _ := strings.Cut(part, "?")
		s.Args = append(s.Args, a)
		s.text.WriteString(before + s.dialect.Bind(len(s.Args)))
		part = after
	}
	s.text.WriteString(part)
}

// Equals adds a condition unless value is empty.
func (s *Select) Equals(column, value string) {
	if value != "" {
		s.Where(column+" = ?", value)
	}
}

// Order ends the select.
func (s *Select) Order(by string, limit int) {
	s.Add("\norder by "+by+" "+s.dialect.Limit, limit)
}

// Behind has a page go on in falling order of a number.
func (s *Select) Behind(column, after string) error {
	if after == "" {
		return nil
	}
	n, _, err := Mark(after)
	s.Where(column+" < ?", n)
	return err
}

// Mark reads the end of a page: a number and what follows it.
func Mark(after string) (n int64, rest string, err error) {
	number, rest, _ := strings.Cut(after, ".")
	if n, err = strconv.ParseInt(number, 10, 64); err != nil || n < 0 {
		err = problem.New(problem.Invalid, "page.invalid", "%.64q is not the end of a page", after)
	}
	return n, rest, err
}

// Marks reads the end of a page that is two numbers.
func Marks(after string) (a, b int64, err error) {
	a, rest, err := Mark(after)
	b, _, errB := Mark(rest)
	return a, b, cmp.Or(err, errB)
}
