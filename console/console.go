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
	"compress/gzip"
	"context"
	"embed"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/api/client"
	h "github.com/aqueduct-engine/aqueduct/console/html"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// Limits of a page.
const (
	MaxFormBytes = 1 << 20          // of what a form sends
	MaxPages     = 4                // made at once: each holds what the API has answered, decoded, until it is written
	MaxLogins    = 16               // under way at once: each may wait for the identity provider
	MaxRuns      = 4                // steps of plans taken at once: each takes some seconds
	MaxSlow      = 4                // pages made at once that compare versions or rewind: each may read much
	MaxForms     = 32               // held at once, as they arrive and until their pages are made
	pageItems    = 50               // rows of a list
	streamItems  = 200              // entries of a timeline on one page
	refresh      = 3 * time.Second  // between two looks at a page that is open
	pageTimeout  = 10 * time.Second // for a page to be read: one that is made has its place until then
)

// policy allows the node's own style, script and pictures: nothing inline, nothing
// from elsewhere, no frame around a page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

//go:embed static
var static embed.FS

// Options are what a console is made of.
type Options struct {
	API      http.Handler     // of the node, that of package api
	Prefix   string           // the path of the pages; "" = /console
	ReadOnly bool             // actions are neither shown nor taken
	Logins   Logins           // by an identity provider; nil = people show a token
	Origins  []string         // https://HOST, by which a proxy that ends TLS is reached
	Now      func() time.Time // nil = time.Now
	// Unattended marks what a page that is open does by itself, for what counts use; nil = nothing does.
	Unattended func(ctx context.Context) context.Context
}

// Logins let people in by an identity provider. What they refuse is told on a page.
type Logins interface {
	// Of is what the session of a request bears to the API, and who has logged in; "" =
	// nobody has, or the API will say why it does not count.
	Of(r *http.Request) (bearer, name string, groups []string)
	Login(w http.ResponseWriter, r *http.Request) error    // sends a browser to the provider
	Callback(w http.ResponseWriter, r *http.Request) error // the provider has sent it back
	Logout(w http.ResponseWriter, r *http.Request) error
}

// console is the handler of the pages.
type console struct {
	Options
	origin *http.CrossOriginProtection
	making chan struct{} // has room for MaxPages
	logins chan struct{} // for MaxLogins
	runs   chan struct{} // for MaxRuns
	slow   chan struct{} // for MaxSlow
	forms  chan struct{} // for MaxForms
	seen   looks
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
	c := &console{Options: o, origin: http.NewCrossOriginProtection(), making: make(chan struct{}, MaxPages), logins: make(chan struct{}, MaxLogins), runs: make(chan struct{}, MaxRuns), slow: make(chan struct{}, MaxSlow), forms: make(chan struct{}, MaxForms)}
	return c.guarded(c.routes()), nil
}

// path is a path of the console.
//
//go:noinline
func (c *console) path(elements ...string) h.Address { return h.At(c.Prefix, elements...) }

// ofVersion is the page of a version of a definition.
//
//go:noinline
func (c *console) ofVersion(definition, version string) h.Address {
	namespace, name, _ := strings.Cut(definition, "/")
	return c.path("definitions", namespace, name, version)
}

