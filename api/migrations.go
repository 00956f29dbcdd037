package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

func (s definitionAPI) migrationOperations(h huma.API) {
	compare := operation("compare-versions", http.MethodGet, "/v1/definitions/{namespace}/{name}/{version}/diff/{to}", "definitions",
		"Compare two versions of a definition, and say what a migration would do to live instances", http.StatusNotFound)
	compare.Description = "pointers is the map that the changes suggest for a migration; positions are told by it."
	register(s.service, h, compare, s.compareVersions)
	migrate := operation("migrate-instances", http.MethodPost, "/v1/definitions/{namespace}/{name}/migrations", "definitions",
		"Move live instances of one version to another", http.StatusNotFound, http.StatusConflict)
	migrate.Description = "None is moved when any is live where the map leads nowhere. Each is moved in a turn of its own; " +
		"while left is more than waiting, the same request again goes on. A repeat moves nothing twice. " +
		"When they cannot all be looked at in 30 s, none is moved, and a plan of what is done to many moves them."
	register(s.service, h, migrate, s.migrate)
}

type compareInput struct {
	ByName
	Version string `path:"version" maxLength:"256"`
	To      string `path:"to" maxLength:"256" doc:"The version to compare with."`
}

func (s definitionAPI) compareVersions(ctx context.Context, in *compareInput) (*answer[client.MigrationReport], error) {
	r, err := s.Migrator.CompareVersions(ctx, in.full(), in.Version, in.To)
	if err != nil {
		return nil, err
	}
	return ok(toReport(r)), nil
}

type migrateInput struct {
	ByName
	Caller
	Body client.MigrationRequest
}

func (s definitionAPI) migrate(ctx context.Context, in *migrateInput) (*answer[client.MigrationReport], error) {
	b := in.Body
	pointers := b.Pointers
	if pointers == nil {
		pointers = map[string]string{}
	}
	r, err := s.Migrator.Migrate(ctx, definition.Migration{
		Name: in.full(), From: b.From, To: b.To, Pointers: pointers, DryRun: b.DryRun, Actor: in.Actor,
	})
	if err != nil {
		return nil, err
	}
	return ok(toReport(r)), nil
}

func toReport(r definition.MigrationReport) client.MigrationReport {
	ref := func(d snapshot.Definition) client.DefinitionRef {
		return client.DefinitionRef{Name: d.Name, Version: d.Version, Digest: d.Digest}
	}
	pointers := r.Pointers
	if pointers == nil {
		pointers = map[string]string{}
	}
	return client.MigrationReport{
		From: ref(r.From), To: ref(r.To), Pointers: pointers, Live: r.Live, Moved: r.Moved, Left: r.Left, Waiting: r.Waiting, More: r.More,
		Changes: convert(r.Changes, toChange),
		Positions: convert(r.Positions, func(p definition.LivePosition) client.LivePosition {
			return client.LivePosition{Pointer: p.Pointer, To: p.To, Problem: p.Problem, Passing: p.Passing, Instances: p.Instances}
		}),
	}
}

func toChange(c definition.Change) client.DefinitionChange {
	return client.DefinitionChange{Kind: string(c.Kind), Old: c.Old, New: c.New, Task: c.Task, Fields: c.Fields}
}
