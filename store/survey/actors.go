package survey

import (
	"fmt"
	"maps"
	"slices"

	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Actor is a task beside one of those that may or may not see it, as an index of
// them says. A task with several has several of these, one after the other.
type Actor struct {
	TaskID          string `db:"TASK_ID"`
	CandidateUsers  string `db:"CANDIDATE_USERS"`
	CandidateGroups string `db:"CANDIDATE_GROUPS"`
	ExcludedUsers   string `db:"EXCLUDED_USERS"`

	Kind string `db:"KIND"` // "" = there is none
	Name string `db:"NAME"`
}

// Actors is what a check finds in such an index.
type Actors struct {
	table   Table
	at      string          // the task that is being read
	missing map[string]bool // whom it names, and no row has said yet
}

// NewActors begins.
func NewActors() *Actors {
	return &Actors{table: Table{Check: "task-actors", fix: "make WF_TASK_ACTORS say what the task does: delete what it does not name, and insert what is missing"}}
}

// Row takes the next row.
func (a *Actors) Row(row Actor) error {
	if row.TaskID != a.at {
		a.end()
		a.at, a.missing = row.TaskID, map[string]bool{}
		for kind, list := range map[string]string{"U": row.CandidateUsers, "G": row.CandidateGroups, "X": row.ExcludedUsers} {
			for _, name := range backend.Names(list) {
				if name != "" {
					a.missing[kind+" "+name] = true
				}
			}
		}
	}
	if row.Kind == "" {
		return nil
	}
	a.table.count++
	actor := row.Kind + " " + row.Name
	if !a.missing[actor] {
		a.table.found(fmt.Sprintf("task %s does not name %s", a.at, actor))
	}
	delete(a.missing, actor)
	return nil
}

// end counts whom the last task names and no row has said.
func (a *Actors) end() {
	for _, actor := range slices.Sorted(maps.Keys(a.missing)) {
		a.table.count++
		a.table.found(fmt.Sprintf("task %s names %s, and no row does", a.at, actor))
	}
	a.missing = nil
}

// Findings are what it came to.
func (a *Actors) Findings() []Finding {
	a.end()
	return []Finding{a.table.Finding()}
}
