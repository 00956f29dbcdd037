package console

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// inside is a way to the API that never leaves the process. A request has the
// host, the address and the credentials of the person that a page is for, so that
// the API decides on it as on one of theirs.
type inside struct {
	api     http.Handler
	from    *http.Request
	session string // what it bears; "" = there is none
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
	bearer := t.session
	if c, err := t.from.Cookie(tokenCookie); err == nil && bearer == "" {
		bearer = c.Value
	}
	if bearer != "" && in.Header.Get("Authorization") == "" {
		in.Header.Set("Authorization", "Bearer "+bearer)
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

// tokenCookie keeps the token that a person has signed in with. No script reads it,
// and no other site's page sends it.
const tokenCookie = "aqueduct-token"

// keepToken keeps a token for the pages that a person sees next; without one it
// forgets it.
func (c *console) keepToken(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	token := strings.TrimSpace(r.PostForm.Get("token"))
	cookie := &http.Cookie{
		Name: tokenCookie, Value: token, Path: c.Prefix + "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode, MaxAge: signedIn,
	}
	if token == "" {
		cookie.MaxAge = -1
	}
	if err := cookie.Valid(); err != nil || len(token) > tokenRoom {
		http.Error(w, fmt.Sprintf("this is no token that a browser keeps: at most %d letters, digits and signs of ASCII", tokenRoom), http.StatusBadRequest)
		return
	}
	http.SetCookie(w, cookie)
	http.Redirect(w, r, c.Prefix+"/", http.StatusSeeOther)
}

// tokenRoom is how long a token may be that a browser keeps: a cookie has 4096 bytes
// with its name and attributes (RFC 6265 section 6.1), and a longer one is dropped
// without a word.
const tokenRoom = 3800

// signedIn is how long a browser keeps a token, in seconds; the token may end
// sooner.
const signedIn = 12 * 3600

// whoCookie keeps what a person said of themselves.
const whoCookie = "aqueduct-who"

func signedInAs(r *http.Request) bool {
	_, err := r.Cookie(tokenCookie)
	return err == nil
}

func whoAsks(r *http.Request) who {
	c, err := r.Cookie(whoCookie)
	if err != nil {
		return who{}
	}
	user, groups, _ := strings.Cut(c.Value, "|")
	return who{unquoted(user), list(unquoted(groups))}
}
