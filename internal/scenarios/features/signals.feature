Feature: Signals and tokens
  A wait has a token that is used once. A signal whose wait is gone is recorded
  and changes nothing.

  Background:
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: call, version: '1.0.0'}
      do:
        - work: {call: work}
        - hear: {listen: {to: {one: {with: {type: done}}}}}
      """
    And the function "work"

  @S07
  Scenario: A result that comes twice is applied once
    Given the function "work" is held
    When instance "i" of "t/call" starts with {}
    And the wait at "/do/0/work" of "i" is called "first"
    And the result {"n": 1} arrives for "first"
    Then "i" waits at "/do/1/hear"
    When the result {"n": 2} arrives for "first"
    Then the stream of "i" has 1 "TaskCompleted" that is applied
    And the stream of "i" has 1 "TaskCompleted" that is stale
    And no message is left

  @S09
  Scenario: An unknown token is recorded and ignored
    When instance "i" of "t/call" starts with {}
    Then "i" waits at "/do/1/hear"
    When the result {"n": 1} arrives for "no-such-wait"
    Then the stream of "i" has 1 "TaskCompleted" that is stale
    And "i" waits at "/do/1/hear"
    And no message is left

  @S10
  Scenario: A signal to an instance that has been cancelled
    When instance "i" of "t/call" starts with {}
    And the operator cancels "i"
    And signal "s" {"type": "done"} is enqueued for "i"
    Then the stream of "i" has 1 "ExternalSignal" that is closed
    And "i" is cancelled
    When signal "t" {"type": "done"} is sent to "i"
    Then it is refused with "instance.closed"

  @S10
  Scenario: A signal to an instance that has completed
    When instance "i" of "t/call" starts with {}
    And signal "s" {"type": "done", "data": 1} is enqueued for "i"
    Then "i" is completed with [1]
    When signal "t" {"type": "done"} is enqueued for "i"
    Then the stream of "i" has 1 "ExternalSignal" that is closed
    And "i" is completed with [1]

  @S10
  Scenario: A signal to a faulted instance is kept for when it is mended
    Given the function "work" raises 400 "Bad" 1 times, then answers {}
    When instance "i" of "t/call" starts with {}
    Then "i" is faulted with 400 at "/do/0/work"
    When signal "s" {"type": "done", "data": 1} is enqueued for "i"
    Then the stream of "i" has 1 "ExternalSignal" that is buffered
    When the operator retries "i"
    Then "i" is completed with [1]

  @S11
  Scenario Outline: A result and a timeout race, and one wins
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: race, version: '1.0.0'}
      do:
        - guarded:
            try:
              - work: {call: work, timeout: {after: <timeout>}}
            catch: {do: [{late: {set: {late: true}}}]}
        - hear: {listen: {to: {one: {with: {type: done}}}}, output: {as: '${ $input }'}}
      """
    And the function "work" is held
    When instance "i" of "t/race" starts with {}
    And the wait at "/do/0/guarded/try/0/work" of "i" is called "result"
    And the timeout at "/do/0/guarded/try/0/work" of "i" is called "timeout"
    And <first>
    Then "i" waits at "/do/1/hear"
    When <second>
    Then the stream of "i" has 1 "<loser>" that is stale
    When signal "s" {"type": "done"} is enqueued for "i"
    Then "i" is completed with <output>
    And no message is left but later

    Examples:
      | timeout | first                                    | second                                   | output         | loser         |
      | PT1H    | the result {"n": 1} arrives for "result" | the timer of "timeout" fires             | {"n": 1}       | TimerDue      |
      | PT8S    | "i" waits at "/do/1/hear"                | the result {"n": 1} arrives for "result" | {"late": true} | TaskCompleted |

  @S16
  Scenario: A signal over the limit is refused and changes nothing
    When instance "i" of "t/call" starts with {}
    Then "i" waits at "/do/1/hear"
    And the snapshot of "i" is noted
    When a signal of 5000000 bytes is sent to "i"
    Then it is refused with "signal.too-large"
    And the snapshot of "i" has not changed
