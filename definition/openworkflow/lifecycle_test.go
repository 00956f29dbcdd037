package openworkflow

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// loan is a lifecycle; tests replace parts of it.
const loan = `lifecycle: '1.0'
environment: shop
definition: loan
version: '1.0.0'
states:
  Draft: {category: initial}
  Review: {timeout: PT48H, timeoutEvent: expire}
  Done: {category: final}
events:
  submit: {code: 1000}
  expire: {}
transitions:
  - {from: Draft, event: submit, to: Review, when: '.n > 0'}
  - {from: Review, event: expire, to: Done}
`

// TestLifecycleFindings: what is wrong is said at its own place (D1).
func TestLifecycleFindings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, new, want string }{
		{"'1.0'\nenv", "'2.0'\nenv", "unsupported /lifecycle 1:"},
		{"environment: shop", "enviroment: shop", "unknown-field /enviroment 2:"},
		{"environment: shop", "enviroment: shop", "missing-field  1:"},
		{"'1.0.0'", "one", "type /version 4:"},
		{"category: initial", "category: begin", "type /states/Draft/category 6:"},
		{"{category: initial}", "{}", "missing-field /states 6: give one state category: initial"},
		{"Review: {", "Review: {category: initial, ", "type /states/Review "},
		{"Review: {", "Review: {notices: {AckRetryPendin: false}, ", "unknown-reference /states/Review/notices/AckRetryPendin 7: did you mean AckRetryPending?"},
		{"Review: {", "Review: {notices: {StateStale: 0}, ", "type /states/Review/notices/StateStale 7:"},
		{"Review: {", "Review: {retry: often, ", "unknown-reference /states/Review/retry 7: define it under use.retries"},
		{"Review: {", "Review: {retry: {delay: soon}, ", "type /states/Review/retry/delay 7:"},
		{"Review: {", "Review: {retry: {limit: {attempt: {duration: PT1S}}, delay: PT1S}, ", "unsupported /states/Review/retry 7: give the call a timeout"},
		{"timeout: PT48H", "timeout: soon", "type /states/Review/timeout 7:"},
		{"timeout: PT48H, ", "", "missing-field /states/Review/timeoutEvent 7:"},
		{"timeoutEvent: expire", "timeoutEvent: expires", "unknown-reference /states/Review/timeoutEvent 7: did you mean expire?"},
		{"timeoutEvent: expire", "timeoutEvent: submit", "unknown-reference /states/Review/timeoutEvent 7: add the transition"},
		{"{category: final}", "{category: final, timeout: PT1S}", "type /states/Done/timeout 8:"},
		{"{category: final}", "{category: final, onExit: [{a: {set: {b: 1}}}]}", "type /states/Done/onExit 8:"},
		{"{category: final}", "{category: final, onEnter: [{a: {sett: {b: 1}}}]}", "missing-field /states/Done/onEnter/0/a 8: did you mean set"},
		{"{category: final}", "{category: final, onEnter: [{a: {set: {b: '${ $secret }'}}}]}", "expression /states/Done/onEnter/0/a/set/b 8:"},
		{"Done: {", "'': {", "type /states/ 8:"},
		{"code: 1000", "code: 1.5", "type /events/submit/code 10:"},
		{"expire: {}", "expire: {code: 1000}", "type /events/submit 10: the other one is /events/expire"},
		{"expire: {}", "expire: {schema: {document: {type: 7}}}", "schema /events/expire/schema/document 11:"},
		{"from: Draft", "from: Drafd", "unknown-reference /transitions/0/from 13: did you mean Draft?"},
		{"from: Draft", "from: [Draft, Done]", "type /transitions/0/from/1 13:"},
		{"from: Draft", "from: [Draft, Draft]", "type /transitions/0/from/1 13:"},
		{"from: Draft", "from: []", "missing-field /transitions/0/from 13:"},
		{"from: Draft, ", "", "missing-field /transitions/0 13:"},
		{"event: submit", "event: send", "unknown-reference /transitions/0/event 13: one of expire, submit"},
		{"to: Review", "to: Reviews", "unknown-reference /transitions/0/to 13: did you mean Review?"},
		{"'.n > 0'", "'.n >'", "expression /transitions/0/when 13:"},
		{"'.n > 0'", "'$input.n > 0'", "expression /transitions/0/when 13:"},
		{"when: '.n > 0'", "set: 7", "type /transitions/0/set 13:"},
		{"when: '.n > 0'", "hooks: {a: 1}", "type /transitions/0/hooks 13:"},
		{"when: '.n > 0'", "guard: '.n > 0'", "unknown-field /transitions/0/guard 13:"},
		{"when: '.n > 0'", "set: '${ . + $event.data + {to: $transition.to} }'", "ok"},
		{"from: Draft", "from: '*'", "ok"},
		{"events:", policy("{states: Review, consumers: [billing, stock], route: r, data: '${ .n }', await: true}"), "ok"},
		{"events:", policy("{states: '*', consumers: '*', event: submit}"), "ok"},
		{"events:", policy("{consumers: billing}"), "missing-field /policies/0 "},
		{"events:", policy("{states: Reviews, consumers: billing}"), "unknown-reference /policies/0/states 12: did you mean Review?"},
		{"events:", policy("{states: [Draft, Draft], consumers: billing}"), "type /policies/0/states/1 12:"},
		{"events:", policy("{states: [], consumers: billing}"), "missing-field /policies/0/states 12: a state, a list"},
		{"events:", policy("{states: Draft, consumers: [biling]}"), "unknown-reference /policies/0/consumers/0 12: did you mean billing?"},
		{"events:", policy("{states: Draft, consumers: billing, event: submitt}"), "unknown-reference /policies/0/event 12: did you mean submit?"},
		{"events:", policy("{states: Draft, consumers: billing, await: 1}"), "type /policies/0/await 12:"},
		{"events:", policy("{states: Draft, consumers: billing, await: ~}"), "type /policies/0/await 12:"},
		{"Review: {", "Review: {retry: {delay: PT1S, limit: {duration: PT0S}}, ", "type /states/Review/retry/limit/duration 7: leave retry out"},
		{"Review: {", "Review: {retry: {delay: PT5S, limit: {duration: {seconds: 4}}}, ", "type /states/Review/retry/limit/duration 7: make it longer"},
		{"Review: {", "Review: {retry: {delay: PT5S, jitter: {from: PT2S, to: {seconds: 1}}}, ", "type /states/Review/retry/jitter 7: write the shorter one"},
		{"Review: {", "Review: {retry: {delay: '${ .d }', jitter: {from: PT2S, to: PT2S}, limit: {duration: PT1S}}, ", "ok"},
		{"events:", policy("{states: Draft, consumers: [billing, stock], await: any}"), "ok"},
		{"events:", policy("{states: Draft, consumers: [billing, stock], await: first}"), "type /policies/0/await 12: all (or true) waits for all"},
		{"events:", policy("{states: Draft, consumers: billing, await: any, ackRequired: false}"), "ok"}, // it waits until the first has taken it
		{"events:", policy("{states: Draft, consumers: billing, retry: {delay: PT1S, delayMax: {minutes: 1}, limit: {duration: P2D}}}"), "ok"},
		{"events:", policy("{states: Draft, consumers: billing, retry: {}}"), "missing-field /policies/0/retry 12: delay, delayMax, limit"},
		{"events:", policy("{states: Draft, consumers: billing, retry: PT1S}"), "type /policies/0/retry 12:"},
		{"events:", policy("{states: Draft, consumers: billing, retry: {delay: PT0S}}"), "type /policies/0/retry/delay 12:"},
		{"events:", policy("{states: Draft, consumers: billing, retry: {delay: -PT1S}}"), "type /policies/0/retry/delay 12:"},
		{"events:", policy("{states: Draft, consumers: billing, retry: {delay: '${ .pause }'}}"), "type /policies/0/retry/delay 12:"},
		{"events:", policy("{states: Draft, consumers: billing, retry: {delay: 5}}"), "type /policies/0/retry/delay 12:"},
		{"events:", policy("{states: Draft, consumers: billing, retry: {delayMax: PT24H1S}}"), "type /policies/0/retry/delayMax 12:"},
		{"events:", policy("{states: Draft, consumers: billing, retry: {limit: {duration: P366D}}}"), "type /policies/0/retry/limit/duration 12:"},
		{"events:", policy("{states: Draft, consumers: billing, retry: {limit: {duration: PT0.5S}}}"), "type /policies/0/retry/limit/duration 12:"},
		{"events:", policy("{states: Draft, consumers: billing, retry: {limit: {}}}"), "missing-field /policies/0/retry/limit"},
		{"events:", policy("{states: Draft, consumers: billing, retry: {limit: {attempt: {count: 3}}}}"), "/policies/0/retry/limit/attempt 12:"},
		{"events:", policy("{states: Draft, consumers: billing, retry: {delay: PT2M, delayMax: PT1M}}"), "type /policies/0/retry/delay 12: make it shorter, or delayMax longer"},
		{"events:", policy("{states: Draft, consumers: billing, retry: {delay: PT2M, limit: {duration: PT1M}}}"), "type /policies/0/retry/delay 12: make it shorter, or the limit longer"},
		{"events:", policy("{states: Draft, consumers: billing, retry: {delayMax: PT2M, limit: {duration: PT1M}}}"), "type /policies/0/retry/delayMax 12: make it shorter, or the limit longer"},
		{"events:", policy("{states: Draft, consumers: billing, route: ''}"), "type /policies/0/route 12:"},
		{"events:", policy("{states: Draft, consumers: billing, data: '${ $inputs }'}"), "expression /policies/0/data 12:"},
		{"events:", "consumers: {billing: {endpoint: 'ftp://x'}}\nevents:", "type /consumers/billing/endpoint 9: begin it with https://"},
		{"events:", policy("{states: Draft, consumers: billing}", "PT0S"), "type /consumers/billing/within 10: write PT5M"},
		{"events:", policy("{states: Draft, consumers: billing}", "-PT5M"), "type /consumers/billing/within 10:"},
		{"submit: {", "submit: {roles: [\"a\\u0000b\"], ", "type /events/submit/roles/0 10:"},
		{"{category: initial}", "{category: initial, onEnter: [{a: {set: {n: 1}, then: end}}]}", "unsupported /states/Draft/onEnter/0/a/then 6: write exit"},
		{"{category: initial}", "{category: initial, onExit: [{a: {switch: [{s: {then: end}}]}}]}", "unsupported /states/Draft/onExit/0/a/switch/0/s/then 6: write exit"},
		{"when: '.n > 0'", "hooks: [{a: {do: [{b: {set: {n: 1}, then: end}}]}}]", "unsupported /transitions/0/hooks/0/a/do/0/b/then 13: write exit"},
		{"{category: initial}", "{category: initial, onEnter: [{a: {set: {n: 1}, then: exit}}]}", "ok"},
		{"events:", "consumers: {billing: {}}\nevents:", "missing-field /consumers/billing "},
		{"events:", "consumers: {billing: {endpoint: 'http://x', within: soon}}\nevents:", "type /consumers/billing/within 9:"},
	} {
		doc := strings.Replace(loan, c.old, c.new, 1)
		if doc == loan {
			t.Fatalf("%q is not in the document", c.old)
		}
		got := lifecycleFindings(doc)
		if strings.Contains(got, "/with/") {
			t.Errorf("%s: %s is in no document", c.new, got)
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s -> %s\n got %s\nwant %s", c.old, c.new, got, c.want)
		}
	}
}

