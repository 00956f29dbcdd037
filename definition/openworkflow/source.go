package openworkflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/problem"
	"go.yaml.in/yaml/v3"
)

// Limits of a source text.
const (
	MaxSourceBytes = 1 << 20
	MaxDepth       = 64  // nesting of the document
	MaxFindings    = 100 // reported at once
)

// position is where a value stands in the source. Inside is the column of the
// first character of a string that stands in one line as it is written, or 0.
type position struct {
	line, column, inside int
}

// source is a document as JSON, with the place of every value and key.
type source struct {
	file     string
	root     any
	at, keys map[string]position // by JSON pointer
	findings []problem.Place
	dropped  int // findings beyond MaxFindings
}

// report adds a finding about the value at a pointer.
func (s *source) report(pointer, code, hint, format string, args ...any) {
	s.place(s.at[pointer], pointer, code, hint, fmt.Sprintf(format, args...))
}

// reportKey adds a finding about the key at a pointer.
func (s *source) reportKey(pointer, code, hint, format string, args ...any) {
	p, ok := s.keys[pointer]
	if !ok {
		p = s.at[pointer]
	}
	s.place(p, pointer, code, hint, fmt.Sprintf(format, args...))
}

func (s *source) place(p position, pointer, code, hint, detail string) {
	if len(s.findings) >= MaxFindings {
		s.dropped++
		return
	}
	s.findings = append(s.findings, problem.Place{
		File: s.file, Line: p.line, Column: p.column, Pointer: pointer, Code: code, Detail: detail, Hint: hint,
	})
}

