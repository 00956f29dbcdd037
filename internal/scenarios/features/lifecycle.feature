Feature: Lifecycle events
  The sink gets an event for each change in the life of a workflow and of its
  tasks: in order, each at least once, and once after repetitions are dropped by
  source and id. Types are shown without "io.serverlessworkflow." and ".v1".

  Background:
    Given a sink gets the lifecycle events

  @S48
  Scenario: A call, a wait and a retry
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: work, version: '1.0.0'}
      do:
        - first: {call: f, with: {n: 1}}
        - skipped: {if: '${ false }', set: {a: 1}}
        - rest: {wait: PT0.02S}
        - careful:
            try:
              - risky: {call: g, with: {}}
            catch:
              errors: {with: {status: 503}}
              retry: {delay: PT0.02S, limit: {attempt: {count: 3}}}
      """
    And the function "g" raises 503 "Busy" 1 times, then answers {"done": true}
    When instance "i" of "t/work" starts with {}
    Then "i" is completed with {"done": true}
    And the sink has got, of "i":
      """
      workflow.started
      task.created /do/0/first
      task.started /do/0/first
      task.completed /do/0/first
      task.created /do/2/rest
      task.started /do/2/rest
      task.completed /do/2/rest
      task.created /do/3/careful
      task.started /do/3/careful
      task.created /do/3/careful/try/0/risky
      task.started /do/3/careful/try/0/risky
      task.faulted /do/3/careful/try/0/risky 503
      task.retried /do/3/careful
      task.created /do/3/careful/try/0/risky
      task.started /do/3/careful/try/0/risky
      task.completed /do/3/careful/try/0/risky
      task.completed /do/3/careful
      workflow.completed
      """
    And no message is left

  @S48
  Scenario: The same with a crash after every commit
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: work, version: '1.0.0'}
      do:
        - first: {call: f, with: {n: 1}}
        - rest: {wait: PT0.02S}
        - careful:
            try:
              - risky: {raise: {error: {type: urn:busy, status: 503}}}
            catch:
              retry: {delay: PT0.02S, limit: {attempt: {count: 1}}}
              do:
                - mend: {set: {done: true}}
        - approve: {call: g, with: {}}
      """
    And the function "g" answers {"done": true}
    And the node dies after every commit
    When instance "i" of "t/work" starts with {}
    Then "i" is completed with {"done": true}
    And the sink has got, of "i":
      """
      workflow.started
      task.created /do/0/first
      task.started /do/0/first
      task.completed /do/0/first
      task.created /do/1/rest
      task.started /do/1/rest
      task.completed /do/1/rest
      task.created /do/2/careful
      task.started /do/2/careful
      task.created /do/2/careful/try/0/risky
      task.started /do/2/careful/try/0/risky
      task.faulted /do/2/careful/try/0/risky 503
      task.retried /do/2/careful
      task.created /do/2/careful/try/0/risky
      task.started /do/2/careful/try/0/risky
      task.faulted /do/2/careful/try/0/risky 503
      task.created /do/2/careful/catch/do/0/mend
      task.started /do/2/careful/catch/do/0/mend
      task.completed /do/2/careful/catch/do/0/mend
      task.completed /do/2/careful
      task.created /do/3/approve
      task.started /do/3/approve
      task.completed /do/3/approve
      workflow.completed
      """
    And no message is left

  @S48
  Scenario: A fault, and an operator who has it retried
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: fault, version: '1.0.0'}
      do:
        - around:
            do:
              - charge: {call: f, with: {}}
      """
    And the function "f" raises 422 "Refused" 1 times, then answers {"paid": 1}
    When instance "i" of "t/fault" starts with {}
    Then "i" is faulted with 422 at "/do/0/around/do/0/charge"
    When the operator retries "i"
    Then "i" is completed with {"paid": 1}
    And the sink has got, of "i":
      """
      workflow.started
      task.created /do/0/around
      task.started /do/0/around
      task.created /do/0/around/do/0/charge
      task.started /do/0/around/do/0/charge
      task.faulted /do/0/around/do/0/charge 422
      task.faulted /do/0/around 422
      workflow.faulted 422
      workflow.resumed
      task.retried /do/0/around
      task.retried /do/0/around/do/0/charge
      task.completed /do/0/around/do/0/charge
      task.completed /do/0/around
      workflow.completed
      """

  @S48
  Scenario: A person answers, after the instance was suspended
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: person, version: '1.0.0'}
      do:
        - around:
            do:
              - approve: {call: humanTask, with: {title: Approve, candidateUsers: [ann]}, output: {as: .outcome}}
            timeout: {after: PT1H}
      """
    When instance "i" of "t/person" starts with {}
    Then "i" waits at "/do/0/around/do/0/approve"
    When the operator suspends "i"
    And the operator resumes "i"
    And "ann" claims the task of "i"
    And "ann" completes the task of "i" with "yes" and {}
    Then "i" is completed with "yes"
    And the sink has got, of "i":
      """
      workflow.started
      task.created /do/0/around
      task.started /do/0/around
      task.created /do/0/around/do/0/approve
      task.started /do/0/around/do/0/approve
      task.suspended /do/0/around/do/0/approve
      task.suspended /do/0/around
      workflow.suspended
      workflow.resumed
      task.resumed /do/0/around
      task.resumed /do/0/around/do/0/approve
      task.completed /do/0/around/do/0/approve
      task.completed /do/0/around
      workflow.completed
      """

  @S48
  Scenario: An operator cancels while branches listen and wait
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: cancel, version: '1.0.0'}
      do:
        - both:
            fork:
              branches:
                - hear: {listen: {to: {one: {with: {type: go}}}}}
                - rest: {wait: PT1H}
      """
    When instance "i" of "t/cancel" starts with {}
    Then "i" has 2 waits
    When the operator cancels "i"
    Then "i" is cancelled
    And the sink has got, of "i":
      """
      workflow.started
      task.created /do/0/both
      task.started /do/0/both
      task.created /do/0/both/fork/branches/0/hear
      task.started /do/0/both/fork/branches/0/hear
      workflow.correlation-started
      task.created /do/0/both/fork/branches/1/rest
      task.started /do/0/both/fork/branches/1/rest
      task.cancelled /do/0/both/fork/branches/1/rest
      task.cancelled /do/0/both/fork/branches/0/hear
      task.cancelled /do/0/both
      workflow.cancelled
      """

  @S48
  Scenario: A correlation, a timeout that is caught, and an end from inside
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: end, version: '1.0.0'}
      do:
        - hear:
            listen: {to: {one: {with: {type: go}, correlate: {order: {from: .id}}}}}
        - late:
            try:
              - slow:
                  do:
                    - rest: {wait: PT1H}
                  timeout: {after: PT0.02S}
            catch:
              do:
                - stop: {set: {late: true}, then: end}
      """
    When instance "i" of "t/end" starts with {}
    Then "i" waits at "/do/0/hear"
    When signal "s" {"type": "go", "id": "7"} is enqueued for "i"
    Then "i" is completed with {"late": true}
    And the sink has got, of "i":
      """
      workflow.started
      task.created /do/0/hear
      task.started /do/0/hear
      workflow.correlation-started
      workflow.correlation-completed {"order":"7"}
      task.completed /do/0/hear
      task.created /do/1/late
      task.started /do/1/late
      task.created /do/1/late/try/0/slow
      task.started /do/1/late/try/0/slow
      task.created /do/1/late/try/0/slow/do/0/rest
      task.started /do/1/late/try/0/slow/do/0/rest
      task.cancelled /do/1/late/try/0/slow/do/0/rest
      task.faulted /do/1/late/try/0/slow 408
      task.created /do/1/late/catch/do/0/stop
      task.started /do/1/late/catch/do/0/stop
      task.completed /do/1/late/catch/do/0/stop
      task.completed /do/1/late
      workflow.completed
      """

  @S48
  Scenario: Branches that compete, and an error that leaves a fork
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: forks, version: '1.0.0'}
      do:
        - first:
            fork:
              compete: true
              branches:
                - quick: {set: {won: true}}
                - slow: {wait: PT1H}
        - broken:
            fork:
              branches:
                - bad: {raise: {error: {type: urn:x, status: 400}}}
                - good: {wait: PT1H}
      """
    When instance "i" of "t/forks" starts with {}
    Then "i" is faulted with 400 at "/do/1/broken/fork/branches/0/bad"
    And the sink has got, of "i":
      """
      workflow.started
      task.created /do/0/first
      task.started /do/0/first
      task.created /do/0/first/fork/branches/0/quick
      task.started /do/0/first/fork/branches/0/quick
      task.completed /do/0/first/fork/branches/0/quick
      task.created /do/0/first/fork/branches/1/slow
      task.started /do/0/first/fork/branches/1/slow
      task.cancelled /do/0/first/fork/branches/1/slow
      task.completed /do/0/first
      task.created /do/1/broken
      task.started /do/1/broken
      task.created /do/1/broken/fork/branches/0/bad
      task.started /do/1/broken/fork/branches/0/bad
      task.faulted /do/1/broken/fork/branches/0/bad 400
      task.faulted /do/1/broken 400
      workflow.faulted 400
      """
    And the stream of "i" has 1 "LifecycleEvents"

  @S48
  Scenario: The sink is out of order for a while
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: down, version: '1.0.0'}
      do:
        - one: {wait: PT0.01S}
        - two: {wait: PT0.01S}
      """
    And the sink refuses the first 4 events
    When instance "i" of "t/down" starts with {}
    Then "i" is completed with {}
    And the sink has got, of "i":
      """
      workflow.started
      task.created /do/0/one
      task.started /do/0/one
      task.completed /do/0/one
      task.created /do/1/two
      task.started /do/1/two
      task.completed /do/1/two
      workflow.completed
      """
