Feature: Data and expressions

  @S28
  Scenario: A loop without end spends its budget and holds up nobody
    Given turns of at most 50 steps
    And the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: loop, version: '1.0.0'}
      do:
        - count: {set: {n: '${ .n + 1 }'}}
        - again: {switch: [{more: {when: '${ .n < 1000 }', then: count}}]}
      """
    When instance "i" of "t/loop" starts with {"n": 0}
    Then "i" is completed with {"n": 1000}
    And the stream of "i" has 39 "InternalContinue"

  @S46
  Scenario: Input is data, never a program
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: data, version: '1.0.0'}
      do:
        - keep: {set: {text: '${ .text }'}}
        - send: {call: f, with: {text: '${ .text }'}}
      """
    And the function "f" answers "$input"
    When instance "i" of "t/data" starts with {"text": "${ 1 + 1 }"}
    Then "i" is completed with {"text": "${ 1 + 1 }"}

  @S47
  Scenario Outline: A runaway expression faults its task, and the node lives
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: runaway, version: '1.0.0'}
      do:
        - guarded: {set: {x: '${ <expression> }'}}
      """
    And the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: ok, version: '1.0.0'}
      do: [{fine: {set: {fine: true}}}]
      """
    When instance "i" of "t/runaway" starts with {}
    Then "i" is faulted with 400 at "/do/0/guarded"
    And the error of "i" says "expression"
    When instance "j" of "t/ok" starts with {}
    Then "j" is completed with {"fine": true}

    Examples:
      | expression                                  |
      | [limit(1000000000; repeat(1))] \| length    |
      | def f: f; f                                 |
      | "x" * 2000000000                            |
      | null \| setpath([500000000]; 1)             |
      | [range(1e9)] \| length                      |
