// Package html is what the pages of the console are made of: elements, which are
// functions, with what is in them as arguments.
//
// Every text and every attribute is escaped. What escaping does not make harmless
// is not there: no attribute that holds a script or a style, no element that loads
// from elsewhere, no markup but pictures, which diagram has escaped; and what leads
// somewhere takes an [Address], which only this package makes. So a page is safe
// because it compiles, and this package is what has to be read with care.
package html

import (
	"fmt"
	"strconv"
	"time"

	g "maragu.dev/gomponents"

	"github.com/aqueduct-engine/aqueduct/definition/diagram"
)

type (
	// Node is an element, an attribute or a text; nil is nothing.
	Node = g.Node
	// Group is several.
	Group = g.Group
)

// Text is what a reader sees.
//
//go:noinline
func Text(s string) Node { return g.Text(s) }

// If is a node, or nothing.
//
//go:noinline
func If(there bool, n Node) Node {
	if there {
		return n
	}
	return nil
}

// Iff is what a function makes, or nothing: of what may not be there.
func Iff(there bool, f func() Node) Node {
	if there {
		return f()
	}
	return nil
}

// Map is a node for each item.
//
//go:noinline
func Map[T any](items []T, f func(T) Node) Group { return g.Map(items, f) }

// Drawn is the picture of a definition.
func Drawn(document any, v diagram.View) Node { return g.Raw(diagram.SVG(document, v)) }

// The size of a chart, in its own units: it is as wide as there is room.
const (
	ChartWidth  = 300
	ChartHeight = 40
)

// Chart is a line, by the path that SVG has for it, with what it is of.
func Chart(of, path string) Node {
	return element("svg", []Node{
		attribute("class", "chart"), attribute("viewBox", fmt.Sprintf("0 0 %d %d", ChartWidth, ChartHeight)), attribute("preserveAspectRatio", "none"),
		attribute("role", "img"), attribute("aria-label", of), element("path", []Node{attribute("d", path)}),
	})
}

// Page is a whole document.
func Page(language string, head, body Group) Node {
	return g.Group{g.Raw("<!doctype html>"), element("html", []Node{attribute("lang", language), element("head", head), element("body", body)})}
}

// The compiler would write the library's functions into each of their callers, and
// again what those return: four times as much code as the calls.

//go:noinline
func element(name string, inside []Node) Node { return g.El(name, inside...) }

//go:noinline
func attribute(name, value string) Node { return g.Attr(name, value) }

//go:noinline
func flag(name string) Node { return g.Attr(name) }

// Elements.

func Aside(inside ...Node) Node    { return element("aside", inside) }
func Button(inside ...Node) Node   { return element("button", inside) }
func Code(inside ...Node) Node     { return element("code", inside) }
func DataList(inside ...Node) Node { return element("datalist", inside) }
func Dd(inside ...Node) Node       { return element("dd", inside) }
func Details(inside ...Node) Node  { return element("details", inside) }
func Div(inside ...Node) Node      { return element("div", inside) }
func Dl(inside ...Node) Node       { return element("dl", inside) }
func Dt(inside ...Node) Node       { return element("dt", inside) }
func H1(inside ...Node) Node       { return element("h1", inside) }
func H2(inside ...Node) Node       { return element("h2", inside) }
func Header(inside ...Node) Node   { return element("header", inside) }
func Input(inside ...Node) Node    { return element("input", inside) }
func Label(inside ...Node) Node    { return element("label", inside) }
func Li(inside ...Node) Node       { return element("li", inside) }
func Main(inside ...Node) Node     { return element("main", inside) }
func Meta(inside ...Node) Node     { return element("meta", inside) }
func Nav(inside ...Node) Node      { return element("nav", inside) }
func Ol(inside ...Node) Node       { return element("ol", inside) }
func Option(inside ...Node) Node   { return element("option", inside) }
func P(inside ...Node) Node        { return element("p", inside) }
func Pre(inside ...Node) Node      { return element("pre", inside) }
func Section(inside ...Node) Node  { return element("section", inside) }
func Select(inside ...Node) Node   { return element("select", inside) }
func Small(inside ...Node) Node    { return element("small", inside) }
func Span(inside ...Node) Node     { return element("span", inside) }
func Strong(inside ...Node) Node   { return element("strong", inside) }
func Summary(inside ...Node) Node  { return element("summary", inside) }
func TBody(inside ...Node) Node    { return element("tbody", inside) }
func THead(inside ...Node) Node    { return element("thead", inside) }
func Table(inside ...Node) Node    { return element("table", inside) }
func Td(inside ...Node) Node       { return element("td", inside) }
func Textarea(inside ...Node) Node { return element("textarea", inside) }
func Th(inside ...Node) Node       { return element("th", inside) }
func Title(inside ...Node) Node    { return element("title", inside) }
func Tr(inside ...Node) Node       { return element("tr", inside) }
func Ul(inside ...Node) Node       { return element("ul", inside) }

// Br is a new line.
func Br() Node { return element("br", nil) }

// Progress is how much of something is done.
func Progress(done, of int) Node {
	return element("progress", []Node{attribute("max", strconv.Itoa(max(1, of))), attribute("value", strconv.Itoa(done))})
}

// Attributes.

func AccessKey(v string) Node    { return attribute("accesskey", v) }
func AutoComplete(v string) Node { return attribute("autocomplete", v) }
func Charset(v string) Node      { return attribute("charset", v) }
func Class(v string) Node        { return attribute("class", v) }
func Content(v string) Node      { return attribute("content", v) }
func ID(v string) Node           { return attribute("id", v) }
func InputMode(v string) Node    { return attribute("inputmode", v) }
func List(v string) Node         { return attribute("list", v) }
func Name(v string) Node         { return attribute("name", v) }
func Placeholder(v string) Node  { return attribute("placeholder", v) }
func Role(v string) Node         { return attribute("role", v) }
func Type(v string) Node         { return attribute("type", v) }
func Value(v string) Node        { return attribute("value", v) }

func Aria(name, v string) Node { return attribute("aria-"+name, v) }

func Rows(n int) Node { return attribute("rows", strconv.Itoa(n)) }

// Verbatim says that no browser corrects what is written.
func Verbatim() Node { return attribute("spellcheck", "false") }

func Checked() Node  { return flag("checked") }
func Open() Node     { return flag("open") }
func Required() Node { return flag("required") }
func Selected() Node { return flag("selected") }

// Time is a moment: what is said of it, and the moment itself to be read and
// copied.
func Time(t time.Time, says string) Node {
	t = t.UTC()
	return element("time", []Node{attribute("datetime", t.Format(time.RFC3339Nano)), attribute("title", t.Format("2006-01-02 15:04:05.000")+" UTC"), Text(says)})
}
