// Package console is the web pages of a node: for people with tasks, for those
// on call, and for those who write definitions.
//
// It does nothing that the public API cannot: each page and each action is one or
// more requests to the API's own handler, in the process, on behalf of who asks.
// So a page can show and do what its reader may, and no more. Pages work without
// script; script only keeps them fresh. All they need is in the binary, under a
// content security policy that allows the node's own files and nothing else.
package console

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// Limits of a page.
const (
	MaxFormBytes = 1 << 20 // of what a form sends
	MaxPages     = 4       // made at once: each holds what the API has answered, decoded, until it is written
	pageItems    = 50      // rows of a list
	streamItems  = 200     // entries of a timeline on one page
	refresh      = "3s"    // between two looks at a page that is open
)

// policy allows the node's own style, script and pictures: nothing inline, nothing
// from elsewhere, no frame around a page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

//go:embed static
var static embed.FS

//go:embed templates
var templates embed.FS

// Options are what a console is made of.
type Options struct {
	API      http.Handler     // of the node, that of package api
	Prefix   string           // the path of the pages; "" = /console
	ReadOnly bool             // actions are neither shown nor taken
	Now      func() time.Time // nil = time.Now
}

// console is the handler of the pages.
type console struct {
	Options
	pages  map[string]*template.Template
	origin *http.CrossOriginProtection
	making chan struct{} // has room for MaxPages
}

// Handler makes the handler of the pages, which serves every path below the
// prefix.
func Handler(o Options) (http.Handler, error) {
	if o.API == nil {
		return nil, errors.New("console: API is required")
	}
	if o.Prefix == "" {
		o.Prefix = "/console"
	}
	o.Prefix = strings.TrimSuffix(o.Prefix, "/")
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &console{Options: o, pages: map[string]*template.Template{}, origin: http.NewCrossOriginProtection(), making: make(chan struct{}, MaxPages)}
	names, err := fs.Glob(templates, "templates/*.html")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		page := strings.TrimSuffix(strings.TrimPrefix(name, "templates/"), ".html")
		if page == "layout" {
			continue
		}
		t, err := template.New(page).Funcs(c.functions()).ParseFS(templates, "templates/layout.html", name)
		if err != nil {
			return nil, fmt.Errorf("console: %w", err)
		}
		c.pages[page] = t
	}
	return c.guarded(c.routes()), nil
}

// routes are the pages, and the actions that forms ask for.
func (c *console) routes() *http.ServeMux {
	mux := http.NewServeMux()
	get := func(path string, p page) { mux.HandleFunc("GET "+c.Prefix+path, c.show(p)) }
	post := func(path string, a action, p page) { mux.HandleFunc("POST "+c.Prefix+path, c.act(a, p)) }
	get("/{$}", welcome)
	get("/tasks", tasks)
	get("/tasks/{id}", task)
	post("/tasks/claim-next", claimNext, tasks)
	post("/tasks/{id}/claim", claim, task)
	post("/tasks/{id}/release", release, task)
	post("/tasks/{id}/delegate", delegate, task)
	post("/tasks/{id}/reassign", reassign, task)
	post("/tasks/{id}/complete", complete, task)
	get("/instances", instances)
	get("/instances/{id}", instance)
	post("/instances/{id}/operate", operate, instance)
	post("/instances/{id}/signal", signal, instance)
	get("/dead-letters", deadLetters)
	get("/dead-letters/{id}", deadLetter)
	post("/dead-letters/{id}/replay", replay, deadLetter)
	post("/dead-letters/{id}/discard", discard, deadLetter)
	get("/definitions", definitions)
	get("/definitions/{namespace}/{name}/{version}", definition)
	post("/definitions", publish, definitions)
	post("/definitions/{namespace}/{name}/{version}/start", start, definition)
	get("/lifecycles/{namespace}/{name}", entity)
	post("/lifecycles/{namespace}/{name}/trigger", trigger, entity)
	get("/schedules", schedules)
	get("/queues", queues)
	post("/queues/reset", resetTarget, queues)
	mux.HandleFunc("POST "+c.Prefix+"/who", c.remember)
	mux.HandleFunc("POST "+c.Prefix+"/sign-in", c.signIn)
	files, _ := fs.Sub(static, "static") // the folder is embedded
	mux.Handle("GET "+c.Prefix+"/static/", http.StripPrefix(c.Prefix+"/static/", unchanging(http.FileServerFS(files))))
	mux.HandleFunc(c.Prefix+"/", c.show(func(*visit) (content, error) {
		return content{}, problem.New(problem.NotFound, "console.unknown", "there is no such page").WithHint("the pages are in the menu")
	}))
	return mux
}

// unchanging lets browsers keep files, whose names change with the program.
func unchanging(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		h.ServeHTTP(w, r)
	})
}

// guarded sets what every answer has, and refuses what another site's page sends.
func (c *console) guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		if err := c.origin.Check(r); err != nil {
			http.Error(w, "a browser sent the request on behalf of another site", http.StatusForbidden)
			return
		}
		if r.URL.Path == c.Prefix {
			http.Redirect(w, r, c.Prefix+"/", http.StatusSeeOther)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, MaxFormBytes)
		select {
		case c.making <- struct{}{}:
		case <-r.Context().Done(): // who has left needs no page
			return
		}
		defer func() { <-c.making }()
		h.ServeHTTP(w, r)
	})
}

