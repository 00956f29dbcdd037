package console_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/console"
)

// evil is a text that would be markup, an attribute, a script or an address where
// it is not taken for a text.
const evil = `javascript:alert(1)//'"><script>alert(1)</script><img src=x onerror=alert(1)></textarea></title>` + "\x00`&amp;"

// plain is evil that may stand in an address: no server takes a path with a zero.
var plain = strings.ReplaceAll(evil, "\x00", "")

// filled is a document of the API in which every text is evil, but for the fields
// that are given by name.
func filled[T any](fields map[string]any) T {
	var v T
	fill(reflect.ValueOf(&v).Elem(), fields)
	return v
}

func fill(v reflect.Value, fields map[string]any) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(1_700_000_000, 0).UTC()))
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		raw, _ := json.Marshal(map[string]any{evil: []any{evil, 1}})
		v.SetBytes(raw)
	case v.Kind() == reflect.String:
		v.SetString(evil)
	case v.CanInt():
		v.SetInt(3)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		v.SetBytes([]byte(evil))
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), fields)
		fill(v.Index(1), fields)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), fields)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if given, ok := fields[v.Type().Field(i).Name]; ok && reflect.TypeOf(given) == v.Field(i).Type() {
				v.Field(i).Set(reflect.ValueOf(given))
				continue
			}
			fill(v.Field(i), fields)
		}
	}
}

// form has a field of every kind.
var form = func() json.RawMessage {
	texts := map[string]any{"title": evil, "description": evil, "default": evil}
	field := func(more map[string]any) map[string]any {
		for k, v := range texts {
			more[k] = v
		}
		return more
	}
	raw, _ := json.Marshal(map[string]any{"schema": map[string]any{
		"required": []string{evil},
		"properties": map[string]any{
			evil: field(map[string]any{"type": "string"}), "n": field(map[string]any{"type": "number"}),
			"c": field(map[string]any{"enum": []any{evil, 7}}), "b": field(map[string]any{"type": "boolean"}),
			"d": field(map[string]any{"type": "string", "format": "date"}), "j": field(map[string]any{"type": []string{"object"}}),
		},
	}})
	return raw
}()

// hostile is an API that answers every question with evil texts, or, when it has
// nothing, with empty lists.
type hostile struct {
	fields  map[string]any
	nothing bool
	refuses string // the code of its problem
	status  int    // of it
	source  string
}

func (h hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case h.refuses != "":
		w.WriteHeader(h.status)
		_ = json.NewEncoder(w).Encode(filled[client.Problem](map[string]any{"Code": h.refuses}))
		return
	case r.URL.Path == "/v1/me": // so everything is offered
		w.WriteHeader(http.StatusNotFound)
		return
	case r.Method != http.MethodGet:
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(filled[client.Problem](nil))
		return
	}
	if r.URL.Path == "/metrics" {
		_, _ = io.WriteString(w, evil+"\naqueduct_turns_total{x=\"y\"} 7\naqueduct_turns_total "+evil+"\n")
		return
	}
	if strings.HasSuffix(r.URL.EscapedPath(), "/source") {
		_, _ = io.WriteString(w, h.source)
		return
	}
	_ = json.NewEncoder(w).Encode(h.answer(r.URL.EscapedPath()))
}

