Feature: Lifecycles
  A definition written as a state machine: an application triggers events, a
  transition takes one or it is refused, and a state may have a timeout.

  Background:
    Given the definition:
      """yaml
      lifecycle: '1.0'
      environment: t
      definition: loan
      version: '1.0.0'
      states:
        Draft: {category: initial}
        Review:
          timeout: PT0.3S
          timeoutEvent: expire
          onEnter: [{tell: {call: tell, with: {who: '${ .name }'}}}]
        Approved: {category: final, onEnter: [{pay: {call: pay, with: {amount: '${ .amount }'}}}]}
        Expired: {category: final}
      events:
        submit: {code: 1000, schema: {document: {type: object, required: [amount]}}}
        approve: {}
        expire: {}
      transitions:
        - {from: Draft, event: submit, to: Review, when: $event.data.amount > 0, set: '${ . + {amount: $event.data.amount} }'}
        - {from: Review, event: approve, to: Approved}
        - {from: Review, event: expire, to: Expired, when: .patient | not}
      """
    And the function "tell"
    And the function "pay"

  @S49
  Scenario: A guard that does not hold refuses the event
    When instance "i" of "t/loan" starts with {"name": "ann", "patient": true}
    Then "i" waits at "/states/Draft"
    And the snapshot of "i" is noted
    When signal "s1" {"type": "submit", "data": {"amount": 0}} is sent to "i"
    Then it is refused with "lifecycle.refused"
    When signal "s2" {"type": "approve"} is sent to "i"
    Then it is refused with "lifecycle.refused"
    When signal "s3" {"type": "submit"} is sent to "i"
    Then it is refused with "lifecycle.invalid-payload"
    When signal "s4" {"type": "aprove"} is sent to "i"
    Then it is refused with "lifecycle.unknown-event"
    And the snapshot of "i" has not changed
    When signal "s1" {"type": "1000", "data": {"amount": 7}} is sent to "i"
    Then it is not refused
    And "i" waits at "/states/Review"
    When signal "s5" {"type": "approve"} is sent to "i"
    Then "i" is completed with {"name": "ann", "patient": true, "amount": 7}
    And the function "tell" has been called 1 time under 1 key
    And the function "pay" has been called 1 time under 1 key

  @S49
  Scenario: A refused event of the queue is a dead letter, and changes nothing
    When instance "i" of "t/loan" starts with {"name": "ann"}
    Then "i" waits at "/states/Draft"
    When signal "s1" {"type": "approve"} is enqueued for "i"
    Then the dead letters of "i" say "lifecycle.refused"
    And "i" waits at "/states/Draft"

  @S49
  Scenario: The timeout of a state triggers its event
    When instance "i" of "t/loan" starts with {"name": "ann"}
    And signal "s1" {"type": "submit", "data": {"amount": 7}} is sent to "i"
    Then "i" is completed with {"name": "ann", "amount": 7}
    And the stream of "i" has 1 "StateStale"
    And the stream of "i" has 2 "StateChanged"
    And the function "pay" has been called 0 times under 0 keys

  @S49
  Scenario: A timeout whose event is refused is a notice
    When instance "i" of "t/loan" starts with {"name": "ann", "patient": true}
    And signal "s1" {"type": "submit", "data": {"amount": 7}} is sent to "i"
    Then the stream of "i" has 1 "StateStale"
    And "i" waits at "/states/Review"
    When signal "s2" {"type": "approve"} is sent to "i"
    Then "i" is completed with {"name": "ann", "patient": true, "amount": 7}

  @S49
  Scenario: Between two states no event is taken
    Given the function "tell" is held
    When instance "i" of "t/loan" starts with {"name": "ann", "patient": true}
    And signal "s1" {"type": "submit", "data": {"amount": 7}} is sent to "i"
    Then the function "tell" is being performed
    When signal "s2" {"type": "approve"} is sent to "i"
    Then it is refused with "lifecycle.in-transition"
    When the function "tell" is let go
    Then "i" waits at "/states/Review"
    When signal "s2" {"type": "approve"} is sent to "i"
    Then "i" is completed with {"name": "ann", "patient": true, "amount": 7}

  @S49
  Scenario: A repeated event is taken once
    When instance "i" of "t/loan" starts with {"name": "ann", "patient": true}
    And signal "s1" {"type": "submit", "data": {"amount": 7}} is sent to "i"
    Then "i" waits at "/states/Review"
    When signal "s1" {"type": "submit", "data": {"amount": 7}} is sent to "i"
    Then the answer is "duplicate"
    And the stream of "i" has 1 "StateChanged"

  @S49
  Scenario: A crash after every commit changes nothing
    Given the node dies after every commit
    When instance "i" of "t/loan" starts with {"name": "ann", "patient": true}
    And signal "s1" {"type": "submit", "data": {"amount": 7}} is sent to "i"
    Then "i" waits at "/states/Review"
    When signal "s2" {"type": "approve"} is sent to "i"
    Then "i" is completed with {"name": "ann", "patient": true, "amount": 7}
    And the stream of "i" has 2 "StateChanged"
    And the function "pay" has run under 1 key
