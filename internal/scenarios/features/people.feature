Feature: People

  Background:
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: approve, version: '1.0.0'}
      do:
        - approve:
            call: humanTask
            with:
              title: Approve
              candidateUsers: [ann, bob]
              candidateGroups: [finance]
              excludedUsers: ['${ .requester }']
              outcomes: [approved, rejected]
            output: {as: '${ {outcome: .outcome, by: .completedBy} }'}
      """
    When instance "i" of "t/approve" starts with {"requester": "bob"}
    Then "i" waits at "/do/0/approve"
    And the snapshot of "i" is noted

  @S41
  Scenario: A task that is not claimed cannot be completed
    When "ann" completes the task of "i" with "approved" and {}
    Then it is refused with "task.not-claimed"
    And the snapshot of "i" has not changed

  @S41
  Scenario: The wrong person and the excluded one are refused
    When "eve" of "sales" claims the task of "i"
    Then it is refused with "task.denied"
    When "bob" claims the task of "i"
    Then it is refused with "task.denied"
    When "bob" of "finance" claims the task of "i"
    Then it is refused with "task.denied"
    And the task of "i" is ready
    And the snapshot of "i" has not changed

  @S42
  Scenario: Of two who claim one gets it
    When "ann" and "carl" of "finance" claim the task of "i" at once
    Then one of them has it
    And the task of "i" is reserved

  @S43
  Scenario: An outcome that the task does not have is refused to the person
    When "ann" claims the task of "i"
    And "ann" completes the task of "i" with "maybe" and {}
    Then it is refused with "task.invalid-outcome"
    And the task of "i" is reserved
    And the snapshot of "i" has not changed
    When "ann" completes the task of "i" with "approved" and {}
    Then "i" is completed with {"outcome": "approved", "by": "ann"}

  @S43
  Scenario: An answer through the queue is held to the same rules
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: form, version: '1.0.0'}
      do:
        - ask:
            call: humanTask
            with:
              title: Ask
              candidateUsers: [ann]
              outcomes: [approved, rejected]
              form: {schema: {type: object, properties: {sum: {type: number}}, required: [sum]}}
            output: {as: '${ {by: .completedBy, sum: .data.sum} }'}
      """
    When instance "j" of "t/form" starts with {}
    Then "j" waits at "/do/0/ask"
    And the snapshot of "j" is noted
    When "ann" answers the task of "j" through the queue with "approved" and {"sum": 1}
    Then the dead letters of "j" say "task.not-claimed"
    When "ann" claims the task of "j"
    And "eve" answers the task of "j" through the queue with "approved" and {"sum": 1}
    And "ann" answers the task of "j" through the queue with "maybe" and {"sum": 1}
    And "ann" answers the task of "j" through the queue with "approved" and {"sum": "much"}
    And an error answers the task of "j" through the queue
    Then the dead letters of "j" say "task.invalid-data task.invalid-data task.invalid-outcome task.not-claimed task.not-yours"
    And the task of "j" is reserved
    And the snapshot of "j" has not changed
    When "ann" answers the task of "j" through the queue with "approved" and {"sum": 7}
    Then "j" is completed with {"by": "ann", "sum": 7}