// lists are those of the API, and what an entry of each is.
func (h hostile) answer(path string) any {
	if h.nothing && !regexp.MustCompile(`/(instances|tasks|dead-letters|lifecycles)/.+`).MatchString(path) {
		return map[string]any{"items": []any{}}
	}
	f := map[string]any{"Definition": plain, "Version": plain}
	maps.Copy(f, h.fields)
	switch elements := strings.Split(strings.TrimPrefix(path, "/v1/"), "/"); {
	case strings.HasSuffix(path, "/why"):
		return filled[client.Why](f)
	case strings.HasSuffix(path, "/stream"):
		return filled[client.Page[client.Entry]](f)
	case elements[0] == "instances" && len(elements) == 2:
		return filled[client.InstanceDetail](f)
	case elements[0] == "instances":
		return filled[client.Page[client.Instance]](f)
	case elements[0] == "tasks" && len(elements) == 2:
		return filled[client.TaskDetail](f)
	case elements[0] == "tasks":
		return filled[client.Page[client.Task]](f)
	case elements[0] == "dead-letters" && len(elements) == 2:
		return filled[client.DeadLetterDetail](f)
	case elements[0] == "dead-letters":
		return filled[client.Page[client.DeadLetter]](f)
	case elements[0] == "dead-letter-reasons":
		return filled[client.DeadLetterReasons](f)
	case elements[0] == "definitions", elements[0] == "policies":
		return filled[client.Page[client.Definition]](f)
	case elements[0] == "lifecycles":
		return filled[client.Lifecycle](f)
	case elements[0] == "schedules":
		return filled[client.Page[client.Schedule]](f)
	case elements[0] == "queues":
		return filled[client.Page[client.Queue]](f)
	case elements[0] == "targets":
		return filled[client.Page[client.Target]](f)
	case elements[0] == "nodes":
		return filled[client.Page[client.Node]](f)
	case elements[0] == "audit":
		return filled[client.Page[client.AuditEntry]](f)
	}
	panic("the API has no " + path)
}

// Whatever the API answers is text on every page: it makes no element, no attribute
// and no address.
func TestWhatThePagesShowIsText(t *testing.T) {
	t.Parallel()
	document, _ := json.Marshal(map[string]any{"document": map[string]any{"name": evil}, "do": []any{map[string]any{evil: map[string]any{"set": map[string]any{evil: evil}}}}})
	lifecycle, _ := json.Marshal(map[string]any{"states": map[string]any{evil: map[string]any{}}, "transitions": []any{map[string]any{"from": evil, "event": evil, "to": evil}}})
	apis := map[string]hostile{
		"all evil":  {source: string(document), fields: map[string]any{"Form": form}},
		"nothing":   {source: string(document), nothing: true},
		"refuses":   {refuses: evil, status: http.StatusForbidden},
		"stranger":  {refuses: "access.token-" + evil, status: http.StatusUnauthorized},
		"faulted":   {source: string(lifecycle), fields: map[string]any{"Status": "faulted", "Breaker": "open"}},
		"suspended": {source: evil, fields: map[string]any{"Status": "suspended", "EscalatedAt": time.Time{}, "DueAt": time.Time{}, "Title": "", "Assignee": "", "BusinessKey": ""}},
		"completed": {source: string(document), fields: map[string]any{"Status": "completed", "Breaker": "closed", "EndedAt": time.Time{}, "Items": []client.Entry{}}},
		"ready":     {source: string(document), fields: map[string]any{"Status": "ready", "Form": form, "Text": ""}},
		"reserved":  {source: string(document), fields: map[string]any{"Status": "reserved", "Assignee": "kim", "Form": form}},
		"free":      {source: string(document), fields: map[string]any{"Status": "reserved", "Assignee": "kim", "Outcomes": []string(nil), "Form": json.RawMessage(`{}`)}},
		"another's": {source: string(document), fields: map[string]any{"Status": "reserved", "Assignee": "olga"}},
	}
	e, q := url.PathEscape(plain), url.QueryEscape(evil)
	query := "?status=" + q + "&definition=" + q + "&where=" + q + "&key=" + q + "&parent=" + q + "&reason=" + q + "&order=" + q
	paths := []string{
		"/", "/tasks" + query, "/tasks?all=1", "/tasks/" + e, "/instances", "/instances" + query, "/instances?status=faulted&live=off", "/instances/" + e + query,
		"/dead-letters", "/dead-letters" + query, "/dead-letters/" + e, "/definitions" + query, "/definitions/" + e + "/" + e + "/" + e,
		"/lifecycles" + query, "/lifecycles/" + e + "/" + e, "/lifecycles/" + e + "/" + e + "?idle=" + q, "/lifecycles/" + e + "/" + e + "?reference=" + q, "/schedules" + query, "/queues" + query, "/audit", "/audit" + query + "&user=" + q + "&from=" + q, "/audit?user=" + q + "&target=" + q, "/" + e,
	}
	posts := []string{
		"/definitions", "/definitions/" + e + "/" + e + "/" + e + "/start", "/tasks/" + e + "/complete", "/tasks/" + e + "/comment", "/instances/" + e + "/signal",
		"/lifecycles/" + e + "/" + e + "/trigger",
	}
	for name, api := range apis {
		for _, user := range []string{"", "kim", evil} {
			look(t, name, user, false, api, paths, posts)
		}
		look(t, name, "kim", true, api, paths, posts)
	}
}

