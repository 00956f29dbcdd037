package survey

// Invariant is what holds in every committed state of a store, whatever its
// nodes are doing. Each is a statement in query/invariant_NAME.sql of the
// store, with - as _, which selects what breaks it: the instance or other thing
// that it is about, and what is wrong there.
type Invariant struct {
	Name  string
	Holds string // in one sentence
}

// Invariants are all of them.
var Invariants = []Invariant{
	{"one-snapshot", "An instance has one row and one snapshot, of one status, and its row is not of a later version."},
	{"stream-gapless", "The positions of an instance's stream are 1, 2, 3 and so on, as far as its snapshot says."},
	{"closed-is-over", "A closed instance waits for nothing and has no open task."},
	{"command-state", "A command is open or processed: an open one has no time of its end, a processed one is claimed by nobody, an event is neither."},
	{"task-history", "The status of a task is what its last event made of it."},
	{"wait-has-source", "What an instance waits for is there: the open command, the open task of a person, the row of an event."},
	{"timer-sent", "Each moment that an instance waits for has its message: in a queue, kept by the instance, or a dead letter."},
	{"child-known", "A parent has asked for each child; one that it waits for goes on, or its start or its end is on its way."},
	{"one-key", "A key is of one instance and one request, and of at most one open command."},
	{"no-orphans", "Whatever belongs to an instance or a task goes with it."},
	{"lease-owner", "Whoever has a message or a command is a run of a node that is known, until what it had is returned."},
}

// Violation is one thing that breaks an invariant.
type Violation struct {
	Invariant string `json:"invariant"`
	About     string `json:"about"` // an instance, task or message
	Found     string `json:"found"`
}
