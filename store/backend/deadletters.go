package backend

import (
	"errors"
	"time"
)

// What an edit of a dead letter puts in the place of what died.
const (
	EditEnvelope = "envelope" // another envelope
	EditInput    = "input"    // another input of the command that it is about, as another effect: under another key
	EditSameKey  = "same-key" // another input, under the key that the command has
	EditOriginal = "original" // what died, byte for byte
)

// AnyEdit says that whatever edit is the newest may be replayed, or discarded.
const AnyEdit int64 = -1

// MaxDeadLetterEdits is how often one dead letter may be edited.
const MaxDeadLetterEdits = 100

// ErrEdited says that a dead letter has as many edits as it may.
var ErrEdited = errors.New("the dead letter has as many edits as it may")

// DeadLetterEdit is what somebody has put in the place of a dead letter's bytes: a row of
// WF_LETTER_EDITS. The newest counts. With the first edit the envelope that died is kept
// as number 0, so that it is there when the letter is not.
type DeadLetterEdit struct {
	DeadLetterID string    `db:"DEAD_LETTER_ID" width:"128"`
	No           int64     `db:"EDIT_NO"` // from 1; guards every edit
	InstanceID   string    `db:"INSTANCE_ID" width:"128"`
	What         string    `db:"WHAT" width:"16"`
	At           time.Time `db:"EDITED_ON_UTC"`
	By           string    `db:"EDITED_BY" width:"128"`
	Reason       string    `db:"REASON" width:"1000"`
	Body         []byte    `db:"BODY"` // of EditOriginal, only number 0 has one
}

// Weight is what the edit adds to a page.
func (e *DeadLetterEdit) Weight() int { return len(e.Body) }

// DeadLetterChange is what somebody asks to have sent in the place of what died: one of an
// envelope, an input, and the original.
type DeadLetterChange struct {
	After    int64  // number of the newest edit that they have seen; 0 = they have seen none
	Envelope []byte // of a message
	Input    []byte // of the command that the letter is about
	Key      string // of Input: KeySame, KeyNew, or "" = a new one where it is known that nothing was done
	Original bool   // what died
	Another  bool   // the envelope may be for another instance, or of another type
}

// Words for the key of an edited input.
const (
	KeySame = "same"
	KeyNew  = "new"
)

// First is the newest of a page of edits; its number is 0 where there is none.
func First(p Page[DeadLetterEdit]) DeadLetterEdit {
	if len(p.Items) > 0 {
		return p.Items[0]
	}
	return DeadLetterEdit{What: EditOriginal}
}