// look reads the pages of an API's answers as one user, and sends forms that are
// filled in with evil texts.
func look(t *testing.T, name, user string, readOnly bool, api hostile, paths, posts []string) {
	t.Helper()
	h, err := console.Handler(console.Options{API: api, ReadOnly: readOnly, Now: func() time.Time { return time.Unix(1_700_000_100, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path string, body io.Reader) {
		r := httptest.NewRequest(method, "http://127.0.0.1/console"+path, body)
		if user != "" {
			r.AddCookie(&http.Cookie{Name: "aqueduct-who", Value: url.QueryEscape(user) + "|" + url.QueryEscape(evil)})
			r.AddCookie(&http.Cookie{Name: "aqueduct-token", Value: "x"})
			r.AddCookie(&http.Cookie{Name: "aqueduct-did", Value: url.QueryEscape(evil)})
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		what := fmt.Sprintf("%s, %s, read-only %t, %s %.60s", name, user, readOnly, method, path)
		if w.Code == http.StatusInternalServerError || w.Code == http.StatusBadRequest {
			t.Errorf("%s: %d %s", what, w.Code, w.Body)
		}
		sound(t, what, w.Body.String())
	}
	for _, path := range paths {
		ask("GET", path, nil)
	}
	written := url.Values{}
	for _, field := range strings.Fields("source input id key data outcome comment type reference event payload field.c field.b field.d field.j field.n") {
		written.Set(field, evil)
	}
	written.Set("field."+evil, evil)
	for _, path := range posts {
		ask("POST", path, strings.NewReader(written.Encode()))
	}
}

// What our pages are made of.
var (
	elements   = strings.Fields("html head meta title link script body header a nav details summary form input label button p main div h1 aside dl dt dd section h2 pre code strong ul li small table thead tbody tr th td br textarea time span ol option select datalist svg defs marker path g rect text circle tspan")
	attributes = strings.Fields("lang charset name content rel href src defer class method action type value autocomplete placeholder role id aria-label aria-current aria-invalid aria-describedby hx-get hx-trigger hx-select hx-swap required list rows spellcheck open checked selected inputmode accesskey datetime title xmlns viewBox width height markerWidth markerHeight refX refY orient d x y rx text-anchor marker-end cx cy r preserveAspectRatio")
	addresses  = strings.Fields("href src action formaction hx-get hx-post data poster")
)

// sound reports what a page has that none of ours has: it is read as strictly as
// XML, with the names of HTML's entities and its empty elements.
func sound(t *testing.T, what, page string) {
	t.Helper()
	page = strings.TrimPrefix(page, "<!doctype html>")
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, []string{"meta", "link", "input", "br"}, xml.HTMLEntity
	scripts := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", what, err, page)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local == "script" {
			scripts++
		}
		if !slices.Contains(elements, start.Name.Local) {
			t.Errorf("%s: <%s>\n%s", what, start.Name.Local, page)
		}
		for _, a := range start.Attr {
			if !slices.Contains(attributes, a.Name.Local) {
				t.Errorf("%s: <%s %s>", what, start.Name.Local, a.Name.Local)
			}
			if slices.Contains(addresses, a.Name.Local) && !strings.HasPrefix(a.Value, "/console") && !strings.HasPrefix(a.Value, "#") && !strings.HasPrefix(a.Value, "url(#") {
				t.Errorf("%s: <%s %s> leads to %q", what, start.Name.Local, a.Name.Local, a.Value)
			}
		}
	}
	if scripts != 1 {
		t.Errorf("%s: %d scripts", what, scripts)
	}
}
