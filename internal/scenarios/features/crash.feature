Feature: Crashes
  A node may die at any moment. What it had committed stands, what it had not
  is decided again, and the outside sees at most a repetition under the same
  idempotency key.

  @S01
  Scenario: A crash after each commit of a flow of five steps
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: five, version: '1.0.0'}
      do:
        - one: {call: f, with: {n: '${ .n }'}}
        - two: {call: f, with: {n: '${ .n + 1 }'}}
        - three: {wait: PT0.02S}
        - four: {call: f, with: {n: '${ .n * 2 }'}}
        - five: {call: f, with: {n: '${ .n + 1 }'}}
      """
    And the function "f" answers "$input"
    And the node dies after every commit
    When instance "i" of "t/five" starts with {"n": 1}
    Then "i" is completed with {"n": 5}
    And it ends as when it is not disturbed
    And no message is left

  @S02
  Scenario: A decision that was not committed is made again, byte for byte
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: bytes, version: '1.0.0'}
      do:
        - hear: {listen: {to: {one: {with: {type: go}}}}}
        - ask: {call: humanTask, with: {title: Look}, timeout: {after: PT1H}}
      """
    When instance "i" of "t/bytes" starts with {}
    Then "i" waits at "/do/0/hear"
    When the node dies in place of its next commit
    And signal "s" {"type": "go"} is enqueued for "i"
    Then "i" waits at "/do/1/ask"
    And the first decision and the committed one have the same bytes
    And the stream of "i" has 1 "ExternalSignal"

  @S03
  Scenario: A crash between an effect and its record repeats it under the same key
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: twice, version: '1.0.0'}
      do:
        - charge: {call: charge, with: {amount: 7}}
      """
    And the function "charge" answers {"paid": 7}
    And the function "charge" kills the node when it is first called
    When instance "i" of "t/twice" starts with {}
    Then "i" is completed with {"paid": 7}
    And the function "charge" has been called 2 times under 1 key
    And the stream of "i" has 1 "TaskCompleted"

  @S06
  Scenario: Of two workers with the same signal one commits
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: two, version: '1.0.0'}
      do:
        - hear: {listen: {to: {one: {with: {type: go}}}}}
        - again: {listen: {to: {one: {with: {type: stop}}}}}
      """
    And a second node joins
    When instance "i" of "t/two" starts with {}
    And signal "s" {"type": "go"} is enqueued for "i" 20 times
    Then "i" waits at "/do/1/again"
    And no message is left
    And the stream of "i" has 1 "ExternalSignal"
