package diagram

import (
	"encoding/json"
	"testing"
)

func TestAWorkflowInGoIsDrawn(t *testing.T) {
	t.Parallel()
	var document any
	if err := json.Unmarshal([]byte(`{"workflow": "shop/order", "version": "1.0.0", "start": ["charge"], "steps": [
		{"name": "charge", "kind": "call", "target": "chargeCard", "to": ["pause"], "onFailure": []},
		{"name": "pause", "kind": "timer", "to": []}]}`), &document); err != nil {
		t.Fatal(err)
	}
	const want = `flowchart TD
  S(["start"])
  t1["charge<br/>call chargeCard<br/>► faulted"]
  t2["pause<br/>timer"]
  E(["end"])
  S --> t1
  t1 --> t2
  t1 -->|"failure"| E
  t2 --> E
  classDef here fill:#fff3bf,stroke:#e67700,stroke-width:3px
  classDef fault fill:#ffe3e3,stroke:#c92a2a,stroke-width:3px
  class t1 fault
`
	if got := Mermaid(document, []Mark{{Pointer: "/charge", Fault: true, Text: "faulted"}}, false); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