// ofLifecycle is the page of the references of a lifecycle.
func (c *console) ofLifecycle(definition string) h.Address {
	namespace, name, _ := strings.Cut(definition, "/")
	return c.path("lifecycles", namespace, name)
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
	post("/tasks/{id}/comment", comment, task)
	get("/instances", instances)
	post("/instances/plan", planInstances, instances)
	get("/instances/{id}", instance)
	post("/instances/{id}/operate", operate, instance)
	post("/instances/{id}/signal", signal, instance)
	get("/instances/{id}/rewind", rewind)
	post("/instances/{id}/rewind", takeBack, rewind)
	get("/dead-letters", deadLetters)
	post("/dead-letters/plan", planDeadLetters, deadLetters)
	get("/dead-letters/{id}", deadLetter)
	post("/dead-letters/{id}/edit", editDeadLetter, deadLetter)
	post("/dead-letters/{id}/replay", replay, deadLetter)
	post("/dead-letters/{id}/discard", discard, deadLetter)
	get("/bulk", bulkPlans)
	get("/bulk/{id}", bulkPlan)
	post("/bulk/{id}/run", runBulk, bulkPlan)
	post("/bulk/{id}/stop", stopBulk, bulkPlan)
	get("/definitions", definitions)
	get("/definitions/{namespace}/{name}/{version}", definition)
	get("/definitions/{namespace}/{name}/{version}/compare/{to}", compare)
	post("/definitions/{namespace}/{name}/{version}/compare/{to}", migrate, compare)
	post("/definitions", publish, definitions)
	post("/try", try, welcome)
	post("/definitions/{namespace}/{name}/{version}/start", start, definition)
	get("/lifecycles", lifecycles)
	get("/lifecycles/{namespace}/{name}", entity)
	post("/lifecycles/{namespace}/{name}/trigger", trigger, entity)
	get("/schedules", schedules)
	get("/queues", queues)
	get("/audit", audit)
	post("/queues/reset", resetTarget, queues)
	mux.HandleFunc("POST "+c.Prefix+"/who", c.remember)
	mux.HandleFunc("POST "+c.Prefix+"/sign-in", c.keepToken)
	if c.Logins != nil {
		mux.HandleFunc("GET "+c.Prefix+"/login", c.or(c.Logins.Login))
		mux.HandleFunc("GET "+c.Prefix+"/login/callback", c.or(c.alone(c.Logins.Callback)))
		mux.HandleFunc("POST "+c.Prefix+"/logout", c.or(c.alone(c.Logins.Logout)))
	}
	mux.Handle("GET "+c.Prefix+"/static/htmx.min.js", unchanging(http.HandlerFunc(script)))
	files, _ := fs.Sub(static, "static") // the folder is embedded
	mux.Handle("GET "+c.Prefix+"/static/", http.StripPrefix(c.Prefix+"/static/", unchanging(http.FileServerFS(files))))
	mux.HandleFunc(c.Prefix+"/", c.show(func(*visit) (content, error) {
		return content{}, problem.New(problem.NotFound, "console.unknown", "there is no such page").WithHint("the pages are in the menu")
	}))
	return mux
}

// script is htmx, which is in the binary as it travels: a third of what it weighs.
func script(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", "text/javascript; charset=utf-8")
	header.Set("Vary", "Accept-Encoding")
	packed, _ := static.ReadFile("static/htmx.min.js.gz") // it is embedded
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed) // its reader may be gone
		return
	}
	if in, err := gzip.NewReader(bytes.NewReader(packed)); err == nil {
		_, _ = io.Copy(w, in)
	}
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
		if c.Unattended != nil && r.Method == http.MethodGet && r.Header.Get("HX-Request") != "" { // a page looks again
			r = r.WithContext(c.Unattended(r.Context()))
		}
		if strings.HasPrefix(r.URL.Path, c.Prefix+"/static/") { // it is there without being made
			h.ServeHTTP(w, r)
			return
		}
		if r.ContentLength != 0 {
			leave, ok := enter(r, c.forms)
			if !ok {
				return
			}
			defer leave()
			if err := arrives(w, r); err != nil {
				http.Error(w, "the form has not arrived", http.StatusRequestTimeout)
				return
			}
		}
		room := c.making
		switch { // what is slow keeps no page from anybody
		case strings.HasPrefix(r.URL.Path, c.Prefix+"/login"):
			room = c.logins
		case strings.HasPrefix(r.URL.Path, c.Prefix+"/bulk/") && r.Method == http.MethodPost:
			room = c.runs
		case c.isSlow(r.URL.Path):
			room = c.slow
		}
		leave, ok := enter(r, room)
		if !ok {
			return
		}
		defer leave()
		h.ServeHTTP(w, r)
	})
}

// isSlow reports whether the page of a path looks at many instances, or at much of one.
func (c *console) isSlow(path string) bool {
	path = strings.TrimPrefix(path, c.Prefix)
	return strings.HasPrefix(path, "/definitions/") && strings.Contains(path, "/compare/") ||
		strings.HasPrefix(path, "/instances/") && strings.HasSuffix(path, "/rewind")
}

// enter waits for a place in a room; who has left needs none.
func enter(r *http.Request, room chan struct{}) (leave func(), ok bool) {
	select {
	case room <- struct{}{}:
		return func() { <-room }, true
	case <-r.Context().Done():
		return nil, false
	}
}

// page reads what a page shows; action does what a form asks and says what it
// did, and which page shows it, "" = the one that the form was on.
type (
	page   func(*visit) (content, error)
	action func(*visit) (did string, next h.Address, err error)
)

// content is a page's own part: what it shows, and what can be done there.
type content struct {
	title      string
	live       bool // it is looked at again while it is open
	body, acts func(*shell) h.Node
}

