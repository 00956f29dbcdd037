Feature: Branches, retries and events
  What goes on at once, and again, is in the one snapshot of the instance: any
  node goes on with it, from where it stands.

  @S04
  Scenario: A crash inside a fork with two of three branches done
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: three, version: '1.0.0'}
      do:
        - all:
            fork:
              branches:
                - one: {call: one, with: {}}
                - two: {set: {n: 2}}
                - three: {listen: {to: {one: {with: {type: go}}}}}
      """
    And the function "one" answers {"n": 1}
    When instance "i" of "t/three" starts with {}
    Then "i" has 1 waits
    When the node dies
    And the event {"specversion": "1.0", "id": "1", "source": "x", "type": "go", "data": 3} is published
    Then "i" is completed with [{"n": 1}, {"n": 2}, [3]]
    And the function "one" has been called 1 time under 1 key

  @S08 @S20 @S22
  Scenario: A retry has the input of the try and a new token
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: again, version: '1.0.0'}
      do:
        - safe:
            try:
              - spoil: {set: {n: '${ .n + 1 }'}}
              - pay: {call: pay, with: {n: '${ .n }'}}
            catch:
              errors: {with: {status: 402}}
              retry: {delay: PT0.05S, backoff: {exponential: {}}, limit: {attempt: {count: 3}}}
      """
    And the function "pay" raises 402 "Broke" 2 times, then answers "$input"
    When instance "i" of "t/again" starts with {"n": 1}
    Then "i" is completed with {"n": 2}
    And the function "pay" has been called 3 times under 1 key
    And the stream of "i" has 2 "RetryDue"
    And it took at least 150ms from the start of "i" to its last turn

  @S21
  Scenario: A retry that is exhausted runs the catch, and without one faults
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: enough, version: '1.0.0'}
      do:
        - caught:
            try:
              - pay: {call: pay, with: {}}
            catch:
              retry: {limit: {attempt: {count: 1}}}
              do: [{note: {set: {unpaid: '${ $error.status }'}}}]
        - raised:
            try:
              - pay: {call: pay, with: {}}
            catch: {retry: {limit: {attempt: {count: 1}}}}
      """
    And the function "pay" raises 402 "Broke"
    When instance "i" of "t/enough" starts with {}
    Then "i" is faulted with 402 at "/do/1/raised/try/0/pay"
    And the function "pay" has been called 4 times under 2 keys

  @S24 @S29
  Scenario: The branch that ends first withdraws the others
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: race, version: '1.0.0'}
      do:
        - race:
            fork:
              compete: true
              branches:
                - person: {call: humanTask, with: {title: Decide}, timeout: {after: P1D}}
                - signal: {listen: {to: {one: {with: {type: go}}}}}
                - nap: {wait: P1D}
      """
    When instance "i" of "t/race" starts with {}
    Then "i" has 4 waits
    When signal "s" {"type": "go", "data": 7} is enqueued for "i"
    Then "i" is completed with [7]
    And the task of "i" is cancelled

  @S27 @S30 @S31
  Scenario: An error in a branch, caught around the fork, in a loop, with a crash after every commit
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: nested, version: '1.0.0'}
      do:
        - each:
            for: {each: x, in: '[1, 2]'}
            do:
              - safe:
                  try:
                    - both:
                        fork:
                          branches:
                            - pay: {call: pay, with: {x: '${ $x }'}}
                            - nap: {wait: P1D}
                  catch:
                    do: [{note: {set: '${ {failed: ((.failed // []) + [$x])} }'}}]
      """
    And the function "pay" raises 402 "Broke"
    And the node dies after every commit
    When instance "i" of "t/nested" starts with {}
    Then "i" is completed with {"failed": [1, 2]}

  @S26 @S32
  Scenario: A loop over ten thousand items, with a crash after every commit
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: long, version: '1.0.0'}
      do:
        - list: {set: {items: '${ [range(10000)] }'}}
        - each:
            for: {each: x, in: .items, at: i}
            do:
              - add: {set: '${ {items: [], sum: ((.sum // 0) + $x), at: $i} }'}
      """
    And the node dies after every commit
    When instance "i" of "t/long" starts with {}
    Then "i" is completed with {"items": [], "sum": 49995000, "at": 9999}

  @S12 @S13 @S34
  Scenario: All events in any order, each once, and of one order
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: all, version: '1.0.0'}
      do:
        - both:
            listen:
              to:
                all:
                  - {with: {type: ordered}, correlate: {order: {from: .data.order}}}
                  - {with: {type: paid}, correlate: {order: {from: .data.order}}}
            output: {as: '${ map(.n) }'}
      """
    When instance "i" of "t/all" starts with {}
    Then "i" has 2 waits
    When the event {"specversion": "1.0", "id": "1", "source": "x", "type": "paid", "data": {"order": 7, "n": 1}} is published
    Then "i" has 1 waits
    When the node dies
    And the event {"specversion": "1.0", "id": "1", "source": "x", "type": "paid", "data": {"order": 7, "n": 1}} is published
    And the event {"specversion": "1.0", "id": "2", "source": "x", "type": "ordered", "data": {"order": 8, "n": 2}} is published
    And the event {"specversion": "1.0", "id": "3", "source": "x", "type": "ordered", "data": {"order": 7, "n": 3}} is published
    Then "i" is completed with [1, 3]

  @S15
  Scenario: Two branches that listen for one event both get it
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: two, version: '1.0.0'}
      do:
        - both:
            fork:
              branches:
                - a: {listen: {to: {one: {with: {type: go}}}}}
                - b: {listen: {to: {any: [{with: {type: go}}, {with: {type: stop}}]}}}
      """
    When instance "i" of "t/two" starts with {}
    Then "i" has 3 waits
    When the event {"specversion": "1.0", "id": "1", "source": "x", "type": "go", "data": 1} is published
    Then "i" is completed with [[1], [1]]

  @S33
  Scenario: Events are processed in the order in which they came, also after a crash
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: fifo, version: '1.0.0'}
      do:
        - each:
            listen:
              to: {any: [{with: {type: reading}}], until: {one: {with: {type: done}}}}
            foreach:
              item: reading
              do:
                - save: {call: save, with: {reading: '${ $reading }'}}
              output: {as: .reading}
      """
    And the function "save" answers "$input"
    And the function "save" is held
    When instance "i" of "t/fifo" starts with {}
    And signal "a" {"type": "reading", "data": "a"} is enqueued for "i"
    Then the function "save" is being performed
    When signal "b" {"type": "reading", "data": "b"} is sent to "i"
    And signal "c" {"type": "reading", "data": "c"} is sent to "i"
    And signal "d" {"type": "done"} is sent to "i"
    And the node dies
    And the function "save" is let go
    Then "i" is completed with ["a", "b", "c"]
