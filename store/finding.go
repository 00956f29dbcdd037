package store

// Grade says how good a finding is.
type Grade string

// Grades, from good to bad.
const (
	Good    Grade = "ok"
	Warning Grade = "warning" // a node works, and somebody should look; or it could not be found out
	Wrong   Grade = "error"   // a node does not work, or should not in this way
)

// Finding is what one check of a store has found. Stores are examined without
// being opened, for what is looked for may be what keeps them from opening.
type Finding struct {
	Check string `json:"check"` // stable name, such as "queue-WF_SIGNAL_Q"
	Grade Grade  `json:"grade"`
	Found string `json:"found"`
	Mend  string `json:"mend,omitempty"` // the statement or setting that mends it; who runs it stands before
}
