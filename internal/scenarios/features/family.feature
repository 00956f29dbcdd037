Feature: Sub-workflows
  A child is an instance of its own. Its end is a signal to its parent.

  Background:
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: child, version: '1.0.0'}
      do:
        - work: {call: work, with: {n: '${ .n }'}}
        - rest: {wait: PT0.02S}
      """
    And the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: parent, version: '1.0.0'}
      do:
        - sub: {run: {workflow: {namespace: t, name: child, version: latest, input: {n: '${ .n }'}}}, output: {as: '${ {got: .n} }'}}
        - tell: {call: tell, with: {got: '${ .got }'}}
      """
    And the function "tell" answers "$input"

  @S05
  Scenario: A parent resumes once, whatever crashes between the child's end and the parent's turn
    Given the function "work" answers "$input"
    And the node dies after every commit
    When instance "p" of "t/parent" starts with {"n": 7}
    Then "p" is completed with {"got": 7}
    And the stream of "p" has 1 "SubWorkflowCompleted" that is applied
    And the function "tell" has run under 1 key
    And no message is left

  @S35
  Scenario: A child's fault is the parent's error
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: careful, version: '1.0.0'}
      do:
        - guarded:
            try: [{sub: {run: {workflow: {namespace: t, name: child, version: '1.0.0'}}}}]
            catch: {errors: {with: {status: 418}}, do: [{note: {set: {said: '${ $error.title }', where: '${ $error.instance }'}}}]}
      """
    And the function "work" raises 418 "Teapot"
    When instance "p" of "t/careful" starts with {"n": 7}
    Then "p" is completed with {"said": "Teapot", "where": "/do/0/guarded/try/0/sub"}
    And the child of "p" is called "c"
    And "c" is faulted with 418 at "/do/0/work"

  @S35
  Scenario: A parent that is cancelled cancels its child
    Given the function "work" answers "$input"
    And the function "work" is held
    When instance "p" of "t/parent" starts with {"n": 7}
    And the child of "p" is called "c"
    Then "c" waits at "/do/0/work"
    When the operator cancels "p"
    Then "c" is cancelled

  @S35
  Scenario: A child that nobody awaits outlives its parent
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: loose, version: '1.0.0'}
      do: [{sub: {run: {workflow: {namespace: t, name: child, version: '1.0.0', input: {n: 1}}, await: false}}}]
      """
    And the function "work" answers "$input"
    And the function "work" is held
    When instance "p" of "t/loose" starts with {"n": 7}
    Then "p" is completed with {"n": 7}
    And the child of "p" is called "c"
    When the function "work" is let go
    Then "c" is completed with {"n": 1}

  @S36
  Scenario: The latest version is taken once, and kept
    Given the function "work" answers "$input"
    And the function "work" is held
    When instance "p" of "t/parent" starts with {"n": 7}
    And the child of "p" is called "c"
    Then "c" waits at "/do/0/work"
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: child, version: '2.0.0'}
      do: [{other: {set: {n: 0}}}]
      """
    When the node dies
    And the function "work" is let go
    Then "p" is completed with {"got": 7}
    And "c" runs version "1.0.0"

  @S23
  Scenario: The timeout of a task is caught inside, that of the workflow is not
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: limits, version: '1.0.0'}
      timeout: {after: PT8S}
      do:
        - first:
            try: [{slow: {wait: PT1H, timeout: {after: PT0.05S}}}]
            catch: {errors: {with: {status: 408}}, do: [{note: {set: {late: true}}}]}
        - second:
            try: [{slow: {wait: PT1H}}]
            catch: {do: [{never: {set: {never: true}}}]}
      """
    When instance "i" of "t/limits" starts with {}
    Then "i" waits at "/do/1/second/try/0/slow"
    And "i" is faulted with 408 at "/do"
    And "i" has 0 waits
