package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// functions are what templates may call.
func (c *console) functions() template.FuncMap {
	return template.FuncMap{
		"pretty": pretty,
		"time":   func(t time.Time) template.HTML { return moment(t, c.Now()) },
		"join":   strings.Join,
		"path": func(elements ...string) string {
			p := c.Prefix
			for _, e := range elements {
				p += "/" + url.PathEscape(e)
			}
			return p
		},
		"ofVersion": func(definition, version string) string { return c.ofVersion(definition, version) },
		"pause":     func(s *shell) string { return s.with("live", "off") },
		"resume":    func(s *shell) string { return s.with("live", "") },
		"next":      func(s *shell, after string) string { return s.with("after", after) },
		"first":     func(s *shell) string { return s.with("after", "") },
		"filter":    func(s *shell, name, value string) string { return s.without("after").with(name, value) },
		"q":         func(s *shell, name string) string { return s.query.Get(name) },
		"unique":    uuid.NewString,
		"menu":      func() []entry { return menu },
	}
}

// entry is one of the menu.
type entry struct{ Path, Title string }

var menu = []entry{
	{"tasks", "Tasks"}, {"instances", "Instances"}, {"dead-letters", "Dead letters"}, {"definitions", "Definitions"},
	{"schedules", "Schedules"}, {"queues", "Queues"},
}

// ofVersion is the page of a version of a definition.
func (c *console) ofVersion(definition, version string) string {
	namespace, name, _ := strings.Cut(definition, "/")
	return c.Prefix + "/definitions/" + url.PathEscape(namespace) + "/" + url.PathEscape(name) + "/" + url.PathEscape(version)
}

// with is the address of the page with another value of a parameter; "" = without
// it. Filters stay in the address, so that back, forward and reload keep them.
func (s *shell) with(name, value string) string {
	q := url.Values{}
	for k, v := range s.query {
		if k != "did" {
			q[k] = v
		}
	}
	q.Del(name)
	if value != "" {
		q.Set(name, value)
	}
	path, _, _ := strings.Cut(s.URL, "?")
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

func (s *shell) without(name string) *shell {
	other := *s
	other.query = url.Values{}
	for k, v := range s.query {
		if k != name {
			other.query[k] = v
		}
	}
	return &other
}

// pretty is JSON with indents. Its numbers stay the texts that they are: none
// passes through a float.
func pretty(v any) string {
	var raw []byte
	switch v := v.(type) {
	case json.RawMessage:
		raw = v
	case []byte:
		raw = v
	case string:
		raw = []byte(v)
	default:
		raw, _ = json.Marshal(v) // what the API has sent
	}
	var out bytes.Buffer
	if json.Indent(&out, raw, "", "  ") != nil {
		return strings.ToValidUTF8(string(raw), "�")
	}
	return out.String()
}

// moment shows a time: how far it is, with the time itself to be read and copied.
func moment(t, now time.Time) template.HTML {
	if t.IsZero() {
		return ""
	}
	exact := t.UTC().Format("2006-01-02 15:04:05.000")
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s UTC">%s</time>`,
		t.UTC().Format(time.RFC3339Nano), exact, distance(t, now)))
}

// distance says in words how far a time is.
func distance(t, now time.Time) string {
	d := now.Sub(t)
	form := "%s ago"
	if d < 0 {
		d, form = -d, "in %s"
	}
	switch {
	case d < time.Second:
		return "now"
	case d < 2*time.Minute:
		return fmt.Sprintf(form, fmt.Sprintf("%d s", int(d.Seconds())))
	case d < 2*time.Hour:
		return fmt.Sprintf(form, fmt.Sprintf("%d min", int(d.Minutes())))
	case d < 48*time.Hour:
		return fmt.Sprintf(form, fmt.Sprintf("%d h", int(d.Hours())))
	}
	return fmt.Sprintf(form, fmt.Sprintf("%d days", int(d.Hours()/24)))
}

// list takes apart what a person wrote with commas or spaces.
func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' || r == '\r' })
}

func unquoted(s string) string {
	u, err := url.QueryUnescape(s)
	if err != nil {
		return ""
	}
	return u
}

// remember keeps who a person says they are, for the pages that they see next.
func (c *console) remember(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	groups := list(r.PostForm.Get("groups"))
	slices.Sort(groups)
	value := url.QueryEscape(strings.TrimSpace(r.PostForm.Get("user"))) + "|" + url.QueryEscape(strings.Join(groups, ","))
	if len(value) > maxWho {
		c.answer(w, &visit{Request: r, console: c, who: whoAsks(r)}, func(*visit) (content, error) {
			return content{}, problem.New(problem.TooLarge, "console.who", "a name and groups have at most %d bytes together", maxWho)
		}, nil)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: whoCookie, Value: value, Path: c.Prefix + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: 30 * 24 * 3600})
	next := r.PostForm.Get("back")
	if !strings.HasPrefix(next, c.Prefix+"/") || strings.HasPrefix(next, "//") {
		next = c.Prefix + "/tasks"
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// maxWho bounds what a cookie keeps of a person.
const maxWho = 2000

// data is JSON that a person wrote; nothing is no data.
func data(s, field string) (json.RawMessage, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, nil
	}
	var v jsontext.Value
	if err := jsonv2.Unmarshal([]byte(s), &v); err != nil {
		return nil, problem.New(problem.Invalid, "console.json", "%s is no JSON: %s", field, err).WithHint("texts are quoted: \"ann\"")
	}
	return json.RawMessage(s), nil
}
