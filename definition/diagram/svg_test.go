package diagram_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/definition/diagram"
)

// picture checks what a reader of SVG needs: it is well-formed, no box lies
// outside of it, and nothing that needs a style or a script is in it.
func picture(t *testing.T, text string) string {
	t.Helper()
	number := func(e xml.StartElement, name string) int {
		for _, a := range e.Attr {
			if a.Name.Local == name {
				n, err := strconv.Atoi(a.Value)
				if err != nil {
					t.Errorf("%s of %s: %s", name, e.Name.Local, err)
				}
				return n
			}
		}
		return -1
	}
	d, w, h, boxes := xml.NewDecoder(strings.NewReader(text)), 0, 0, 0
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		e, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range e.Attr {
			if a.Name.Local == "style" || strings.HasPrefix(a.Name.Local, "on") {
				t.Errorf("%s has %s", e.Name.Local, a.Name.Local)
			}
		}
		switch e.Name.Local {
		case "svg":
			w, h = number(e, "width"), number(e, "height")
		case "rect":
			boxes++
			if x, y := number(e, "x"), number(e, "y"); x < 0 || y < 0 || x+number(e, "width") > w || y+number(e, "height") > h {
				t.Errorf("a box at %d, %d is outside of %d x %d", x, y, w, h)
			}
		}
	}
	if boxes == 0 || w == 0 || h == 0 {
		t.Errorf("nothing is drawn:\n%s", text)
	}
	return text
}

func TestPicturesAreSound(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/*/lifecycle.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	documents := []string{`null`, `[]`, `{}`, `{"states":[]}`, `{"states":{}}`, `{"do":{}}`, `{"do":[{"a\u0001\uffff\ud800":{"set":{}}}]}`, `{"do":[1,{},{"a":1,"b":2},{"c":{"do":7}},{"d":{"switch":3,"try":[1]}},{"e":{"for":1}},{"f":{"raise":"x"}}]}`, `{"do":[{"a":{"&k\"><script/>":1}},{"b":{"x y":1}}]}`, `{"states": {"<A&B>": {}}, "transitions": [{"from": "<A&B>", "to": "<A&B>", "event": "\"x\""}]}`}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(source))
	}
	for _, doc := range documents {
		picture(t, diagram.SVG(decode(t, []byte(doc)), diagram.View{Marks: []diagram.Mark{{Pointer: "/do/9/x/y", Text: "<lost>"}, {Text: "x"}}}))
	}
}

func TestWhatAnInstanceDidIsInItsPicture(t *testing.T) {
	t.Parallel()
	text := picture(t, diagram.SVG(decode(t, []byte(everyKind)), diagram.View{
		Marks: []diagram.Mark{
			{Pointer: "/do/3/loop/do/1/heard", Text: "waits for an event"},
			{Pointer: "/do/5/novel", Fault: true, Text: "failed"},
		},
		Path:   map[string]bool{`/do/0/wait a "moment"`: true},
		Counts: map[string]int{"/do/7/last": 12},
		Ended:  true,
	}))
	for _, want := range []string{
		`<rect class="node wait done"`, `► waits for an event`, `<rect class="frame fault"`, `12 here`,
		`<rect class="end-point done"`, `.x == 3 → exit`, `then → end`, `href="#/do/1/ask"`, `Approve &lt;this&gt; #1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s", want)
		}
	}
	if !strings.Contains(diagram.Alone(text), "<style>") {
		t.Error("a picture alone has no style")
	}
	again := diagram.SVG(decode(t, []byte(everyKind)), diagram.View{})
	if again != diagram.SVG(decode(t, []byte(everyKind)), diagram.View{}) {
		t.Error("the same document is drawn in two ways")
	}
}

// What is marked may be anywhere; what is nowhere stands at the start.
func TestAMarkThatIsNowhereIsDrawn(t *testing.T) {
	t.Parallel()
	text := picture(t, diagram.SVG(decode(t, []byte(everyKind)), diagram.View{Marks: []diagram.Mark{{Pointer: "x", Text: "no pointer"}, {Pointer: "/do/99/y", Text: "another document"}}}))
	for _, want := range []string{"no pointer", "another document"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
}

func TestStatesAreDrawnWithTheirArcs(t *testing.T) {
	t.Parallel()
	text := picture(t, diagram.SVG(decode(t, []byte(loan)), diagram.View{
		Marks:  []diagram.Mark{{Pointer: "/states/Draft", Text: "rests here"}},
		Counts: map[string]int{"Done": 3},
	}))
	for _, want := range []string{`submit [.n &gt; 0] → In &#34;review&#34;`, `<rect class="node state here"`, `3 here`, `Draft (initial)`} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
	if n := strings.Count(text, `marker-end="url(#tip)"`); n != 4 {
		t.Errorf("%d arcs, not 4: submit, expire, and cancel of two states", n)
	}
}

func FuzzPictures(f *testing.F) {
	f.Add([]byte(everyKind))
	f.Add([]byte(loan))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var v any
		if len(doc) > 1<<14 || bytes.Count(doc, []byte("{")) > 500 || json.Unmarshal(doc, &v) != nil {
			return
		}
		picture(t, diagram.SVG(v, diagram.View{}))
	})
}
