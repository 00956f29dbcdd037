package console

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/aqueduct-engine/aqueduct/problem"
)

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

// list takes apart what a person wrote with commas: a name may have blanks.
func list(s string) (names []string) {
	for name := range strings.SplitSeq(s, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
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
		c.answer(w, &visit{Request: r, console: c, who: c.whoAsks(r), rights: rights{all: true}, speaks: true}, func(*visit) (content, error) {
			return content{}, problem.New(problem.TooLarge, "console.who", "a name and groups have at most %d bytes together", maxWho)
		}, nil)
		return
	}
	http.SetCookie(w, c.cookie(r, whoCookie, value, whoKept))
	http.Redirect(w, r, c.back(r, c.Prefix+"/tasks"), http.StatusSeeOther)
}

// back is the page of the console that a form was on, or another where it does not say one.
func (c *console) back(r *http.Request, other string) string {
	next := r.PostForm.Get("back")
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.Opaque != "" || strings.Contains(next, "\\") || !strings.HasPrefix(path.Clean(u.Path)+"/", c.Prefix+"/") || strings.Contains(u.Path, "//") {
		return other
	}
	return next
}

// maxWho bounds what a cookie keeps of a person, and whoKept for how long, in seconds.
const (
	maxWho  = 2000
	whoKept = 30 * 24 * 3600
)

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
