Feature: Operators

  @S39
  Scenario: What comes while an instance is suspended is kept
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: nap, version: '1.0.0'}
      do:
        - nap: {wait: PT8S} # the operator is faster
        - hear: {listen: {to: {one: {with: {type: done}}}}}
      """
    When instance "i" of "t/nap" starts with {}
    And the operator suspends "i"
    Then "i" is suspended
    When signal "s" {"type": "done", "data": 5} is enqueued for "i"
    Then the stream of "i" has 1 "TimerDue" that is buffered
    And "i" is suspended
    And the stream of "i" has 1 "ExternalSignal" that is buffered
    When the operator resumes "i"
    Then "i" is completed with [5]

  @S40
  Scenario: A cancelled instance ignores the result of its command under way
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: work, version: '1.0.0'}
      do: [{work: {call: work}}]
      """
    And the function "work" is held
    When instance "i" of "t/work" starts with {}
    And the function "work" is being performed
    And the operator cancels "i"
    And the function "work" is let go
    Then "i" is cancelled
    And no message is left
    And the stream of "i" has 0 "TaskCompleted" that are applied

  @S40
  Scenario: An operator repeats the task that failed, from where it failed
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: mend, version: '1.0.0'}
      do:
        - first: {call: first}
        - work: {call: work, with: {n: '${ .n }'}}
      """
    And the function "first" answers {"n": 3}
    And the function "work" raises 400 "Bad" 1 times, then answers "$input"
    When instance "i" of "t/mend" starts with {}
    Then "i" is faulted with 400 at "/do/1/work"
    When the operator retries "i"
    Then "i" is completed with {"n": 3}
    And the function "first" has been called 1 time under 1 key
    And the function "work" has been called 2 times under 1 key
