package storetest

import (
	"slices"
	"testing"
)

// needs names the part that a case uses and a store may lack.
var needs = map[string]string{
	"a message that nobody works on is given back":                            "Ledger",
	"what was left is no crash":                                               "Ledger",
	"a restart finds what was held":                                           "Ledger",
	"a killed node's messages come back at once":                              "Ledger",
	"what is in hand is no stray":                                             "Ledger",
	"the ledger costs nothing when nothing happens":                           "Ledger",
	"a lock is one node's until it ends":                                      "Locks",
	"purge removes what is over and nothing else":                             "Retention",
	"what is overdue is found, the longest overdue first":                     "Overdue",
	"what is due at one moment comes a page at a time":                        "Overdue",
	"a message is found by its tokens":                                        "Overdue",
	"what nodes perform is known while they live":                             "Functions",
	"commands that no node has are counted by target":                         "Functions",
	"an event is kept once until it expires":                                  "Inbox",
	"an event that has expired and is still there is kept anew":               "Inbox",
	"a kept event has no longer type than its column":                         "Inbox",
	"kept events come a page at a time, the first received first":             "Inbox",
	"an event is filed once, and found by its key":                            "Inbox",
	"queues tell depth and age":                                               "Backlog",
	"nodes are known while they are on the database":                          "Members",
	"gaps are counted while they are open":                                    "Backlog",
	"what has not ended is counted":                                           "Backlog",
	"dead letters are counted by reason":                                      "Backlog",
	"a probe is a commit, and says when there is none":                        "Prober",
	"the audit of a dead letter goes with it":                                 "Audit",
	"the audit is selected and paged":                                         "Audit",
	"who has had a change made is written with it, or not at all":             "Audit",
	"tokens are kept, found, listed and revoked, with who does it":            "Tokens",
	"an activity is attached once, changed by version, and frozen for good":   "Activities",
	"activities are listed from the oldest on, and go with their instance":    "Activities",
	"moments of a business key are those of all its instances, in time":       "Moments",
	"tokens are purged after their end, each with its audit":                  "Retention",
	"rows of the audit are purged by who may, and a row says so":              "Retention",
	"a policy is purged when no instance is kept that went by it":             "Retention",
	"an instance that kept a schedule is purged beside runs long after it":    "Retention",
	"old dead letters are found but those of what lives":                      "Retention",
	"edits of a dead letter stay beside what died":                            "Audit",
	"a replay is of the newest edit, and leaves the edits":                    "Audit",
	"edits of a dead letter without an instance are purged when it is gone":   "Retention",
	"edits are purged with the instance of their dead letter":                 "Retention",
	"an instance has so many activities, and their texts have a width":        "Activities",
	"a plan of instances is what was found, each at the version of its state": "Bulk",
	"a plan of dead letters is what was found":                                "Bulk",
	"a plan changes at its version, and its items are settled once":           "Bulk",
	"plans are listed, the newest first, and purged with their items":         "Retention",
}

// checkNeeds fails a test that lacks what no store may lack, and a suite that
// needs something for a case that it does not have.
func checkNeeds(t *testing.T, cases map[string]bool, lacks []string) {
	t.Helper()
	parts := map[string]bool{}
	for name, part := range needs {
		parts[part] = true
		if !cases[name] {
			t.Errorf("there is no case %q that needs %s", name, part)
		}
	}
	for _, part := range lacks {
		if !parts[part] {
			t.Errorf("no store may lack %s", part)
		}
	}
}

// left reports whether a case is left out of the suite of a store that lacks those parts.
func left(name string, lacks []string) bool { return slices.Contains(lacks, needs[name]) }
