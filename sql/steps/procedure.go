package steps

import (
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Parameter is one of a procedure, as the database describes it.
type Parameter struct {
	Name     string
	Mode     string // IN, OUT or IN/OUT
	Type     string // such as VARCHAR2, PL/SQL RECORD
	Optional bool   // it has a default
}

// Signature is a procedure, or one overload of it.
type Signature struct {
	Function bool
	Params   []Parameter
}

// classes are the types that JSON is bound to, and what each takes. A type that is not
// here is bound to nothing: records, collections, cursors, LOBs of bytes, and booleans,
// which a call cannot bind before 23ai.
var classes = map[string]func(value jsontext.Value, typ string) string{
	"VARCHAR2": anyText, "NVARCHAR2": anyText, "CHAR": anyText, "NCHAR": anyText, "VARCHAR": anyText, "STRING": anyText, "LONG": anyText,
	"CLOB": anyText, "NCLOB": anyText, "ROWID": onlyText, "UROWID": onlyText,
	"NUMBER": numeric, "INTEGER": numeric, "FLOAT": numeric, "BINARY_FLOAT": numeric, "BINARY_DOUBLE": numeric,
	"BINARY_INTEGER": whole, "PLS_INTEGER": whole,
	"DATE": onlyText, "RAW": hexadecimal,
}

// classOf is what takes values of a type; nil = nothing does.
func classOf(typ string) func(value jsontext.Value, typ string) string {
	if strings.HasPrefix(typ, "TIMESTAMP") || strings.HasPrefix(typ, "INTERVAL ") {
		return onlyText
	}
	return classes[typ]
}

// Fits says what is wrong with the arguments of a call of a procedure. Of overloads, the
// call must give the parameters of exactly one: PL/SQL would tell others apart by types,
// and those of values that an expression gives are not known.
func (u Use) Fits(list []Signature) []problem.Place {
	_, name, _ := strings.Cut(u.Target, "/")
	list = slices.Clone(list)
	if list = slices.DeleteFunc(list, func(s Signature) bool { return s.Function }); len(list) == 0 {
		return []problem.Place{argument("/procedure", "call a procedure, with an out-parameter for the result", "%s is a function", name)}
	}
	var fitting []Signature
	for _, s := range list {
		if len(u.named(name, s)) == 0 {
			fitting = append(fitting, s)
		}
	}
	switch {
	case len(list) == 1 && len(fitting) == 0:
		return u.named(name, list[0])
	case len(fitting) == 0:
		var all []string
		for _, s := range list[:min(len(list), shownNames)] {
			all = append(all, "("+s.String()+")")
		}
		return []problem.Place{argument("/procedure", "there are "+strings.Join(all, ", "), "none of the %d overloads of %s has these arguments", len(list), name)}
	case len(fitting) > 1 && u.Open:
		return nil // the names will tell
	case len(fitting) > 1:
		return []problem.Place{argument("/procedure", "they differ only in types or defaults: give one a name of its own, or arguments that only one of them has",
			"%d overloads of %s take these arguments", len(fitting), name)}
	}
	return u.typed(fitting[0])
}

func (s Signature) String() string {
	var all []string
	for _, p := range s.Params {
		all = append(all, strings.ToLower(p.Name)+" "+p.Mode+" "+p.Type)
	}
	return strings.Join(all, ", ")
}

// named says what is wrong with the names and directions of a call's arguments.
func (u Use) named(name string, s Signature) (found []problem.Place) {
	var names []string
	for _, p := range s.Params {
		names = append(names, strings.ToLower(p.Name))
	}
	seen := map[string]string{}
	check := func(pointer, field, given string) *Parameter {
		upper := strings.ToUpper(given)
		if other, twice := seen[field+upper]; twice {
			found = append(found, argument(pointer, "names of parameters are not case-sensitive", "%s is %s once more", clip(given), clip(other)))
		}
		seen[field+upper] = given
		i := slices.IndexFunc(s.Params, func(p Parameter) bool { return p.Name == upper })
		if i < 0 {
			found = append(found, argument(pointer, Choice(given, names), "procedure %s has no parameter %s", name, clip(given)))
			return nil
		}
		return &s.Params[i]
	}
	for _, a := range u.Args {
		if p := check(at("args", a), "args", a); p != nil && p.Mode == "OUT" {
			found = append(found, argument(at("args", a), "name it in out", "parameter %s of %s is OUT: it takes no value", a, name))
		}
	}
	for i, o := range u.Out {
		pointer := at("out", strconv.Itoa(i))
		if p := check(pointer, "out", o); p != nil && p.Mode == "IN" {
			found = append(found, argument(pointer, "give it a value in args", "parameter %s of %s is IN: nothing comes out of it", o, name))
		}
	}
	for _, p := range s.Params {
		_, in := seen["args"+p.Name]
		_, out := seen["out"+p.Name]
		switch {
		case in || out || p.Optional:
		case p.Mode == "OUT":
			found = append(found, argument("/out", "write out: ["+strings.ToLower(p.Name)+"]", "procedure %s has the out-parameter %s, which the call does not name", name, strings.ToLower(p.Name)))
		case !u.Open:
			found = append(found, argument("/args", Choice("", names), "procedure %s needs the argument %s", name, strings.ToLower(p.Name)))
		}
	}
	return found
}

// typed says which parameters cannot be bound, and which values they do not take.
func (u Use) typed(s Signature) (found []problem.Place) {
	for _, p := range s.Params {
		pointer, given := "", ""
		for _, a := range u.Args {
			if strings.EqualFold(a, p.Name) {
				pointer, given = at("args", a), a
			}
		}
		for i, o := range u.Out {
			if given == "" && strings.EqualFold(o, p.Name) {
				pointer = at("out", strconv.Itoa(i))
			}
		}
		if pointer == "" {
			continue
		}
		takes := classOf(p.Type)
		if takes == nil {
			found = append(found, argument(pointer, "call a procedure of your own around it, with texts and numbers", "parameter %s is of the type %s, which no JSON is bound to", strings.ToLower(p.Name), p.Type))
			continue
		}
		if value, known := u.Known[given]; known && given != "" {
			if why := takes(jsontext.Value(value), p.Type); why != "" {
				found = append(found, argument(pointer, "", "parameter %s is of the type %s: %s", strings.ToLower(p.Name), p.Type, why))
			}
		}
	}
	return found
}

// anyText takes everything: an object or an array is its JSON text.
func anyText(jsontext.Value, string) string { return "" }

// onlyText takes texts, whose form the session's settings say.
func onlyText(v jsontext.Value, _ string) string {
	switch v.Kind() {
	case '"', 'n':
		return ""
	}
	return "it takes a text, and not " + kind(v)
}

var number = regexp.MustCompile(`^\s*[+-]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?\s*$`)

// numeric takes numbers, their texts, and booleans as 1 and 0.
func numeric(v jsontext.Value, typ string) string {
	switch v.Kind() {
	case 'n', 't', 'f':
		return ""
	case '"':
		var s string
		if jsonv2.Unmarshal(v, &s) == nil && (s == "" || number.MatchString(s)) {
			return ""
		}
		return clip(string(v)) + " is no number"
	case '0':
		const most = 1e126 // a NUMBER
		if f, err := strconv.ParseFloat(string(v), 64); err != nil || !strings.HasPrefix(typ, "BINARY_") && (f >= most || f <= -most) {
			return clip(string(v)) + " is too large"
		}
		return ""
	}
	return "it takes a number, and not " + kind(v)
}

// whole takes what numeric does, of 32 bits.
func whole(v jsontext.Value, typ string) string {
	if why := numeric(v, typ); why != "" || v.Kind() != '0' {
		return why
	}
	if f, _ := strconv.ParseFloat(string(v), 64); f >= 1<<31 || f < -1<<31 {
		return clip(string(v)) + " has more than 32 bits"
	}
	return ""
}

// hexadecimal takes texts of hexadecimal digits.
func hexadecimal(v jsontext.Value, typ string) string {
	var s string
	if why := onlyText(v, typ); why != "" || jsonv2.Unmarshal(v, &s) != nil {
		return why
	}
	if _, err := hex.DecodeString(strings.Repeat("0", len(s)%2) + s); err != nil {
		return clip(string(v)) + " are no hexadecimal digits"
	}
	return ""
}

// kind is a value's, in words.
func kind(v jsontext.Value) string {
	switch v.Kind() {
	case 't', 'f':
		return "a boolean"
	case '0':
		return "a number"
	case '"':
		return "a text"
	case '{':
		return "an object"
	}
	return "an array"
}
