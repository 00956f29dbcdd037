Feature: Commands that are withdrawn
  A command under way is aborted when nobody waits for its result any more.

  Background:
    Given the function "work" is held

  @S40
  Scenario: An operator cancels while a function runs
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: call, version: '1.0.0'}
      do:
        - work: {call: work, with: {}}
      """
    When instance "i" of "t/call" starts with {}
    Then the function "work" is being performed
    When the operator cancels "i"
    Then the call of "work" is aborted
    And "i" is cancelled

  @S40
  Scenario: Another node cancels
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: call, version: '1.0.0'}
      do:
        - work: {call: work, with: {}}
      """
    When instance "i" of "t/call" starts with {}
    Then the function "work" is being performed
    When a second node joins
    And the second node cancels "i"
    Then the call of "work" is aborted
    And "i" is cancelled

  @S24
  Scenario: A timeout ends the call
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: call, version: '1.0.0'}
      do:
        - work: {call: work, with: {}, timeout: {after: PT15S}}
      """
    When instance "i" of "t/call" starts with {}
    Then the call of "work" is aborted
    And "i" is faulted with 408 at "/do/0/work"

  @S29
  Scenario: The loser of a fork is aborted
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: call, version: '1.0.0'}
      do:
        - race:
            fork:
              compete: true
              branches:
                - work: {call: work, with: {}}
                - quick: {wait: PT15S}
      """
    When instance "i" of "t/call" starts with {}
    Then the call of "work" is aborted
    And "i" is completed with {}
