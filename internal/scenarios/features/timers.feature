Feature: Timers
  A timer is a message that the database holds back. It fires once, never
  before its time by the database's clock, whoever is alive then.

  Background:
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: nap, version: '1.0.0'}
      do:
        - nap: {wait: '${ .for }'}
        - hear: {listen: {to: {one: {with: {type: done}}}}}
      """

  @S17
  Scenario: A timer outlives the node that set it, and fires once
    When instance "i" of "t/nap" starts with {"for": "PT0.3S"}
    Then "i" waits at "/do/0/nap"
    When the node dies
    Then "i" waits at "/do/1/hear"
    And the stream of "i" has 1 "TimerDue"
    And no message is left
    And it took at least 300ms from the start of "i" to its last turn

  @S18
  Scenario: A node whose clock is fast does not fire early
    Given the nodes' clocks are fast by 1h
    When instance "i" of "t/nap" starts with {"for": "PT0.3S"}
    Then "i" waits at "/do/1/hear"
    And the "TimerDue" of "i" came 300ms or more after it started, by this clock

  @S19
  Scenario: A month is a calendar month
    When instance "i" of "t/nap" starts with {"for": "P1M"}
    Then "i" waits at "/do/0/nap"
    And the wait at "/do/0/nap" of "i" is due a calendar month after it began
