package client

import (
	"context"
	"net/url"
)

// DefinitionRef names a version of a definition exactly.
type DefinitionRef struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Digest  string `json:"digest" doc:"Hex SHA-256 of the canonical document."`
}

// DefinitionChange is a difference between two versions of a definition.
type DefinitionChange struct {
	Kind   string   `json:"kind" enum:"added,removed,changed,moved" doc:"moved: the same name and content elsewhere, with all that is inside."`
	Old    string   `json:"old,omitempty" doc:"JSON pointer in the old version; absent of an added task and of the workflow itself."`
	New    string   `json:"new,omitempty" doc:"JSON pointer in the new version; absent of a removed task and of the workflow itself."`
	Task   string   `json:"task,omitempty" doc:"Its name; absent: the workflow itself."`
	Fields []string `json:"fields,omitempty" doc:"Of a change: which fields differ."`
}

// LivePosition counts the instances that are at a task.
type LivePosition struct {
	Pointer   string `json:"pointer" doc:"JSON pointer in the old version."`
	To        string `json:"to,omitempty" doc:"Where they go on in the new version; absent: nowhere."`
	Problem   string `json:"problem,omitempty" doc:"Why they cannot go on."`
	Passing   bool   `json:"passing,omitempty" doc:"The problem ends by itself: they are in hooks of a policy, and hold up no other instance."`
	Instances int    `json:"instances"`
}

// MigrationRequest asks for live instances to go on under another version.
type MigrationRequest struct {
	From     string            `json:"from" minLength:"1" maxLength:"256" doc:"The version that instances run."`
	To       string            `json:"to" minLength:"1" maxLength:"256" doc:"The version to move them to."`
	Pointers map[string]string `json:"pointers,omitempty" doc:"Old JSON pointer to new one; equal pointers of the same kind of task need no entry, and a task takes those inside it along."`
	DryRun   bool              `json:"dryRun,omitempty" doc:"Say what would be done, and do nothing."`
}

// MigrationReport says what a migration does, or would do.
type MigrationReport struct {
	From      DefinitionRef      `json:"from"`
	To        DefinitionRef      `json:"to"`
	Changes   []DefinitionChange `json:"changes" nullable:"false"`
	Pointers  map[string]string  `json:"pointers" doc:"The map that positions are told by."`
	Live      int                `json:"live" doc:"Instances that run the old version and are not closed."`
	Positions []LivePosition     `json:"positions" nullable:"false"`
	Moved     int                `json:"moved" doc:"By this request."`
	Left      int                `json:"left" doc:"Live and not moved yet: send the request again."`
	Waiting   int                `json:"waiting" doc:"Of those left: they are in hooks of a policy, and can be moved when they rest."`
	More      bool               `json:"more,omitempty" doc:"More may be live than could be looked at in time: live, left, waiting and positions are of those that were."`
}

// CompareVersions says how two versions of a definition differ, and what a
// migration would do to live instances; name is namespace/name.
func (c definitionCalls) CompareVersions(ctx context.Context, name, from, to string) (MigrationReport, error) {
	return get[MigrationReport](ctx, c.caller, definitions+"/"+named(name)+"/"+url.PathEscape(from)+"/diff/"+url.PathEscape(to), nil)
}

// Migrate moves live instances of one version of a definition to another, as
// many as one request does: repeat it while Left is more than Waiting.
func (c definitionCalls) Migrate(ctx context.Context, name string, m MigrationRequest) (MigrationReport, error) {
	out, _, err := post[MigrationReport](ctx, c.caller, definitions+"/"+named(name)+"/migrations", m)
	return out, err
}
