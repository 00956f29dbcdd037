package html

import (
	"net/url"
	"strings"
	"time"

	g "maragu.dev/gomponents"
)

// Address is where a link, a form or a redirect leads: a path of the host that the
// page is of, or a place of the page. The zero value is the page itself.
type Address struct{ text string }

// At is the address of a path, whose elements are escaped, below a prefix.
//
//go:noinline
func At(prefix string, elements ...string) Address {
	for _, e := range elements {
		prefix += "/" + url.PathEscape(e)
	}
	return local(prefix)
}

// Here is the address that was asked for.
//
//go:noinline
func Here(u *url.URL) Address {
	if u.RawQuery == "" {
		return local(u.EscapedPath())
	}
	return local(u.EscapedPath() + "?" + u.RawQuery)
}

// local is an address of this host: a browser takes what follows two slashes, or a
// slash and a backslash, for the name of another.
func local(path string) Address {
	return Address{"/" + strings.TrimLeft(path, `/\`)}
}

// Place is something on the page that has an id.
func Place(id string) Address { return Address{"#" + url.PathEscape(id)} }

// Below is what belongs to what is at the address.
//
//go:noinline
func (a Address) Below(element string) Address {
	return Address{a.text + "/" + url.PathEscape(element)}
}

// Above is what that belongs to which is at the address: the page of a form, of the
// address to which the form is sent.
func (a Address) Above() Address {
	a = a.Asking(nil)
	return local(a.text[:max(0, strings.LastIndexByte(a.text, '/'))])
}

// Asking is the address with another query.
func (a Address) Asking(query url.Values) Address {
	path, _, _ := strings.Cut(a.text, "?")
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return Address{path}
}

// With is the address with one parameter.
//
//go:noinline
func (a Address) With(name, value string) Address { return a.Asking(url.Values{name: {value}}) }

func (a Address) String() string { return a.text }

// A is a link.
//
//go:noinline
func A(to Address, inside ...Node) Node {
	return element("a", []Node{attribute("href", to.text), g.Group(inside)})
}

// Post is a form that does something.
//
//go:noinline
func Post(to Address, inside ...Node) Node {
	return element("form", []Node{attribute("method", "post"), attribute("action", to.text), g.Group(inside)})
}

// Find is a form that leads to a page with what was written; the zero address is
// the page that it is on.
//
//go:noinline
func Find(to Address, inside ...Node) Node {
	return element("form", []Node{attribute("method", "get"), If(to.text != "", attribute("action", to.text)), g.Group(inside)})
}

// Icon, Stylesheet and Script are files of the console.
func Icon(at Address) Node {
	return element("link", []Node{attribute("rel", "icon"), attribute("href", at.text)})
}

func Stylesheet(at Address) Node {
	return element("link", []Node{attribute("rel", "stylesheet"), attribute("href", at.text)})
}

func Script(at Address) Node {
	return element("script", []Node{attribute("src", at.text), flag("defer")})
}

// LookingAgain are the attributes of an element with an id which the script reads
// again, every so often, and puts in its place.
func LookingAgain(at Address, id string, every time.Duration) Node {
	return Group{
		attribute("hx-get", at.text), attribute("hx-trigger", "every "+every.String()),
		attribute("hx-select", "#"+id), attribute("hx-swap", "outerMorph"),
	}
}

// GoingOn is an element that sends a form once it is there, and puts what has that id in the
// answer's page in the place of what has it in this one; each has an id of its own.
func GoingOn(to Address, id, place string) Node {
	return element("span", []Node{
		ID(id), attribute("hx-post", to.text), attribute("hx-trigger", "load, every 10s"),
		attribute("hx-target", "#"+place), attribute("hx-select", "#"+place), attribute("hx-swap", "outerMorph"),
	})
}