// visit is one request of a person.
type visit struct {
	*http.Request
	*console
	api  *client.Client
	who  who
	form url.Values // what an action that was refused had been asked

	loggedIn bool // by the identity provider, which says who they are
	speaks   bool // they may say who they are, or nobody asks
	rights   rights
	here     h.Address // the page that an action which was refused is told on; none = where it is
}

func (c *console) visit(r *http.Request) (*visit, error) {
	v := &visit{Request: r, console: c, who: c.whoAsks(r)}
	bearer := c.value(r, tokenCookie)
	if c.Logins != nil {
		session, name, groups := c.Logins.Of(r)
		if session != "" && (name != "" || bearer == "") { // one that has ended hides no token that counts
			bearer = session
		}
		if name != "" {
			v.who, v.loggedIn = who{name, groups}, true
		}
	}
	var err error
	v.api, err = client.New("http://"+r.Host, &http.Client{Transport: inside{c.API, r, bearer}})
	if err == nil {
		v.known()
	}
	return v, err
}

// known asks the API as whom somebody is known and what they may do. Who bears a token is who
// it says, unless it lets them speak for others.
func (v *visit) known() {
	me, err := client.NewAdmin(v.api).Me(v.Context())
	v.rights = rights{all: err != nil, of: map[string][]string{}, none: v.ReadOnly}
	for _, operation := range me.May {
		v.rights.of[operation] = me.Only[operation]
	}
	v.speaks = me.Name == "" || slices.ContainsFunc(me.Roles, func(role string) bool { return role == "application" || role == "admin" })
	if me.Name != "" && !v.loggedIn && (!v.speaks || v.who.User == "") {
		v.who = who{me.Name, me.Groups}
	}
	v.api.Actor = v.who.User
}

// or does what logs people in or out, or tells why that is refused.
func (c *console) or(do func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := do(w, r); err != nil {
			c.show(func(*visit) (content, error) { return content{}, err })(w, r)
		}
	}
}

// alone logs in or out, and has the browser forget a token: who has logged in is nobody
// else beside, and who has logged out is nobody.
func (c *console) alone(do func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if c.value(r, tokenCookie) != "" {
			http.SetCookie(w, c.cookie(r, tokenCookie, "", -1))
		}
		return do(w, r)
	}
}

//go:noinline
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
//
//go:noinline
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
		if next == (h.Address{}) {
			next = h.Here(r.URL).Above()
		}
		if did != "" {
			http.SetCookie(w, c.cookie(r, didCookie, url.QueryEscape(strings.ToValidUTF8(did[:min(len(did), maxDid)], "")), didKept))
		}
		http.Redirect(w, r, next.String(), http.StatusSeeOther)
	}
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
		console: c, who: v.who, here: h.Here(v.URL), query: v.URL.Query(), signedIn: c.value(v.Request, tokenCookie) != "", loggedIn: v.loggedIn,
		rights: v.rights, speaks: v.speaks, section: section(c.Prefix, v.URL.Path), form: v.form,
	}
	switch { // a page can be gone back to, an action not
	case v.here != (h.Address{}):
		s.here = v.here
	case v.Method == http.MethodPost:
		s.here = s.here.Above()
	}
	if s.did = unquoted(c.value(v.Request, didCookie)); s.did != "" { // it is told once
		http.SetCookie(w, c.cookie(v.Request, didCookie, "", -1))
	}
	for _, e := range []error{err, refused} {
		if e != nil {
			s.problem = tell(e)
			status = s.problem.Status
		}
	}
	if content.body == nil { // there is nothing to show but the problem
		content.title, content.body = either(content.title, tell(err).Code), noPage
	}
	if status == http.StatusUnauthorized {
		content.title, content.body, content.acts = "Sign in", signIn, nil
	}
	s.content, s.mayLook = content, content.live && v.Method == http.MethodGet
	s.looks = s.mayLook && s.q("live") != "off"
	var out bytes.Buffer
	if err := s.page().Render(&out); err != nil {
		http.Error(w, "the page could not be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(pageTimeout)) // of this answer: net/http sets it anew
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // its reader may be gone
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
	if p.Kind == problem.Denied && (strings.HasPrefix(p.Code, "access.token-") || p.Code == "access.certificate-refused") {
		status = http.StatusUnauthorized
	}
	return &told{p, status}
}

// section is the entry of the menu that a path belongs to.
func section(prefix, path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, prefix+"/"), "/")
	return first
}
