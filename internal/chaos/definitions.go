package main

import (
	"fmt"
	"strings"
)

// Kinds of work, each a definition of its own.
const (
	small     = "small"  // a call, a signal, a timer, a call
	order     = "order"  // signals in the order of their sender, beside large data
	retry     = "retry"  // a call that its author repeats with catch.retry
	mended    = "mended" // a call that an operator repeats
	human     = "human"  // a person
	listening = "heard"  // an event begins it
	family    = "family" // a child
	fork      = "fork"   // many branches
	each      = "each"   // many items
)

// Sizes of what is wide.
const (
	orderSignals = 12
	forkBranches = 60
	eachItems    = 150
	failures     = 2 // performances of a call that are answered with an error
)

// source is the document of a kind. Every version does the same. a and b are
// the hosts outside: b is for what may be held up.
func source(kind string, version int, a, b string) string {
	call := func(name, host, effect, more string) string {
		return fmt.Sprintf(`  - %s:
      call: http
      with: {method: post, endpoint: '%s', body: {effect: '%s', of: '${ .of }'%s}}
      output: {as: '${ $input }'}
`, name, host, effect, more)
	}
	var s strings.Builder
	fmt.Fprintf(&s, "document: {dsl: '1.0.3', namespace: chaos, name: %s, version: '1.0.%d'}\n", kind, version)
	if kind == listening {
		s.WriteString("schedule: {on: {one: {with: {type: chaos.heard}}}}\ninput: {from: '${ {of: .[0].data.of} }'}\n")
	}
	s.WriteString("do:\n")
	switch kind {
	case small:
		s.WriteString(call("first", a, "first", ""))
		s.WriteString("  - go: {listen: {to: {one: {with: {type: go}}}}, output: {as: '${ $input }'}}\n")
		s.WriteString("  - pause: {wait: PT0.05S}\n")
		s.WriteString(call("last", a, "end", ""))
	case order:
		fmt.Fprintf(&s, `  - load: {set: {of: '${ .of }', kept: '${ [range(400) | {sku: "a \"\(.)\"", n: .}] }'}}
  - each:
      for: {each: n, in: '${ [range(%d) | {n: ., text: ("grün [{" * 300)}] }'}
      do:
        - next:
            listen: {to: {one: {with: {type: step}}}}
            output: {as: '${ $input + {seen: (($input.seen // []) + [.[0]])} }'}
`, orderSignals)
		s.WriteString(call("last", a, "end", ""))
	case retry:
		fmt.Fprintf(&s, `  - attempt:
      try:
        - charge:
            call: http
            with: {method: post, endpoint: '%s', body: {effect: charge, of: '${ .of }', fails: %d}}
            output: {as: '${ $input }'}
      catch:
        retry: {delay: PT0.2S, limit: {attempt: {count: 100}}}
`, b, failures)
		s.WriteString(call("last", a, "end", ""))
	case mended:
		s.WriteString(call("charge", b, "charge", fmt.Sprintf(", fails: %d", failures)))
		s.WriteString(call("last", a, "end", ""))
	case human:
		s.WriteString("  - ask: {call: humanTask, with: {title: Look, candidateGroups: [chaos], outcomes: ['yes', 'no']}, output: {as: '${ $input }'}}\n")
		s.WriteString(call("last", a, "end", ""))
	case family:
		s.WriteString("  - child: {run: {workflow: {namespace: chaos, name: leaf, version: '1.0.0', input: {of: '${ .of }'}}}, output: {as: '${ $input }'}}\n")
		s.WriteString(call("last", a, "end", ""))
	case "leaf":
		s.WriteString(call("work", b, "child", ""))
	case listening:
		s.WriteString(call("last", a, "end", ""))
	default:
		s.WriteString(wide(kind, b))
		s.WriteString(call("last", a, "end", ""))
	}
	return s.String()
}

// wide is a task with many calls.
func wide(kind, host string) string {
	if kind == each {
		return fmt.Sprintf(`  - many:
      call: forEach
      with:
        in: '${ .of as $of | [range(%d) | {of: $of, effect: "item-\(.)"}] }'
        call: http
        with: {method: post, endpoint: '%s', body: {effect: '${ $item.effect }', of: '${ $item.of }'}}
      output: {as: '${ $input }'}
`, eachItems, host)
	}
	var s strings.Builder
	s.WriteString("  - wide:\n      fork:\n        branches:\n")
	for i := range forkBranches {
		fmt.Fprintf(&s, "          - b%d: {call: http, with: {method: post, endpoint: '%s', body: {effect: 'arm-%d', of: '${ .of }'}}}\n", i, host, i)
	}
	s.WriteString("      output: {as: '${ $input }'}\n")
	return s.String()
}

// wants are the effects of a kind.
func wants(kind string) []string {
	list := []string{"end"}
	switch kind {
	case small:
		list = append(list, "first")
	case retry, mended:
		list = append(list, "charge")
	case family:
		list = append(list, "child")
	case fork:
		for i := range forkBranches {
			list = append(list, fmt.Sprintf("arm-%d", i))
		}
	case each:
		for i := range eachItems {
			list = append(list, fmt.Sprintf("item-%d", i))
		}
	}
	return list
}

// kinds are all definitions, those that others run first.
var kinds = []string{"leaf", small, order, retry, mended, human, family, listening, fork, each}
