package scenarios_test

import (
	"errors"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/sql/steps"
)

// Sub-workflows of the cases: on a node they run, in the kit they are stubbed.
const (
	kitChild    = "document: {dsl: '1.0.3', namespace: t, name: child, version: '1.0.0'}\ndo: [{answer: {set: {sum: '${ .n + 1 }'}}}]\n"
	kitBadChild = "document: {dsl: '1.0.3', namespace: t, name: bad, version: '1.0.0'}\ndo: [{stop: {raise: {error: {type: urn:bad, status: 400, title: Bad, detail: it is}}}}]\n"
)

var errPlain = errors.New("no luck")

// authorsRetry retries what a call fails with, by the author's policy.
func authorsRetry(call, with string) string {
	return "do:\n  - safe:\n      try: [{ask: " + call + "}]\n      catch:\n        " + with + "\n"
}

var kitCases = map[string]kitCase{
	"the node's own attempts": {
		do:      `do: [{ask: {call: http, with: {method: post, endpoint: '${ .base + "/a" }', body: {n: '${ .n }'}}}}]`,
		replies: map[string][]reply{"/a": {{status: 503}, {status: 429}, {body: `{"ok":true}`}}},
	},
	"the node's attempts are used up": {
		do:      `do: [{ask: {call: http, with: {method: post, endpoint: '${ .base + "/a" }', body: {n: '${ .n }'}}}}]`,
		replies: map[string][]reply{"/a": {{status: 503}}},
	},
	"a status that stays": {
		do:      `do: [{ask: {call: http, with: {method: post, endpoint: '${ .base + "/a" }', body: {n: '${ .n }'}}}}]`,
		replies: map[string][]reply{"/a": {{status: 404}}},
	},
	"a gateway's outcome is unknown": {
		do:      `do: [{ask: {call: http, with: {method: post, endpoint: '${ .base + "/a" }', body: {n: '${ .n }'}}}}]`,
		replies: map[string][]reply{"/a": {{status: 502}, {status: 404}}},
	},
	"the author's budget": {
		do:      authorsRetry(`{call: http, with: {method: post, endpoint: '${ .base + "/a" }', body: {n: '${ .n }'}}}`, `{errors: {with: {status: 503}}, retry: {delay: PT0.01S, limit: {attempt: {count: 3}}}}`),
		replies: map[string][]reply{"/a": {{status: 503}}},
	},
	"the author's budget is not for another error": {
		do:      authorsRetry(`{call: http, with: {method: post, endpoint: '${ .base + "/a" }', body: {n: '${ .n }'}}}`, `{errors: {with: {status: 503}}, retry: {delay: PT0.01S, limit: {attempt: {count: 3}}}}`),
		replies: map[string][]reply{"/a": {{status: 503}, {status: 500}, {status: 500}, {status: 503}, {body: `1`}}},
	},
	"a function fails": {
		do:      `do: [{ask: {call: f, with: {n: '${ .n }'}}}]`,
		replies: map[string][]reply{"f": {{err: errPlain}, {err: errPlain}, {body: `7`}}},
	},
	"a function fails for good": {
		do:      authorsRetry(`{call: f, with: {n: '${ .n }'}}`, `{do: [{note: {set: '${ $error | {type, status, title, detail} }'}}]}`),
		replies: map[string][]reply{"f": {{err: activity.Permanent(errPlain)}}},
	},
	"a function raises": {
		do:      authorsRetry(`{call: f, with: {n: '${ .n }'}}`, `{errors: {with: {type: urn:own}}, do: [{note: {set: '${ $error | {type, status, title, detail} }'}}]}`),
		replies: map[string][]reply{"f": {{err: &activity.Error{Type: "urn:own", Status: 418, Title: "Own", Detail: "mine"}}}},
	},
	"a function does not answer": {
		do:      `do: [{ask: {call: f, with: {n: '${ .n }'}}}]`,
		replies: map[string][]reply{"f": {{never: true}}},
	},
	"an outcome is undecided, and the same is sent": {do: undecided, replies: lostThenGood, acts: []func(player){
		func(p player) { p.operate(engine.RetrySame) },
	}},
	"an outcome is undecided, and the new is sent": {do: undecided, replies: lostThenGood, acts: []func(player){
		func(p player) { p.operate(engine.RetryNew) },
	}},
	"an extension stands in for a call": {
		do: `use:
  extensions:
    - mock:
        extend: call
        when: .mocked
        before: [{answer: {set: {mocked: false, by: '${ $task.name }'}, then: exit}}]
    - log:
        extend: all
        before: [{told: {call: f, with: {log: before}}}]
        after: [{told: {call: f, with: {log: after}}}]
do:
  - real: {call: f, with: {n: '${ .n }'}, output: {as: '${ {n: ., mocked: true} }'}}
  - mocked: {call: f, with: {n: 2}}
`,
		replies: map[string][]reply{"f": {{body: `5`}}},
	},
	"a saga": {
		do: `do:
  - one: {call: f, with: {n: 1}, metadata: {compensate: {call: f, with: {undo: 1}}}}
  - two: {call: f, with: {n: 2}, metadata: {compensate: {call: f, with: {undo: 2}}}}
  - three: {call: g, with: {n: 3}}
`,
		replies: map[string][]reply{"f": {{body: `1`}}, "g": {{err: activity.Permanent(errPlain)}}},
	},
	"a saga undone by others": {
		do: `do:
  - one: {call: f, with: {n: 1}, metadata: {compensate: {run: {workflow: {namespace: t, name: child, version: '1.0.0', input: {n: 1}}}}}}
  - two: {call: f, with: {n: 2}, metadata: {compensate: {call: humanTask, with: {candidateUsers: [ann], outcomes: [done, lost]}}}}
  - items: {call: forEach, with: {in: '${ [3] }', call: f, with: {n: '${ $item }'}, compensate: {call: f, with: {undo: '${ $item }'}}}}
  - three: {call: g, with: {n: 4}}
`,
		replies: map[string][]reply{"f": {{body: `1`}}, "g": {{err: activity.Permanent(errPlain)}}, "run t/child": {{body: `{"sum":2}`}}},
		acts: []func(player){
			func(p player) { p.complete("two", "ann", "lost", `{}`) },
			func(p player) { p.operate(engine.Skip) },
		},
	},
	"a step fails": {
		do:      authorsRetry(`{call: go, with: {function: reserve}}`, `{errors: {with: {type: urn:none}}, do: [{note: {set: '${ $error | {type, status, title, detail} }'}}]}`),
		replies: map[string][]reply{"go/reserve": {{err: &steps.Failure{Type: "urn:none", Status: 409, Title: "Out of stock", Detail: "2 left"}}}},
	},
	"a step fails, and is not done": {
		do: `do:
  - one: {call: f, with: {n: 1}, metadata: {compensate: {call: f, with: {undo: 1}}}}
  - two: {call: go, with: {function: reserve}, metadata: {compensate: {call: f, with: {undo: 2}}}}
`,
		replies: map[string][]reply{"f": {{body: `1`}}, "go/reserve": {{err: activity.Unknown(errPlain)}}},
	},
	"rounds of a loop": {
		do:      `do: [{each: {for: {each: x, in: '${ [1, 2, 3] }'}, do: [{ask: {call: f, with: {n: '${ $x }'}}}]}}]`,
		replies: map[string][]reply{"f": {{body: `1`}, {err: errPlain}, {body: `2`}}},
	},
	"a fan-out": {
		do:      `do: [{ask: {call: forEach, with: {in: '${ [1, 2, 3] }', each: x, call: f, with: {n: '${ $x }'}}}}]`,
		replies: map[string][]reply{"f": {{body: `1`}}}, apart: true,
	},
	"branches": {
		do:      `do: [{both: {fork: {branches: [{a: {call: f, with: {n: 1}}}, {b: {call: f, with: {n: 2}}}]}}}]`,
		replies: map[string][]reply{"f": {{body: `1`}}}, apart: true,
	},
	"a sub-workflow": {
		do:      `do: [{ask: {run: {workflow: {namespace: t, name: child, version: '1.0.0', input: {n: '${ .n }'}}}}}]`,
		replies: map[string][]reply{"run t/child": {{body: `{"sum":2}`}}},
	},
	"a sub-workflow fails": {
		do:      authorsRetry(`{run: {workflow: {namespace: t, name: bad, version: '1.0.0'}}}`, `{do: [{note: {set: '${ $error | {type, status, title, detail} }'}}]}`),
		replies: map[string][]reply{"run t/bad": {{err: &activity.Error{Type: "urn:bad", Status: 400, Title: "Bad", Detail: "it is"}}}},
	},
	"events, a person, and time": {
		do: `do:
  - hear: {listen: {to: {one: {with: {type: go}}}}, output: {as: '${ .[0] }'}}
  - pause: {wait: PT0.01S}
  - tell: {emit: {event: {with: {source: urn:x, type: told, data: '${ . }'}}}}
  - decide:
      call: humanTask
      with:
        candidateGroups: [staff]
        outcomes: ['yes', 'no']
        form: {schema: {document: {type: object, required: [why], properties: {why: {type: string}}}}}
      output: {as: '${ {outcome, data, completedBy} }'}
`,
		acts: []func(player){
			func(p player) { p.event("go", `{"n":4}`) },
			func(p player) { p.complete("decide", "olga", "yes", `{"why":"so"}`) },
		},
	},
	"more than a snapshot holds": {
		do:   "do: [{hear: {listen: {to: {one: {with: {type: go}}}}}}, {grow: {fork: {branches: [" + huge("b1") + ", " + huge("b2") + ", " + huge("b3") + ", " + huge("b4") + ", " + huge("b5") + "]}}}]\n",
		acts: []func(player){func(p player) { p.event("go", `{}`) }},
	},
	"a message that nobody could read": {
		do: `do: [{ask: {run: {workflow: {namespace: t, name: child, version: '1.0.0', input: '${ reduce range(70) as $i (0; [.]) }'}}}}]`,
	},
}

// huge is a branch that keeps 900,000 bytes.
func huge(name string) string {
	return "{" + name + ": {do: [{make: {set: {a: '${ \"x\" * 900000 }'}}}, {wait: {wait: {hours: 1}}}]}}"
}

// undecided sends another request when it is tried again.
const undecided = `do:
  - safe:
      try:
        - note: {set: '${ . }', export: {as: '${ {n: (($context.n // 0) + 1)} }'}}
        - pay: {call: f, with: {n: '${ $context.n }'}}
      catch: {retry: {limit: {attempt: {count: 5}}, delay: PT0.01S}}
`

var lostThenGood = map[string][]reply{"f": {{err: activity.Unknown(errPlain)}, {body: `{"ok":true}`}}}
