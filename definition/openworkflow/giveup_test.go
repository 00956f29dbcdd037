package openworkflow

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/program"
)

// How long a command may wait is said by its task, by one around it, or by the
// document; anything but a duration is a finding.
func TestGiveUpAfter(t *testing.T) {
	t.Parallel()
	const source = `
document: {dsl: '1.0.3', namespace: t, name: n, version: '1.0.0', metadata: {giveUpAfter: DOC, owner: {a: 1}}}
do:
  - a: {call: f}
  - b: {do: [{c: {call: f, metadata: {giveUpAfter: TASK}}}, {d: {call: f}}], metadata: {giveUpAfter: {minutes: 5}}}
`
	parse := func(doc, task string) (*program.Program, error) {
		p, err := Parse("g.yaml", []byte(strings.NewReplacer("DOC", doc, "TASK", task).Replace(source)))
		made, _ := p.Definition.(*program.Program)
		return made, err
	}
	p, err := parse("PT1H", "PT30S")
	if err != nil {
		t.Fatal(err)
	}
	list := p.Root.List
	got := []time.Duration{list[0].GiveUp, list[1].Body.List[0].GiveUp, list[1].Body.List[1].GiveUp}
	if got[0] != time.Hour || got[1] != 30*time.Second || got[2] != 5*time.Minute {
		t.Errorf("commands wait %v", got)
	}
	for value, want := range map[string]string{"PT0S": "before it is sent", "soon": "write PT10M", "3": "a duration", "'${ .x }'": "write PT10M"} {
		for _, at := range []string{"/document/metadata/giveUpAfter", "/do/1/b/do/0/c/metadata/giveUpAfter"} {
			doc, task := value, "PT1S"
			if strings.HasPrefix(at, "/do/") {
				doc, task = task, value
			}
			if _, err := parse(doc, task); err == nil || !strings.Contains(findingsOf(err), at+" ") || !strings.Contains(findingsOf(err), want) {
				t.Errorf("%s at %s: %s", value, at, findingsOf(err))
			}
		}
	}
}

func findingsOf(err error) string {
	var p *problem.Error
	if !errors.As(err, &p) {
		return ""
	}
	text := ""
	for _, w := range p.Where {
		text += w.Pointer + " " + w.Detail + " " + w.Hint + "\n"
	}
	return text
}
