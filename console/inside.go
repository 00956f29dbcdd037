package console

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// inside is a way to the API that never leaves the process. A request has the
// host, the address and the credentials of the person that a page is for, so that
// the API decides on it as on one of theirs.
type inside struct {
	api    http.Handler
	from   *http.Request
	bearer string // what their browser bears; "" = nothing
}

// RoundTrip implements http.RoundTripper.
func (t inside) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.Host, in.RemoteAddr, in.TLS = t.from.Host, t.from.RemoteAddr, t.from.TLS
	in.RequestURI = r.URL.RequestURI()
	for _, name := range []string{"Authorization", "X-Request-Id", "Traceparent"} {
		if values := t.from.Header.Values(name); len(values) > 0 {
			in.Header[name] = values
		}
	}
	if t.bearer != "" && in.Header.Get("Authorization") == "" {
		in.Header.Set("Authorization", "Bearer "+t.bearer)
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	out := &answer{header: http.Header{}, status: http.StatusOK}
	t.api.ServeHTTP(out, in)
	return &http.Response{
		StatusCode: out.status, Status: http.StatusText(out.status), Header: out.header, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(bytes.NewReader(out.body.Bytes())), ContentLength: int64(out.body.Len()),
	}, nil
}

// answer keeps what a handler answers.
type answer struct {
	header  http.Header
	status  int
	written bool
	body    bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if !a.written {
		a.status, a.written = status, true
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.written = true
	return a.body.Write(b)
}

// who is the person that asks. Where the API asks nobody who they are, they say
// it themselves, as with the command line's --user and --group.
type who struct {
	User   string
	Groups []string
}

// cookie is one of the console, which no script reads and no other site's page sends. Where
// the browser speaks TLS no other host sets it, and it goes by TLS alone (RFC 6265bis,
// __Host-).
func (c *console) cookie(r *http.Request, name, value string, seconds int) *http.Cookie {
	k := &http.Cookie{Name: name, Value: value, Path: c.Prefix + "/", MaxAge: seconds, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if c.byTLS(r) {
		k.Name, k.Path, k.Secure = "__Host-"+name, "/", true
	}
	return k
}

// byTLS says whether a browser has reached the node by TLS: itself, or through a proxy that
// is named. Nothing that a proxy writes is believed but Host, as far as it is named.
func (c *console) byTLS(r *http.Request) bool {
	return r.TLS != nil || slices.ContainsFunc(c.Origins, func(o string) bool {
		host, ok := strings.CutPrefix(strings.TrimSuffix(o, "/"), "https://")
		return ok && strings.EqualFold(host, r.Host)
	})
}

// value is that of a cookie of the console; "" = the request has none, or two of the name:
// which of them is ours nobody knows.
func (c *console) value(r *http.Request, name string) string {
	found := r.CookiesNamed(c.cookie(r, name, "", 0).Name)
	if len(found) != 1 {
		return ""
	}
	return found[0].Value
}

// tokenCookie keeps the token that a person has signed in with.
const tokenCookie = "aqueduct-token"

// keepToken keeps a token for the pages that a person sees next; without one it
// forgets it.
func (c *console) keepToken(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	token := strings.TrimSpace(r.PostForm.Get("token"))
	cookie := c.cookie(r, tokenCookie, token, signedIn)
	if token == "" {
		cookie.MaxAge = -1
	}
	if err := cookie.Valid(); err != nil || len(token) > tokenRoom {
		http.Error(w, fmt.Sprintf("this is no token that a browser keeps: at most %d letters, digits and signs of ASCII", tokenRoom), http.StatusBadRequest)
		return
	}
	http.SetCookie(w, cookie)
	http.Redirect(w, r, c.back(r, c.Prefix+"/"), http.StatusSeeOther)
}

// tokenRoom is how long a token may be that a browser keeps: a cookie has 4096 bytes
// with its name and attributes (RFC 6265 section 6.1), and a longer one is dropped
// without a word.
const tokenRoom = 3800

// signedIn is how long a browser keeps a token, in seconds; the token may end
// sooner.
const signedIn = 12 * 3600

// didCookie keeps what an action has done, for the page that comes next: an address that
// says it would let others say it, too.
const (
	didCookie = "aqueduct-did"
	maxDid    = 1000 // bytes
	didKept   = 60   // seconds
)

// whoCookie keeps what a person said of themselves.
const whoCookie = "aqueduct-who"

func (c *console) whoAsks(r *http.Request) who {
	user, groups, _ := strings.Cut(c.value(r, whoCookie), "|")
	return who{unquoted(user), list(unquoted(groups))}
}