// join appends a key to a JSON pointer.
func join(pointer, key string) string {
	return pointer + "/" + strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// placed has errors of a template at run time say where it stands, and in which line.
func (s *source) placed(at string, t *jq.Template) *jq.Template {
	t.Placed(func(below string) string {
		pos, ok := s.at[at+below]
		if !ok || pos.line == 0 {
			return at + below
		}
		return at + below + " (line " + strconv.Itoa(pos.line) + ")"
	})
	return t
}

func item(pointer string, i int) string { return pointer + "/" + strconv.Itoa(i) }

// read makes a source of a text; what it refuses is among the findings.
func read(file string, text []byte) *source { return readUpTo(file, text, MaxSourceBytes) }

func readUpTo(file string, text []byte, most int) *source {
	s := &source{file: file, at: map[string]position{}, keys: map[string]position{}}
	if len(text) > most {
		s.place(position{}, "", codeYAML, "", fmt.Sprintf("source of %d bytes exceeds %d", len(text), most))
		return s
	}
	if i := invalid(text); i >= 0 {
		line := bytes.Count(text[:i], []byte("\n")) + 1
		column := utf8.RuneCount(text[bytes.LastIndexByte(text[:i], '\n')+1:i]) + 1
		s.place(position{line: line, column: column}, "", codeYAML, "save the file as UTF-8", "source is not UTF-8")
		return s
	}
	n, err := nodes(unescape(text))
	if err != nil {
		s.place(position{line: lineOf(err, text), column: 1}, "", codeYAML, "", linePrefix.ReplaceAllString(err.Error(), ""))
		return s
	}
	if n == nil {
		s.place(position{line: 1, column: 1}, "", codeYAML, "", "source is empty")
		return s
	}
	s.root = s.value(n, "", 0)
	return s
}

func invalid(text []byte) int {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

var errDocuments = errors.New("source has more than one document")

// nodes reads exactly one YAML document. The YAML package can panic on some
// texts that are not YAML; that is an error of the text.
func nodes(text []byte) (n *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			n, err = nil, fmt.Errorf("source cannot be read as YAML: %.100s", fmt.Sprint(p))
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	if err := d.Decode(&doc); err != nil {
		if err == io.EOF {
			return nil, nil
		}
		return nil, err
	}
	if err := d.Decode(&more); err == nil {
		return nil, fmt.Errorf("line %d: %w", max(more.Line, 1), errDocuments)
	} else if err != io.EOF {
		return nil, err
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, nil
	}
	return doc.Content[0], nil
}

var linePrefix = regexp.MustCompile(`^(yaml: )?(line \d+: )?`)

var lineInError = regexp.MustCompile(`line (\d+)`)

// ofParser are the errors for which the YAML package counts lines from 0: those
// of its parser, and not those of its scanner.
var ofParser = regexp.MustCompile(`did not find expected (',' or '[\]}]'|key|'-' indicator|node content|<document start>|<stream-start>)`)

func lineOf(err error, text []byte) int {
	m := lineInError.FindStringSubmatch(err.Error())
	if m == nil {
		return 1
	}
	n, _ := strconv.Atoi(m[1])
	if ofParser.MatchString(err.Error()) {
		n++
	}
	return min(n, bytes.Count(text, []byte("\n"))+1) // the end of a text is behind its last line
}

var surrogates = regexp.MustCompile(`\\+u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`)

// unescape writes out the pairs of \u escapes that JSON has for characters
// beyond 16 bits; YAML does not know them.
func unescape(text []byte) []byte {
	if !bytes.Contains(text, []byte(`\u`)) || !json.Valid(text) {
		return text
	}
	return surrogates.ReplaceAllFunc(text, func(m []byte) []byte {
		slashes := bytes.IndexByte(m, 'u')
		if slashes%2 == 0 {
			return m // an escaped backslash, and then text
		}
		hi, _ := strconv.ParseUint(string(m[slashes+1:slashes+5]), 16, 16)
		lo, _ := strconv.ParseUint(string(m[slashes+7:]), 16, 16)
		return utf8.AppendRune(m[:slashes-1:slashes-1], utf16.DecodeRune(rune(hi), rune(lo)))
	})
}

// value converts a node to a JSON value and remembers where it was.
func (s *source) value(n *yaml.Node, pointer string, depth int) any {
	pos := position{line: n.Line, column: n.Column}
	switch n.Style {
	case 0:
		pos.inside = n.Column
	case yaml.SingleQuotedStyle, yaml.DoubleQuotedStyle:
		pos.inside = n.Column + 1
	}
	s.at[pointer] = pos
	switch {
	case depth > MaxDepth:
		s.report(pointer, codeYAML, "", "document is nested deeper than %d", MaxDepth)
		return nil
	case n.Kind == yaml.AliasNode:
		s.report(pointer, codeYAML, "write the value out", "aliases are not part of the language")
		return nil
	case n.Anchor != "":
		s.report(pointer, codeYAML, "write the value out where it is needed", "anchors are not part of the language")
		return nil
	case n.Style&yaml.TaggedStyle != 0:
		s.report(pointer, codeYAML, "", "tags (%s) are not part of the language", n.Tag)
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		return s.mapping(n, pointer, depth)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			list[i] = s.value(c, item(pointer, i), depth+1)
		}
		return list
	}
	return s.scalar(n, pointer)
}

func (s *source) mapping(n *yaml.Node, pointer string, depth int) any {
	m := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		p := join(pointer, k.Value)
		pos := position{line: k.Line, column: k.Column}
		switch _, isText := plain(k).(string); {
		case k.Kind == yaml.AliasNode || k.Anchor != "" || k.Style&yaml.TaggedStyle != 0:
			s.place(pos, pointer, codeYAML, "", "a key cannot have an alias, an anchor or a tag")
			continue
		case k.Kind == yaml.ScalarNode && k.Tag == "!!merge":
			s.place(pos, pointer, codeYAML, "write the fields out", "merge keys (<<) are not part of the language")
			continue
		case k.Kind != yaml.ScalarNode || !isText:
			s.place(pos, pointer, codeYAML, "quote it", fmt.Sprintf("key %s is not a string", clip(k.Value)))
			continue
		}
		if _, twice := m[k.Value]; twice {
			s.place(pos, p, codeYAML, fmt.Sprintf("the first one is in line %d", s.keys[p].line), fmt.Sprintf("key %s is there twice", clip(k.Value)))
			continue
		}
		s.keys[p] = pos
		m[k.Value] = s.value(v, p, depth+1)
	}
	return m
}

func (s *source) scalar(n *yaml.Node, pointer string) any {
	v := plain(n)
	if text, ok := v.(string); ok && n.Style == 0 && oddNumber.MatchString(text) {
		s.report(pointer, codeYAML, "quote it if it is text; write a decimal number if it is a number", "%s may be meant as a number", clip(text))
	}
	return v
}

var (
	decimal   = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	oddNumber = regexp.MustCompile(`^[-+]?(0[0-9_]+|0x[0-9a-fA-F_]+|0o[0-7_]+|0b[01_]+|[0-9][0-9_]*_[0-9_]*|\.[0-9]+([eE][-+]?[0-9]+)?|[0-9]+\.|\.(inf|Inf|INF))$|^\.(nan|NaN|NAN)$`)
)

// plain gives what a scalar means in JSON. Only what JSON itself has is more
// than text: a date stays text, a number keeps its digits.
func plain(n *yaml.Node) any {
	if n.Kind != yaml.ScalarNode || n.Style != 0 {
		return n.Value
	}
	switch n.Value {
	case "", "~", "null", "Null", "NULL":
		return nil
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	}
	if decimal.MatchString(n.Value) {
		return json.Number(strings.TrimPrefix(n.Value, "+"))
	}
	return n.Value
}

func clip(s string) string {
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:57], "") + "..."
	}
	return strconv.Quote(s)
}
