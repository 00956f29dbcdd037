Feature: Schedules and early events

  @S25
  Scenario: Three nodes begin each tick once
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: tick, version: '1.0.0'}
      schedule: {every: PT1S}
      do: [{mark: {set: {marked: true}}}]
      """
    And a second node joins
    And a second node joins
    Then instances of "t/tick" have begun 3 times or more
    When the schedule of "t/tick" is cancelled
    Then each tick of "t/tick" began one instance, 1s after the other

  @S25
  Scenario: Of the ticks that were missed one is made up for
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: tick, version: '1.0.0'}
      schedule: {every: PT1S}
      do: [{mark: {set: {marked: true}}}]
      """
    And a node runs
    Then instances of "t/tick" have begun 1 times or more
    When the node is away for 3500ms
    Then the schedule of "t/tick" has missed 1 ticks or more
    And instances of "t/tick" have begun 3 times or more
    And the schedule of "t/tick" is cancelled

  @S25
  Scenario: A run after the last one begins when that has ended
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: again, version: '1.0.0'}
      schedule: {after: PT1S}
      do: [{work: {wait: PT0.5S}}]
      """
    And a node runs
    Then instances of "t/again" have begun 2 times or more
    And no two instances of "t/again" began within 1400ms
    And the schedule of "t/again" is cancelled

  @S14
  Scenario: An event that comes before its listen is kept for a while
    Given early events are kept for 1h
    And the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: late, version: '1.0.0'}
      do: [{hear: {listen: {to: {one: {with: {type: paid}, correlate: {order: {from: .data.order, expect: '${ .order }'}}}}}}}]
      """
    When the event {"specversion": "1.0", "id": "1", "source": "bank", "type": "paid", "data": {"order": 8}} is published
    And instance "other" of "t/late" starts with {"order": 9}
    And instance "i" of "t/late" starts with {"order": 8}
    Then "i" is completed with [{"order": 8}]
    And "other" waits at "/do/0/hear"

  @S14
  Scenario: An event that is older than events are kept is missed
    Given early events are kept for 50ms
    And the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: late, version: '1.0.0'}
      do: [{hear: {listen: {to: {one: {with: {type: paid}}}}}}]
      """
    When the event {"specversion": "1.0", "id": "1", "source": "bank", "type": "paid", "data": 1} is published
    And 300ms passes
    And instance "i" of "t/late" starts with {}
    And 300ms passes
    Then "i" waits at "/do/0/hear"
    When the event {"specversion": "1.0", "id": "2", "source": "bank", "type": "paid", "data": 2} is published
    Then "i" is completed with [2]
