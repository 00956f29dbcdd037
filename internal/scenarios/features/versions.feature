Feature: Versions and secrets

  @S37
  Scenario: Instances stay on their version until they are moved, by a map
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: flow, version: '1.0.0'}
      do:
        - hear: {listen: {to: {one: {with: {type: go}}}}}
        - old: {set: {version: 1}}
      """
    When instance "i" of "t/flow" starts with {}
    And instance "j" of "t/flow" starts with {}
    Then "i" waits at "/do/0/hear"
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: flow, version: '2.0.0'}
      do:
        - before: {set: {x: 1}}
        - listen: {listen: {to: {one: {with: {type: go}}}}}
        - new: {set: {version: 2}}
      """
    When signal "s" {"type": "go"} is enqueued for "j"
    Then "j" is completed with {"version": 1}
    When the instances of "t/flow" move from "1.0.0" to "2.0.0" by {}
    Then it is refused with "migration.unmapped"
    And "i" runs version "1.0.0"
    When the instances of "t/flow" move from "1.0.0" to "2.0.0" by {"/do/0/hear": "/do/1/listen"}
    Then it is not refused
    And "i" runs version "2.0.0"
    When signal "t" {"type": "go"} is enqueued for "i"
    Then "i" is completed with {"version": 2}

  @S38
  Scenario: A snapshot of a newer engine is left to a newer node
    Given the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: flow, version: '1.0.0'}
      do: [{hear: {listen: {to: {one: {with: {type: go}}}}}}]
      """
    When instance "i" of "t/flow" starts with {}
    Then "i" waits at "/do/0/hear"
    When a newer engine writes the snapshot of "i"
    And signal "s" {"type": "go"} is enqueued for "i"
    Then the message is kept for a newer node
    And the snapshot of "i" cannot be read because it is newer

  @S45
  Scenario: A secret reaches the server, and is kept nowhere
    Given a server that wants the password "correct-horse-battery" of the secret "bank"
    And the definition:
      """yaml
      document: {dsl: '1.0.3', namespace: t, name: pay, version: '1.0.0'}
      use: {secrets: [bank]}
      do:
        - right: {call: http, with: {method: get, endpoint: {uri: 'URL/right', authentication: {basic: {use: bank}}}}}
        - wrong: {call: http, with: {method: get, endpoint: {uri: 'URL/wrong', authentication: {bearer: {token: '${ $secrets.bank.password }'}}}}}
      """
    When instance "i" of "t/pay" starts with {}
    Then "i" is faulted with 403 at "/do/1/wrong"
    And the error of "i" says "communication"
    And nothing of "i" contains "correct-horse-battery"
    And nothing that is logged contains "correct-horse-battery"
