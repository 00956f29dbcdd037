// Package survey is what the check of a store finds in its rows: what is
// damaged, and what does not say what it was made of.
package survey

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
)

// Table is what a check has found in the rows of a table, which it reads
// as the nodes do.
type Table struct {
	Check string // its name
	Rows  string // what the rows are; empty = the check is named so
	fix   string // empty = a backup

	count, wrong int
	named        []string // the first that are wrong
}

// surveyMax is how many damaged rows a finding names.
const surveyMax = 10

// Row counts a row that was read with err. What says that the row is damaged is
// kept; anything else, which says that it could not be read, comes back.
func (s *Table) Row(err error) error {
	var p *problem.Error
	if err != nil && !errors.As(err, &p) {
		return err
	}
	s.count++
	switch {
	case p == nil || p.Kind == problem.Unavailable: // a newer program's
	case p.Code == "signal.corrupt" || p.Kind == problem.Internal:
		s.found(err.Error())
	}
	return nil
}

// found notes what is wrong with a row that is counted.
func (s *Table) found(what string) {
	if s.wrong++; len(s.named) < surveyMax {
		s.named = append(s.named, what)
	}
}

// Finding is what the survey came to.
func (s *Table) Finding() Finding {
	rows := cmp.Or(s.Rows, s.Check)
	if s.wrong == 0 {
		return Finding{Check: s.Check, Severity: Good, Found: fmt.Sprintf("%d %s", s.count, rows)}
	}
	return Finding{
		Check: s.Check, Severity: Wrong,
		Found: fmt.Sprintf("%d of %d %s are damaged: %s", s.wrong, s.count, rows, strings.Join(s.named, "; ")),
		Fix:   cmp.Or(s.fix, "restore these rows from a backup; docs/reference/errors.md says of each code what the nodes do with them"),
	}
}

// VerifyMessage says what is wrong with the body of a message that waits in a
// queue, as the node that receives it would hear.
func VerifyMessage(id string, body []byte) error {
	_, err := signal.Decode(body)
	if err == nil {
		return nil
	}
	return problem.Wrap(err, problem.KindOf(err), problem.CodeOf(err), "message %s", id)
}