// page reads what a page shows; action does what a form asks and says what it
// did, and which page shows it, "" = the one that the form was on.
type (
	page   func(*visit) (content, error)
	action func(*visit) (did, next string, err error)
)

// content is a page's own part.
type content struct {
	template string
	title    string
	live     bool // it is looked at again while it is open
	data     any
}

// visit is one request of a person.
type visit struct {
	*http.Request
	console *console
	api     *client.Client
	who     who
	form    url.Values // what an action that was refused had been asked
}

func (c *console) visit(r *http.Request) (*visit, error) {
	v := &visit{Request: r, console: c, who: whoAsks(r)}
	var err error
	v.api, err = client.New("http://"+r.Host, &http.Client{Transport: inside{c.API, r}})
	if err == nil {
		v.api.Actor = v.who.User
	}
	return v, err
}

// path is a path of the console.
func (v *visit) path(elements ...string) string {
	p := v.console.Prefix
	for _, e := range elements {
		p += "/" + url.PathEscape(e)
	}
	return p
}

func (c *console) show(p page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := c.visit(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c.answer(w, v, p, nil)
	}
}

// act does what a form asks, and leads to the page that shows it. What is refused
// is told on the page of the form, which keeps what was written into it.
func (c *console) act(a action, p page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := c.visit(r)
		if err == nil {
			err = r.ParseForm()
		}
		var large *http.MaxBytesError
		switch {
		case errors.As(err, &large):
			c.answer(w, v, p, problem.New(problem.TooLarge, "console.form", "a form has at most %d bytes", MaxFormBytes))
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		case c.ReadOnly:
			c.answer(w, v, p, problem.New(problem.Denied, "console.read-only", "this console only shows").WithHint("use the command line, or a console that is not read-only"))
			return
		}
		did, next, err := a(v)
		if err != nil {
			v.form = r.PostForm
			c.answer(w, v, p, err)
			return
		}
		if next == "" {
			next = strings.TrimSuffix(r.URL.Path, r.URL.Path[strings.LastIndexByte(r.URL.Path, '/'):])
		}
		http.Redirect(w, r, next+"?"+url.Values{"did": {did}}.Encode(), http.StatusSeeOther)
	}
}

// shell is what is around a page's own part.
type shell struct {
	Base, Title, Section string
	URL                  string // of the page, as it is
	Live                 bool   // it is looked at again
	MayLive              bool
	Refresh              string
	ReadOnly             bool
	Who                  who
	SignedIn             bool
	Did                  string
	Problem              *told
	Data                 any
	query                url.Values
}

// told is a problem as it is shown.
type told struct {
	*problem.Error
	Status int
}

// answer writes a page, with the problem that an action had.
func (c *console) answer(w http.ResponseWriter, v *visit, p page, refused error) {
	content, err := p(v)
	status := http.StatusOK
	s := &shell{
		Base: c.Prefix, Refresh: refresh, ReadOnly: c.ReadOnly, Who: v.who, URL: v.URL.RequestURI(), query: v.URL.Query(),
		SignedIn: signedInAs(v.Request), Section: section(c.Prefix, v.URL.Path), Did: v.URL.Query().Get("did"),
	}
	for _, e := range []error{err, refused} {
		if e != nil {
			s.Problem = tell(e)
			status = s.Problem.Status
		}
	}
	if content.template == "" {
		content = contentOf(content, err)
	}
	if status == http.StatusUnauthorized {
		content.template, content.title = "sign-in", "Sign in"
	}
	s.Title, s.Data, s.MayLive = content.title, content.data, content.live && v.Method == http.MethodGet
	s.Live = s.MayLive && v.URL.Query().Get("live") != "off"
	var out bytes.Buffer
	if err := c.pages[content.template].ExecuteTemplate(&out, "layout", s); err != nil {
		http.Error(w, "the page could not be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // its reader may be gone
}

// contentOf is the page of a problem: there is nothing else to show.
func contentOf(c content, err error) content {
	if c.title == "" {
		c.title = tell(err).Code
	}
	c.template = "problem"
	return c
}

// tell translates an error, with the status that the API answers it with.
func tell(err error) *told {
	p := &problem.Error{}
	if !errors.As(err, &p) {
		p = problem.Wrap(err, problem.Internal, "internal", "%v", err)
	}
	status, ok := map[problem.Kind]int{
		problem.Invalid: http.StatusUnprocessableEntity, problem.NotFound: http.StatusNotFound, problem.Conflict: http.StatusConflict,
		problem.Denied: http.StatusForbidden, problem.TooLarge: http.StatusRequestEntityTooLarge, problem.Unavailable: http.StatusServiceUnavailable,
	}[p.Kind]
	if !ok {
		status = http.StatusInternalServerError
	}
	if p.Kind == problem.Denied && strings.HasPrefix(p.Code, "access.token-") {
		status = http.StatusUnauthorized
	}
	return &told{p, status}
}

// section is the entry of the menu that a path belongs to.
func section(prefix, path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, prefix+"/"), "/")
	return first
}
