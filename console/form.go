package console

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// field is one property of a form's schema, as a person fills it in.
type field struct {
	Name, Title, Note string
	Kind              string // text, lines, number, check, choice, date, json
	Choices           []string
	Required          bool
	Value             string
}

// property is what a form's schema says of one property; what a field cannot show
// is checked by the server all the same.
type property struct {
	Type        jsontext.Value   `json:"type"`
	Title       string           `json:"title"`
	Description string           `json:"description"`
	Format      string           `json:"format"`
	Enum        []jsontext.Value `json:"enum"`
	Default     jsontext.Value   `json:"default"`
	MaxLength   int              `json:"maxLength"`
}

// names are the properties of a form's schema in their order, and properties what
// it says of them.
func properties(form json.RawMessage) (names []string, all map[string]property, required []string) {
	var f struct {
		Schema struct {
			Properties jsontext.Value `json:"properties"`
			Required   []string       `json:"required"`
		} `json:"schema"`
	}
	if len(form) == 0 || jsonv2.Unmarshal(form, &f) != nil || len(f.Schema.Properties) == 0 {
		return nil, nil, nil
	}
	if jsonv2.Unmarshal(f.Schema.Properties, &all) != nil {
		return nil, nil, nil
	}
	d := jsontext.NewDecoder(strings.NewReader(string(f.Schema.Properties)))
	if _, err := d.ReadToken(); err != nil {
		return nil, nil, nil
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			break
		}
		names = append(names, name.String())
		if d.SkipValue() != nil {
			break
		}
	}
	return names, all, f.Schema.Required
}

// formOf are the fields of a form, with what was written into them; free says
// that the answer is any JSON, for nothing says what is in it.
func formOf(form json.RawMessage, written url.Values) (fields []field, free bool) {
	names, all, required := properties(form)
	for _, name := range names {
		p := all[name]
		f := field{Name: name, Title: p.Title, Note: p.Description, Kind: kindOf(p), Required: slices.Contains(required, name)}
		if f.Title == "" {
			f.Title = name
		}
		for _, e := range p.Enum {
			if e.Kind() != 'n' || f.Required { // else nothing is chosen for it
				f.Choices = append(f.Choices, p.choice(e))
			}
		}
		if len(p.Default) > 0 {
			f.Value = shownText(p.Default)
		}
		switch {
		case f.Kind == "check" && (!f.Required || len(p.Default) > 0): // what nobody touches says nothing
			f.Kind, f.Choices = "choice", []string{"true", "false"}
		case f.Kind == "text" && (p.MaxLength > longText || strings.Contains(f.Value, "\n")):
			f.Kind = "lines"
		}
		if written != nil {
			f.Value = written.Get("field." + name)
		}
		fields = append(fields, f)
	}
	return fields, len(fields) == 0
}

// longText is how long a text may be that is written into one line.
const longText = 200

func kindOf(p property) string {
	var kind string
	_ = jsonv2.Unmarshal(p.Type, &kind) // of several types: JSON
	switch {
	case len(p.Enum) > 0:
		return "choice"
	case kind == "string" && p.Format == "date":
		return "date"
	case kind == "string":
		return "text"
	case kind == "number" || kind == "integer":
		return "number"
	case kind == "boolean":
		return "check"
	}
	return "json"
}

// choice is what a value of an enum is called: as JSON, where another of them looks the same.
func (p property) choice(of jsontext.Value) string {
	same := 0
	for _, e := range p.Enum {
		if shownText(e) == shownText(of) {
			same++
		}
	}
	if same > 1 {
		return string(of)
	}
	return shownText(of)
}

// shownText is a JSON value as a person reads it: a text without its quotes.
func shownText(v jsontext.Value) string {
	var s string
	if v.Kind() == '"' && jsonv2.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// answerOf is the JSON that a filled form stands for. What was left empty is left
// out. Numbers stay as they were written.
func answerOf(form json.RawMessage, written url.Values, what string) (json.RawMessage, error) {
	names, all, required := properties(form)
	if len(names) == 0 {
		return data(written.Get("data"), what)
	}
	answer := map[string]jsontext.Value{}
	var places []problem.Place
	for _, name := range names {
		value, err := valueOf(all[name], asWritten(all[name], written.Get("field."+name)), slices.Contains(required, name))
		switch {
		case err != "":
			places = append(places, problem.Place{Pointer: "/" + name, Detail: err})
		case value != nil:
			answer[name] = value
		}
	}
	if len(places) > 0 {
		p := problem.New(problem.Invalid, "console.form", "the form is not filled in as it should be")
		p.Where = places
		return nil, p
	}
	return jsonv2.Marshal(answer, jsonv2.Deterministic(true))
}

// asWritten is what a field says: of a text and of a choice each blank counts, and around a
// number, a date or JSON it says nothing.
func asWritten(p property, text string) string {
	if kind := kindOf(p); kind == "text" || kind == "choice" {
		return lines(text)
	}
	return strings.TrimSpace(text)
}

// lines is a text as its writer sees it: browsers end lines by CRLF, whatever stood there.
func lines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// valueOf is the value that a text stands for, nil for none.
func valueOf(p property, text string, required bool) (value jsontext.Value, wrong string) {
	quoted := func(s string) jsontext.Value {
		v, _ := jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "�"))
		return v
	}
	kind := kindOf(p)
	switch {
	case kind == "check" && (text == "true" || text == "false"):
		return jsontext.Value(text), ""
	case kind == "check" && text != "":
		return nil, "is neither true nor false"
	case kind == "check" && required && len(p.Default) == 0:
		return jsontext.Value("false"), ""
	case text == "":
		return nil, ""
	case kind == "choice":
		for _, e := range p.Enum {
			if p.choice(e) == text {
				return e, ""
			}
		}
		return nil, "is none of the choices"
	case kind == "number":
		if v := jsontext.Value(text); v.IsValid() && v.Kind() == '0' {
			return v, ""
		}
		return nil, "is no number, such as 12 or 3.5"
	case kind == "json":
		if v := jsontext.Value(text); v.IsValid() {
			return v, ""
		}
		return nil, "is no JSON; texts are quoted"
	}
	return quoted(text), ""
}
