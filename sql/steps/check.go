package steps

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/nearest"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// Codes of what is found in a document before it is published.
const (
	codeUnknown   = "step.unknown"
	codeArguments = "step.arguments"
)

// Use is a call of a step as a document writes it: what is known of it before it runs.
type Use struct {
	Target string                     // KIND/NAME
	Args   []string                   // the names of its arguments
	Known  map[string]json.RawMessage // those whose value is known
	Open   bool                       // more arguments are known only when it runs
	Out    []string                   // the out-parameters that it asks for
}

// Lists reports whether anything of the kind of a target is listed.
func (s *Set) Lists(target string) bool {
	_, names, _ := s.listed(target)
	return len(names) > 0
}

// listed are the names of the kind of a target, and how one is listed.
func (s *Set) listed(target string) (what string, names []string, hint string) {
	kind, name, _ := strings.Cut(target, "/")
	switch kind {
	case KindSQL:
		return "statement", slices.Sorted(maps.Keys(s.statements)), "put it into a file " + clip(name) + ".sql of the folder that steps.sql names"
	case KindGo:
		return "Go function", slices.Sorted(maps.Keys(s.functions)), "the program that embeds the node registers it"
	case KindPLSQL:
		return "procedure", s.procedures, "list it in steps.plsql"
	}
	return "step", nil, "steps are of sql, plsql and go"
}

// Check says what is wrong with a call: its step is not listed, or it does not give the
// parameters of a statement. The parameters of procedures are the database's to know.
// Pointers are below the call's "with".
func (s *Set) Check(u Use) []problem.Place {
	kind, name, _ := strings.Cut(u.Target, "/")
	if s.Find(u.Target) != nil {
		what, names, hint := s.listed(u.Target)
		return []problem.Place{{
			Pointer: "/" + fieldOf[kind], Code: codeUnknown, Detail: fmt.Sprintf("no %s %s is listed on this node", what, clip(name)), Hint: Choice(name, names) + "; " + hint,
		}}
	}
	if kind != KindSQL || u.Open {
		return nil
	}
	var found []problem.Place
	st := s.statements[name]
	for _, p := range st.Params {
		if !slices.Contains(u.Args, p) {
			found = append(found, argument("/args", Choice("", st.Params), "statement %s needs the argument %s", name, p))
		}
	}
	for _, a := range u.Args {
		if !slices.Contains(st.Params, a) {
			found = append(found, argument(at("args", a), Choice(a, st.Params), "statement %s has no parameter %s", name, clip(a)))
		}
	}
	return found
}

// fieldOf is the argument of a call that names its step.
var fieldOf = map[string]string{KindSQL: "statement", KindPLSQL: "procedure", KindGo: "function"}

func argument(pointer, hint, format string, args ...any) problem.Place {
	return problem.Place{Pointer: pointer, Code: codeArguments, Detail: fmt.Sprintf(format, args...), Hint: hint}
}

// shownNames bounds how many names a hint lists.
const shownNames = 10

// Choice is what a name may have been meant for.
func Choice(name string, names []string) string {
	if len(names) == 0 {
		return "there are none"
	}
	some := slices.Clone(names[:min(len(names), shownNames)])
	for i := range some {
		some[i] = clip(some[i])
	}
	list := "there are " + strings.Join(some, ", ")
	if more := len(names) - len(some); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	if near, ok := nearest.Name(name, names); ok {
		return "did you mean " + near + "? " + list
	}
	return list
}

// at is a pointer to a field below another.
func at(field, name string) string {
	return "/" + field + "/" + strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// clip keeps a text short enough to be shown.
func clip(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
