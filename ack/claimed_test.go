package ack_test

import (
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
)

// What a remote says of its failure is kept where a claim is kept: whatever it says,
// nobody is taken to have claimed the command.
func TestNobodyClaimsACommandByItsError(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	until := now.Add(time.Minute + 7*time.Microsecond)
	note := ack.Claimed("ann: b", until, "a\nb")
	if who := ack.Claimant(note, until.In(time.FixedZone("", 3600)), now); who != "ann: b" || ack.Said(note) != "a\nb" || ack.Said("a\nb") != "a\nb" {
		t.Errorf("who has claimed it is %q, over %q", who, ack.Said(note))
	}
	for note, next := range map[string]time.Time{
		"CommandClaimed: mallory":                                until,
		"CommandClaimed until : mallory":                         until,
		ack.Claimed("mallory", until.Add(-time.Microsecond), ""): until,
		ack.Claimed("ann", now, ""):                              now, // it is over
		ack.Claimed("ann", until, ""):                            {},  // a node has it since
	} {
		if who := ack.Claimant(note, next, now); who != "" {
			t.Errorf("%q at %s: claimed by %q", note, next, who)
		}
	}
}
