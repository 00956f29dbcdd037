package openworkflow

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/aqueduct-engine/aqueduct/jq"
)

// pathTemplate is the path of an endpoint with its variables, by which requests
// for different things are known as the same; ok is false when it has none.
func pathTemplate(v any) (path string, ok bool) {
	if m, isObject := v.(map[string]any); isObject {
		v = m["uri"]
	}
	s, _ := v.(string)
	if _, wrapped := jq.Wrapped(s); wrapped {
		return "", false
	}
	from, to := pathIn(s)
	path = s[from:to]
	return path, variable.MatchString(path)
}

// pathIn says where the path of a URI begins and ends.
func pathIn(s string) (from, to int) {
	if i := strings.Index(s, "://"); i >= 0 {
		from = i + len("://")
	}
	i := strings.IndexAny(s[from:], "/?#")
	if i < 0 || s[from+i] != '/' {
		return len(s), len(s)
	}
	from += i
	if i = strings.IndexAny(s[from:], "?#"); i >= 0 {
		return from, from + i
	}
	return from, len(s)
}

var (
	variable = regexp.MustCompile(`\{([^{}]*)\}`)
	varname  = regexp.MustCompile(`^[a-zA-Z0-9_.-]+$`)
	scheme   = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*:`)
)

// uri makes of a URI template the expression that fills it in from the task's
// data, so that a command holds its final URI. Characters that have a meaning
// in a URI are escaped, and a missing value is an error: an empty one would
// address something else. So would, in a path, one that is empty, a dot or two.
func (c *compiler) uri(at, s string) string {
	switch {
	case s == "" || strings.ContainsAny(s, " \t\r\n"):
		c.report(at, codeType, "", "%s is not a URI", clip(s))
		return s
	case scheme.MatchString(s) && !strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "https://"):
		c.report(at, codeType, "begin it with https:// or http://", "%s is not an HTTP URI", clip(s))
		return s
	case strings.ContainsAny(variable.ReplaceAllString(s, ""), "{}"):
		c.report(at, codeType, "", "%s has a brace without its other", clip(s))
		return s
	}
	found := variable.FindAllStringSubmatchIndex(s, -1)
	if len(found) == 0 {
		return s
	}
	var parts []string
	path, after := pathIn(s)
	end := 0
	for _, m := range found {
		name := s[m[2]:m[3]]
		if !varname.MatchString(name) {
			c.report(at, codeUnsupported, "write {name}", "URI templates other than {name} are outside the supported profile: {%s}", name)
			return s
		}
		if m[0] > end {
			parts = append(parts, literal(s[end:m[0]]))
		}
		get := "v("
		if path <= m[0] && m[0] < after && s[m[0]-1] == '/' && (m[1] == len(s) || strings.IndexByte("/?#", s[m[1]]) >= 0) {
			get = "p("
		}
		parts = append(parts, get+literal(name)+")")
		end = m[1]
	}
	if end < len(s) {
		parts = append(parts, literal(s[end:]))
	}
	return "${ " + fill + " " + strings.Join(parts, " + ") + " }"
}

const fill = `def v($n): .[$n] | if . == null or type == "object" or type == "array" ` +
	`then error("the URI needs a value for {" + $n + "}") else tostring | @uri end; ` +
	`def p($n): v($n) | ` + noSegment + ` else . end;`

// noSegment begins the refusal of a text that would make another path of one in which it stands.
const noSegment = `if . == "" or . == "." or . == ".." then error("the path needs a value for {" + $n + "} that is not empty, . or ..")`

// literal writes s as a string of jq. JSON escapes each backslash, so nothing
// in s can begin an interpolation.
func literal(s string) string {
	b, _ := json.Marshal(s) // a string cannot fail
	return string(b)
}