// policy is a part of a document, before its events.
func policy(text string, within ...string) string {
	w := "PT1M"
	if len(within) > 0 {
		w = within[0]
	}
	return "consumers:\n  billing: {endpoint: 'https://billing.example/{id}', within: " + w + "}\n  stock: {endpoint: 'https://stock.example'}\npolicies: [" + text + "]\nevents:"
}

func lifecycleFindings(doc string) string {
	_, err := Parse("l.yaml", []byte(doc))
	if err == nil {
		return "ok"
	}
	var e *problem.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	var all []string
	for _, p := range e.Where {
		all = append(all, strings.TrimPrefix(p.Code, "definition.")+" "+p.Pointer+" "+strconv.Itoa(p.Line)+": "+p.Hint)
	}
	return strings.Join(all, "\n")
}

// TestLifecycleWarnings: what is allowed and probably not meant.
func TestLifecycleWarnings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, new, want string }{
		{"Done: {", "Lost: {}\n  Done: {", "warning.unreachable-state /states/Lost\nwarning.dead-end /states/Lost"},
		{"when: '.n > 0'}", "title}", ""},
		{", when: '.n > 0'}", "}\n  - {from: Draft, event: submit, to: Done}", "warning.shadowed /transitions/1"},
		{"{category: initial}", "{category: initial, onEnter: [{calm: {do: [{rest: {wait: PT1S}}]}}]}", "warning.first-event /states/Draft/onEnter/0/calm/do/0/rest"},
		{"events:", policy("{states: '*', consumers: billing, await: true}"), "warning.first-event /policies/0/await"},
		{"events:", policy("{states: [Review, Draft], consumers: [billing, stock], await: any}"), "warning.first-event /policies/0/await"},
		{"events:", policy("{states: Review, consumers: billing, await: true}, {states: '*', consumers: billing, await: true, event: submit}, {states: Draft, consumers: stock}"), ""},
		{"{category: initial}", "{category: initial, onEnter: [{note: {set: {n: 1}}}, {tell: {emit: {event: {with: {type: t, source: 'https://s'}}}}}]}", ""},
	} {
		p, err := Parse("l.yaml", []byte(strings.Replace(strings.Replace(loan, c.old, c.new, 1), "title}", "}", 1)))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range p.Warnings {
			got = append(got, w.Code+" "+w.Pointer)
		}
		if all := strings.Join(got, "\n"); all != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.new, all, c.want)
		}
	}
}

func TestLifecycleIsNamedByItsEnvironment(t *testing.T) {
	t.Parallel()
	p, err := Parse("l.yaml", []byte(loan))
	if err != nil {
		t.Fatal(err)
	}
	if p.Ref.Name != "shop/loan" || p.Ref.Version != "1.0.0" || len(p.Ref.Digest) != 64 || p.Title != "shop/loan" {
		t.Errorf("%+v", p.Ref)
	}
}
