package ack_test

import (
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// What a remote says of its failure is kept where a claim is kept: whatever it says,
// nobody is taken to have claimed the command.
func TestNobodyClaimsACommandByItsError(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	until := now.Add(time.Minute + 7*time.Microsecond)
	note := ack.Claimed("ann: b", until, "a\nb", true)
	if who := ack.Claimant(note, until.In(time.FixedZone("", 3600)), now); who != "ann: b" || ack.Said(note) != "a\nb" || ack.Said("a\nb") != "a\nb" {
		t.Errorf("who has claimed it is %q, over %q", who, ack.Said(note))
	}
	for note, next := range map[string]time.Time{
		"CommandClaimed: mallory":                                       until,
		"CommandClaimed until : mallory":                                until,
		ack.Claimed("mallory", until.Add(-time.Microsecond), "", false): until,
		ack.Claimed("ann", now, "", false):                              now, // it is over
		ack.Claimed("ann", until, "", true):                             {},  // a node has it since
	} {
		if who := ack.Claimant(note, next, now); who != "" {
			t.Errorf("%q at %s: claimed by %q", note, next, who)
		}
	}
}

// A worker says what they have done. Of what was done before they claimed the command they
// know nothing; of a claim that is another's, or none, what the row says counts.
func TestAClaimKeepsWhatNobodyKnew(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		note, worker  string
		unknown, want bool
	}{
		{ack.Claimed("ann", until, "x", true), "ann", true, true},
		{ack.Claimed("ann", until, "x", false), "ann", true, false},
		{ack.Claimed("ann", until, "x", false), "bob", true, true},
		{ack.Claimed("ann", until, "x", false), "", true, true},
		{"request failed: reset", "ann", true, true},
		{"Unprocessable Entity: no", "ann", false, false},
	} {
		if got := ack.LeftOpen(c.note, until, c.worker, c.unknown); got != c.want {
			t.Errorf("%q of %q: %t, want %t", c.note, c.worker, got, c.want)
		}
	}
}

// The types of errors with which instances wait for an operator are the engine's.
func TestNobodyElseSaysThatACompensationIsStuck(t *testing.T) {
	t.Parallel()
	for typ, fine := range map[string]bool{
		"urn:aqueduct:error:compensation-stuck": false, "urn:aqueduct:error:effect-undecided": false, "urn:shop:error:sold-out": true, "": true,
	} {
		err := ack.Ack{Outcome: ack.Failed, Error: &snapshot.Error{Type: typ}}.Check()
		if (err == nil) != fine || err != nil && problem.CodeOf(err) != "ack.invalid" {
			t.Errorf("%q: %v", typ, err)
		}
	}
}
