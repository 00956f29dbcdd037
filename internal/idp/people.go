package idp

import (
	"fmt"
	"html"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Person is somebody that one may say one is.
type Person struct {
	Name, Does string
	Groups     []string
}

// People are those of `make demo-login`, which says what members of their groups may do.
var People = []Person{
	{"clerk", "decides on loans: sees the tasks of their group, and does them", []string{"loan-officers"}},
	{"operator", "is on call: begins, looks, mends, and reads who has done what", []string{"operators"}},
	{"author", "writes definitions: publishes them, and looks at what they do", []string{"authors"}},
}

// Meet has everybody who logs in say which of the people they are.
func (s *Server) Meet(people []Person, life time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.people, s.life = people, life
}

// chosen is the parameter that names the person.
const chosen = "person"

// person are the claims of one of the people; nil = nobody has the name.
func (s *Server) person(name string) map[string]any {
	for _, p := range s.people {
		if p.Name == name {
			return map[string]any{"sub": p.Name, "groups": p.Groups}
		}
	}
	return nil
}

// ask is the page on which somebody says who they are.
func (s *Server) ask(w http.ResponseWriter, r *http.Request) {
	var list strings.Builder
	for _, p := range s.people {
		q := r.URL.Query()
		q.Set(chosen, p.Name)
		fmt.Fprintf(&list, `<li><a href="%s"><strong>%s</strong></a> %s <small>(%s)</small></li>`+"\n",
			html.EscapeString((&url.URL{Path: r.URL.Path, RawQuery: q.Encode()}).String()), html.EscapeString(p.Name), html.EscapeString(p.Does), html.EscapeString(strings.Join(p.Groups, ", ")))
	}
	show(w, "<h1>Who are you?</h1>\n<ul>\n"+list.String()+"</ul>")
}

// here says whether an address is on this machine.
func here(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	at, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && at.IsLoopback()
}

// activate is the page of the device flow, to which engine-node login sends people.
func (s *Server) activate(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := s.person(r.URL.Query().Get(chosen))
	if who == nil {
		s.ask(w, r)
		return
	}
	s.claims = who
	show(w, "<p>You are "+html.EscapeString(fmt.Sprint(who["sub"]))+". Go back to the command line.</p>")
}

// show writes a page, which says what it is.
func show(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = fmt.Fprintf(w, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>Who are you?</title>\n"+
		"<body>\n%s\n<p><strong>FOR TRYING OUT ONLY.</strong> This is no login: nobody is asked to prove anything, and whoever reaches this page is whoever they like.\n"+
		"A node on which anything depends must never trust this provider.</p>\n</body></html>\n", body) // its reader may be gone
}
