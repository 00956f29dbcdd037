package program

import (
	"strings"

	"github.com/aqueduct-engine/aqueduct/ack"
)

// Redeliveries implements [ack.Redeliverer]. Whatever version of a policy a command is of,
// the rule of the newest counts: that of the same place, or else the first one by which the
// consumer is told of the state.
func (p *policed) Redeliveries(pointer string) ack.Retries {
	ofPolicy, state, number, consumer, ok := ack.Rule(pointer)
	if !ok {
		return ack.Retries{}
	}
	rules := "/states/" + state + "/policies/"
	if ofPolicy {
		rules = "/policy/" + p.Policy.Version + rules
	}
	if n := p.nodes[rules+number+"/"+consumer]; n != nil {
		return n.Call.Retries
	}
	var first *Node
	for at, n := range p.nodes {
		number, name, _ := strings.Cut(strings.TrimPrefix(at, rules), "/")
		if !strings.HasPrefix(at, rules) || name != consumer || n.Call == nil {
			continue
		}
		if first == nil || before(number, first.Pointer[len(rules):]) {
			first = n
		}
	}
	if first == nil {
		return ack.Retries{}
	}
	return first.Call.Retries
}

// before reports whether the rule of a number stands before the one that another pointer
// begins with.
func before(number, other string) bool {
	other, _, _ = strings.Cut(other, "/")
	return len(number) < len(other) || len(number) == len(other) && number < other
}
