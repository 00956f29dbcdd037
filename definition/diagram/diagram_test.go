package diagram_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/definition/diagram"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
)

var rewrite = flag.Bool("rewrite", false, "write what is drawn into testdata; look at the diff")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".mmd")
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run with -rewrite and look at the diff\n%s", file, got)
	}
}

func decode(t *testing.T, document []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(document, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestExamplesAreDrawn(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/*/workflow.yaml")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	lifecycles, err := filepath.Glob("../../examples/*/lifecycle.json")
	if err != nil || len(lifecycles) < 1 {
		t.Fatal(lifecycles, err)
	}
	files = append(files, lifecycles...)
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := openworkflow.Parse(file, source)
		if err != nil {
			t.Fatal(err)
		}
		text := diagram.Mermaid(decode(t, p.Document), nil, false)
		if strings.HasSuffix(file, ".yaml") {
			sound(t, text)
		}
		golden(t, filepath.Base(filepath.Dir(file)), text)
	}
}

// everyKind has the kinds of the language, and one that nobody knows.
const everyKind = `{"do": [
  {"wait a \"moment\"": {"if": "${ .n > 1 }", "wait": {"minutes": 5}}},
  {"ask": {"call": "humanTask", "with": {"title": "Approve <this> #1"}, "timeout": {"after": "P3D"}}},
  {"both": {"fork": {"compete": true, "branches": [
    {"left": {"do": [{"l1": {"set": {"a": 1}}}, {"l2": {"run": {"workflow": {"name": "child"}}}}]}},
    {"right": {"emit": {"event": {"with": {"type": "org.x"}}}}}]}}},
  {"loop": {"for": {"each": "x", "in": ".xs"}, "do": [
    {"look": {"switch": [{"stop": {"when": ".x == 3", "then": "exit"}}, {"all": {"then": "end"}}]}},
    {"heard": {"listen": {"to": {"any": [{"with": {"type": "a"}}, {"with": {"type": "b"}}]}}, "foreach": {"item": "e", "do": [{"each": {"set": {"b": 2}}}]}}}]}},
  {"guarded": {"try": [{"bang": {"raise": {"error": {"type": "https://x/errors/odd", "status": 500}}}}],
    "catch": {"errors": {"with": {"status": 500}}, "retry": {"limit": 3}, "then": "last"}}},
  {"novel": {"teleport": {"to": "mars"}, "inside": {"do": [{"n1": {"set": {"c": 3}}}]}, "then": "nowhere"}},
  {"odd": 7},
  {"last": {"call": "score", "then": "end"}}
]}`

func TestEveryKindIsDrawn(t *testing.T) {
	t.Parallel()
	marks := []diagram.Mark{
		{Pointer: "/do/3/loop/do/1/heard", Text: "waits for an event"},
		{Pointer: "/do/2/both/fork/branches/0/left/do", Text: "goes on"},
		{Pointer: "/do/5/novel", Fault: true, Text: "failed"},
		{Pointer: "/do", Text: "deadline"},
	}
	golden(t, "every-kind", sound(t, diagram.Mermaid(decode(t, []byte(everyKind)), marks, true)))
}

func TestAnyDocumentIsDrawn(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{`null`, `[]`, `{}`, `{"do":{}}`, `{"do":[1,{},{"a":1,"b":2},{"c":{"do":7}},{"d":{"switch":3,"try":[1]}},{"e":{"for":1}},{"f":{"raise":"x"}}]}`} {
		sound(t, diagram.Mermaid(decode(t, []byte(doc)), []diagram.Mark{{Pointer: "/do/9/x/y", Text: "lost"}, {Text: "x"}}, false))
	}
}

var (
	node  = regexp.MustCompile(`^(\w+)[\[({]`)
	arrow = regexp.MustCompile(`^(\w+) -\.?->?(?:\|"[^"]*"\|)? (\w+)`)
)

// sound checks what Mermaid needs: boxes are closed, every arrow joins nodes
// that are drawn, quotes are in pairs.
func sound(t *testing.T, text string) string {
	t.Helper()
	known, depth := map[string]bool{}, 0
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.Count(line, `"`)%2 != 0 {
			t.Errorf("quotes: %s", line)
		}
		if rest, ok := strings.CutPrefix(line, "subgraph "); ok {
			depth++
			line = rest
		}
		if line == "end" {
			depth--
		}
		if m := node.FindStringSubmatch(line); m != nil {
			if known[m[1]] {
				t.Errorf("%s is drawn twice", m[1])
			}
			known[m[1]] = true
		}
		if m := arrow.FindStringSubmatch(line); m != nil && (!known[m[1]] || !known[m[2]]) {
			t.Errorf("%s joins what is not there", line)
		}
	}
	if depth != 0 || !strings.HasPrefix(text, "flowchart TD\n") || !known["S"] || !known["E"] {
		t.Errorf("not a flowchart:\n%s", text)
	}
	return text
}

const loan = `{"lifecycle": "1.0", "states": {
  "Draft": {"category": "initial"}, "In \"review\"": {"timeout": "PT48H", "timeoutEvent": "expire"}, "Done": {"category": "final"}},
  "transitions": [
    {"from": "Draft", "event": "submit", "to": "In \"review\"", "when": "${ .n > 0 }"},
    {"from": ["In \"review\""], "event": "expire", "to": "Done"},
    {"from": "*", "event": "cancel: now", "to": "Done"},
    {"from": "Nowhere", "event": "x", "to": "Done"}, 7]}`

func TestALifecycleIsDrawnAsStates(t *testing.T) {
	t.Parallel()
	marks := []diagram.Mark{
		{Pointer: "/states/Draft", Text: "waits for an event"},
		{Pointer: "/transitions/1/hooks/0/pay", Fault: true, Text: "faulted: 503"},
		{Pointer: "/transitions/99", Text: "lost"},
	}
	golden(t, "lifecycle", diagram.Mermaid(decode(t, []byte(loan)), marks, false))
}
