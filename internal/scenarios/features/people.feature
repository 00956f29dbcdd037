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

  @S41
  Scenario: Who has lost the role by which he claimed may not complete
    When "carl" of "finance" claims the task of "i"
    And "carl" of "sales" completes the task of "i" with "approved" and {}
    Then it is refused with "task.denied"
    And the task of "i" is reserved
    And the snapshot of "i" has not changed
    When "carl" delegates the task of "i" to "bob"
    Then it is refused with "task.denied"
    When "carl" of "finance" completes the task of "i" with "approved" and {}
    Then "i" is completed with {"outcome": "approved", "by": "carl"}

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
  Scenario: An answer that does not fit the form is refused to the person
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: form, version: '1.0.0'}
      do:
        - note:
            call: humanTask
            with:
              form: {schema: {type: object, required: [note], properties: {note: {type: string}}}}
            output: {as: .data}
      """
    When instance "f" of "t/form" starts with {}
    Then "f" waits at "/do/0/note"
    And the snapshot of "f" is noted
    When "ann" claims the task of "f"
    And "ann" completes the task of "f" with "" and {"note": 7}
    Then it is refused with "task.invalid-data"
    And the task of "f" is reserved
    And the snapshot of "f" has not changed
    When "ann" completes the task of "f" with "" and {"note": "seven"}
    Then "f" is completed with {"note": "seven"}

  @S44
  Scenario: A due date escalates an open task, and the workflow stays
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: due, version: '1.0.0'}
      do:
        - approve:
            call: humanTask
            with:
              candidateGroups: [finance]
              excludedUsers: [eve]
              due: {after: {seconds: 20}}
              escalateTo: [leads]
            output: {as: .completedBy}
      """
    When instance "d" of "t/due" starts with {}
    Then "d" waits at "/do/0/approve"
    When "dora" of "leads" claims the task of "d"
    Then it is refused with "task.denied"
    When "carl" of "finance" claims the task of "d"
    Then the task of "d" has 1 "escalated" event
    And the stream of "d" has 1 "TaskEscalated"
    And the task of "d" is ready
    And "d" is waiting
    And "d" waits at "/do/0/approve"
    When "eve" of "leads" claims the task of "d"
    Then it is refused with "task.denied"
    When "dora" of "leads" claims the task of "d"
    And "dora" completes the task of "d" with "" and {}
    Then "d" is completed with "dora"
    And the task of "d" has 1 "escalated" event

  @S44
  Scenario: A task of one person that escalates is theirs and the group's, and nobody else's
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: due, version: '1.0.0'}
      do:
        - approve:
            call: humanTask
            with:
              assignee: ann
              due: {after: {seconds: 20}}
              escalateTo: [leads]
            output: {as: .completedBy}
      """
    When instance "d" of "t/due" starts with {}
    Then "d" waits at "/do/0/approve"
    And the task of "d" has 1 "escalated" event
    And the task of "d" is ready
    When "carl" of "finance" claims the task of "d"
    Then it is refused with "task.denied"
    When "dora" of "leads" claims the task of "d"
    And "dora" completes the task of "d" with "" and {}
    Then "d" is completed with "dora"

  @S24
  Scenario: A timeout cancels the inner human task, the child and the timers
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: inner, version: '1.0.0'}
      do:
        - sleep: {wait: {hours: 1}}
      """
    And the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: outer, version: '1.0.0'}
      do:
        - try:
            try:
              - all:
                  fork:
                    branches:
                      - person: {call: humanTask, with: {due: {after: PT1H}}}
                      - child: {run: {workflow: {namespace: t, name: inner, version: '1.0.0'}}}
                      - timer: {wait: {hours: 2}}
                  timeout: {after: {seconds: 20}}
            catch:
              errors: {with: {status: 408}}
              do:
                - late: {set: {late: true}}
      """
    When instance "o" of "t/outer" starts with {}
    Then "o" has 5 waits
    And the task of "o" is ready
    And the child of "o" is waiting
    Then "o" is completed with {"late": true}
    And the task of "o" is expired
    And the child of "o" is cancelled
    And "o" has 0 waits

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
