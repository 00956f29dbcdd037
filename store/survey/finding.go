package survey

// Severity says how bad a finding is.
type Severity string

// Severities, from good to bad.
const (
	Good    Severity = "ok"
	Warning Severity = "warning" // a node works, and somebody should look; or it could not be found out
	Wrong   Severity = "error"   // a node does not work, or should not in this way
)

// Finding is what one check of a store has found. Stores are checked without
// being opened, for what is looked for may be what keeps them from opening.
type Finding struct {
	Check    string   `json:"check"` // stable name, such as "queue-WF_SIGNAL_Q"
	Severity Severity `json:"grade"`
	Found    string   `json:"found"`
	Fix      string   `json:"mend,omitempty"` // the statement or setting that fixes it; who runs it stands before
}
