package html_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/console/html"
)

const evil = `"'><script>alert(1)</script>&amp;`

func shown(t *testing.T, n html.Node) string {
	t.Helper()
	var s strings.Builder
	if err := n.Render(&s); err != nil {
		t.Fatal(err)
	}
	return s.String()
}

// Texts and attributes are what they are, wherever they stand.
func TestTextsAndAttributesAreEscaped(t *testing.T) {
	t.Parallel()
	const escaped = `&#34;&#39;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;`
	for want, n := range map[string]html.Node{
		`<p>` + escaped + `</p>`:                                                         html.P(html.Text(evil)),
		`<title>` + escaped + `</title>`:                                                 html.Title(html.Text(evil)),
		`<textarea>` + escaped + `</textarea>`:                                           html.Textarea(html.Text(evil)),
		`<input value="` + escaped + `">`:                                                html.Input(html.Value(evil)),
		`<input value="" required>`:                                                      html.Input(html.Value(""), html.Required()),
		`<p class="` + escaped + `" aria-label="a"></p>`:                                 html.P(html.Class(evil), html.Aria("label", "a")),
		`<code id="` + escaped + `">x</code>`:                                            html.Code(html.ID(evil), nil, html.If(false, html.Br()), html.Text("x")),
		`<a href="/c/%22%27%3E%3Cscript%3Ealert%281%29%3C%2Fscript%3E&amp;amp%3B">x</a>`: html.A(html.At("/c", evil), html.Text("x")),
		`<form method="post" action="/c/a%2Fb"></form>`:                                  html.Post(html.At("/c", "a/b")),
		`<form method="get"><br></form>`:                                                 html.Find(html.Address{}, html.Br()),
		`<!doctype html><html lang="en"><head></head><body>x</body></html>`:              html.Page("en", nil, html.Group{html.Text("x")}),
	} {
		if got := shown(t, n); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

// No address leads to another host or runs a script, whatever it is made of.
func TestAddressesStayHere(t *testing.T) {
	t.Parallel()
	here := func(s string) html.Address {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return html.Here(u)
	}
	for want, a := range map[string]html.Address{
		"/c/javascript:alert%281%29":     html.At("/c", "javascript:alert(1)"),
		"/javascript:alert%281%29":       html.At("", "javascript:alert(1)"),
		"/javascript:alert(1)":           html.At("javascript:alert(1)"),
		"/evil.example":                  html.At("//evil.example"),
		"/%2Fevil.example":               html.At("", "/evil.example"),
		"/evil.example/x?q=1":            here("//host//evil.example/x?q=1"),
		"/%5Cevil.example":               here(`/\evil.example`).Below("x").Above(),
		"/c/tasks/a%2Fb":                 here("https://evil.example/c/tasks/a%2Fb/claim?x=/y").Above(),
		"/c?a=javascript%3Aalert%281%29": html.At("/c").With("a", "old").With("a", "javascript:alert(1)"),
		"/c/x":                           html.At("/c").With("a", "/").Asking(nil).Below("x"),
		"#javascript:alert%281%29":       html.Place("javascript:alert(1)"),
		"/":                              here("mailto:x").Above(),
	} {
		if got := a.String(); got != strings.ReplaceAll(want, `\`, "") {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
