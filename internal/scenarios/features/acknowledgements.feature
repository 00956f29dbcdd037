Feature: Acknowledgements
  A consumer that has got a command has not done it yet. It says so later, and
  until then the command is delivered again: the same, under the same key (D5).

  Background:
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: order, version: '1.0.0'}
      do:
        - ship:
            call: acknowledged
            with: {call: ship, with: {order: '${ .order }'}, within: '${ .within }'}
      """
    And the function "ship" answers "taken"

  @S49
  Scenario: What is delivered and not processed is performed again, the same
    When instance "i" of "t/order" starts with {"order": 7, "within": "PT0.05S"}
    Then command 2 of "i" is delivered 3 times
    And "i" is waiting
    And command 2 of "i" has the notice "AckReminderProcessedPending"
    And the function "ship" has been called under one key with {"order": 7} only
    When command 2 of "i" is acknowledged as processed with {"parcel": 1}
    Then the answer is "applied"
    And "i" is completed with {"parcel": 1}
    And the stream of "i" has 1 "TaskCompleted"

  @S49
  Scenario: What is processed is not delivered again
    When instance "i" of "t/order" starts with {"order": 7, "within": "PT5S"}
    Then command 2 of "i" is delivered 1 time
    When command 2 of "i" is acknowledged as processed with {"parcel": 1}
    And 5300ms passes
    Then the function "ship" has been called 1 time under 1 key
    And no message is left

  @S49
  Scenario: A consumer acknowledges before it has answered
    Given the function "ship" acknowledges as processed with {"parcel": 1} before it answers
    When instance "i" of "t/order" starts with {"order": 7, "within": "PT0.1S"}
    Then "i" is completed with {"parcel": 1}
    When 200ms passes
    Then the function "ship" has been called 1 time under 1 key
    And the stream of "i" has 1 "TaskCompleted"
    And no message is left

  @S49
  Scenario: A second acknowledgement changes nothing, whatever it says
    When instance "i" of "t/order" starts with {"order": 7, "within": "PT1H"}
    Then command 2 of "i" is delivered 1 time
    When command 2 of "i" is acknowledged as processed with {"parcel": 1}
    And command 2 of "i" is acknowledged as processed with {"parcel": 1}
    Then the answer is "duplicate"
    When command 2 of "i" is acknowledged as failed with "Sold out"
    Then the answer is "duplicate"
    And "i" is completed with {"parcel": 1}
    And the stream of "i" has 1 "TaskCompleted"

  @S49
  Scenario: What failed at the consumer is an error that can be caught
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: caught, version: '1.0.0'}
      do:
        - try:
            try:
              - ship: {call: acknowledged, with: {call: ship, with: {order: 7}, within: PT1H}}
            catch:
              as: error
              do:
                - note: {set: {title: '${ $error.title }', status: '${ $error.status }'}}
      """
    When instance "i" of "t/caught" starts with {}
    Then command 2 of "i" is delivered 1 time
    When command 2 of "i" is acknowledged as failed with "Sold out"
    Then "i" is completed with {"title": "Sold out", "status": 500}

  @S49
  Scenario: A consumer asks for it once more
    When instance "i" of "t/order" starts with {"order": 7, "within": "PT1H"}
    Then command 2 of "i" is delivered 1 time
    When command 2 of "i" is acknowledged as retry
    Then command 2 of "i" is delivered 2 times
    And the function "ship" has been called 2 times under 1 key
    And command 2 of "i" has the notice "AckRetryPending"
    When command 2 of "i" is acknowledged as processed with {}
    Then "i" is completed with {}

  @S49
  Scenario: What nobody waits for is acknowledged as well
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: told, version: '1.0.0'}
      do:
        - tell: {call: acknowledged, with: {call: ship, with: {order: 7}, within: PT0.05S, await: false}}
      """
    When instance "i" of "t/told" starts with {"order": 7}
    Then "i" is completed with {"order": 7}
    And command 2 of "i" is delivered 2 times
    When command 2 of "i" is acknowledged as processed with {}
    Then the answer is "applied"
    When command 2 of "i" is acknowledged as failed with "too late"
    Then the answer is "duplicate"
    And no message is left

  @S49
  Scenario: A command that asks for no acknowledgement takes none
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: plain, version: '1.0.0'}
      do:
        - ship: {call: ship, with: {}}
      """
    When instance "i" of "t/plain" starts with {}
    Then "i" is completed with "taken"
    When command 2 of "i" is acknowledged as processed with {}
    Then it is refused with "ack.unexpected"
    When command 7 of "i" is acknowledged as processed with {}
    Then it is refused with "command.unknown"

  @S49
  Scenario: A crash after each commit, of a turn, a delivery, and an acknowledgement
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: both, version: '1.0.0'}
      do:
        - ship: {call: acknowledged, with: {call: ship, with: {order: 1}, within: PT0.1S}}
        - tell: {call: acknowledged, with: {call: ship, with: {order: 2}, within: PT0.1S, await: false}}
        - again: {call: acknowledged, with: {call: ship, with: {order: 3}, within: PT0.1S}}
      """
    And the node dies after every commit that gives something back
    When instance "i" of "t/both" starts with {}
    Then command 2 of "i" is delivered 1 time
    When command 2 of "i" is acknowledged as processed with {"n": 1}
    Then "i" waits at "/do/2/again"
    And command "again" of "i" is delivered 1 time
    When command "again" of "i" is acknowledged as processed with {"n": 3}
    Then "i" is completed with {"n": 3}
    And command "tell" of "i" is delivered 1 time
    When command "tell" of "i" is acknowledged as processed with {}
    Then the stream of "i" has 2 "TaskCompleted"
    And the function "ship" has been called under 3 keys
    And no command is open
    And at least 4 nodes have died

  @S49
  Scenario: A node that dies while it delivers
    Given the function "ship" kills the node when it is first called
    When instance "i" of "t/order" starts with {"order": 7, "within": "PT1H"}
    Then command 2 of "i" is delivered 1 time
    And the function "ship" has been called 2 times under 1 key
    When command 2 of "i" is acknowledged as processed with {"parcel": 1}
    Then "i" is completed with {"parcel": 1}
