package api

import (
	"bytes"
	"context"
	"mime"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// sourceTypes are the content types of a definition's source.
var sourceTypes = []string{"application/yaml", "application/json", "text/plain", "application/x-yaml", "text/yaml"}

func (s definitionAPI) definitionOperations(h huma.API) {
	publish := operation("publish-definition", http.MethodPost, "/v1/definitions", "definitions", "Publish a definition", http.StatusConflict)
	publish.Description = "The body is the source as its author wrote it. A definition never changes: " +
		"the same source again changes nothing, another under the same name and version is refused."
	publish.DefaultStatus = http.StatusCreated
	publish.MaxBodyBytes = MaxDefinitionBytes + 1
	publish.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/json": {}, "text/plain": {Schema: &huma.Schema{Type: "string"}},
	}}
	register(s.service, h, publish, s.publish)
	all := operation(publishAll, http.MethodPost, "/v1/publications", "definitions",
		"Publish definitions and policies, all of them in one commit or none", http.StatusConflict)
	all.Description = "Each document may name what another of them defines, and their order means nothing. A problem names the file of the document, or its place, as in documents[3], when it has none."
	all.DefaultStatus = http.StatusCreated
	all.MaxBodyBytes = MaxPublicationBytes + 1
	register(s.service, h, all, s.publishAll)
	register(s.service, h, operation("list-definitions", http.MethodGet, "/v1/definitions", "definitions",
		"List the published definitions, in order of name and version"), s.listDefinitions)
	register(s.service, h, operation("list-versions", http.MethodGet, "/v1/definitions/{namespace}/{name}", "definitions",
		"List the versions of a definition", http.StatusNotFound), s.listVersions)
	register(s.service, h, operation("get-definition", http.MethodGet, "/v1/definitions/{namespace}/{name}/{version}", "definitions",
		"Show one version of a definition", http.StatusNotFound), s.getDefinition)
	source := operation("get-source", http.MethodGet, "/v1/definitions/{namespace}/{name}/{version}/source", "definitions",
		"Read what the author of a definition wrote", http.StatusNotFound)
	source.Responses["200"] = &huma.Response{Description: "The source", Content: map[string]*huma.MediaType{
		"application/yaml": {Schema: &huma.Schema{Type: "string"}}, "application/json": {Schema: &huma.Schema{}},
	}}
	register(s.service, h, source, s.getSource)
	s.scheduleOperations(h)
}

type publishInput struct {
	File        string `query:"file" maxLength:"512" doc:"What findings call the source."`
	ContentType string `header:"Content-Type" hidden:"true"`
	RawBody     []byte `contentType:"application/yaml"`
}

func (s definitionAPI) publish(ctx context.Context, in *publishInput) (*answer[client.Definition], error) {
	if in.ContentType != "" {
		media, _, err := mime.ParseMediaType(in.ContentType)
		if err != nil || !slices.Contains(sourceTypes, media) {
			return nil, newFailure(http.StatusUnsupportedMediaType, "request.content-type", "the body's content type is not understood",
				"send Content-Type: application/yaml, application/json or text/plain")
		}
	}
	r, isNew, err := s.Publisher.Publish(ctx, in.File, bytes.Clone(in.RawBody))
	if err != nil {
		return nil, err
	}
	return created(toDefinition(r), isNew), nil
}

// publishAll is the operation that publishes several documents.
const publishAll = "publish-together"

type publishAllInput struct{ Body client.PublishRequest }

func (s definitionAPI) publishAll(ctx context.Context, in *publishAllInput) (*answer[client.Publication], error) {
	documents := make([]definition.Document, len(in.Body.Documents))
	for i, d := range in.Body.Documents {
		documents[i] = definition.Document{File: d.File, Source: []byte(d.Source)}
	}
	all, err := s.Publisher.PublishAll(ctx, documents)
	if err != nil {
		return nil, err
	}
	var out client.Publication
	isNew := false
	for _, p := range all {
		out.Items = append(out.Items, client.Published{Definition: toDefinition(p.Record), Created: p.Created})
		isNew = isNew || p.Created
	}
	return created(out, isNew), nil
}

func (s definitionAPI) listDefinitions(ctx context.Context, in *struct{ Paging }) (*answer[client.Page[client.Definition]], error) {
	rows, err := s.Definitions.Definitions(ctx, in.After, in.Limit)
	if err != nil {
		return nil, err
	}
	out := client.Page[client.Definition]{Items: convert(rows, toDefinition)}
	if len(rows) == in.Limit {
		last := rows[len(rows)-1]
		out.Next = last.Name + "@" + last.Version
	}
	return ok(out), nil
}

// ByName names a definition.
type ByName struct {
	Namespace string `path:"namespace" maxLength:"256"`
	Name      string `path:"name" maxLength:"256"`
}

func (n ByName) full() string { return n.Namespace + "/" + n.Name }

type versionInput struct {
	ByName
	Version string `path:"version" maxLength:"256"`
}

func (s definitionAPI) listVersions(ctx context.Context, in *ByName) (*answer[client.Page[client.Definition]], error) {
	rows, err := s.Definitions.Versions(ctx, in.full(), 0)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, problem.New(problem.NotFound, "definition.unknown", "no definition is named %s", clip(in.full()))
	}
	return ok(client.Page[client.Definition]{Items: convert(rows, toDefinition)}), nil
}

func (s definitionAPI) getDefinition(ctx context.Context, in *versionInput) (*answer[client.Definition], error) {
	r, err := s.record(ctx, in)
	return ok(toDefinition(r)), err
}

func (s definitionAPI) record(ctx context.Context, in *versionInput) (definition.Record, error) {
	r, err := s.Definitions.Definition(ctx, in.full(), in.Version)
	return r, missing(err, "definition.unknown", "no definition is named %s@%s", clip(in.full()), clip(in.Version))
}

type sourceOutput struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (o *sourceOutput) response() (status int, contentType string, body any) {
	return http.StatusOK, o.ContentType, o.Body
}

func (s definitionAPI) getSource(ctx context.Context, in *versionInput) (*sourceOutput, error) {
	r, err := s.record(ctx, in)
	if err != nil {
		return nil, err
	}
	out := &sourceOutput{ContentType: "application/yaml", Body: r.Source}
	if b := bytes.TrimSpace(r.Source); len(b) > 0 && b[0] == '{' {
		out.ContentType = "application/json"
	}
	return out, nil
}

func toDefinition(r definition.Record) client.Definition {
	return client.Definition{
		Name: r.Name, Version: r.Version, Digest: r.Digest, Kind: r.Kind, Title: r.Title, PublishedAt: r.PublishedAt.UTC(),
		Warnings: warnings(r.Warnings),
	}
}

// warnings of a publication; nil when there are none.
func warnings(places []problem.Place) (out []client.Warning) {
	for _, p := range places {
		out = append(out, client.Warning(p))
	}
	return out
}

// convert maps a list; the result is never nil, so that it is [] in JSON.
func convert[A, B any](in []A, f func(A) B) []B {
	out := make([]B, 0, len(in))
	for _, a := range in {
		out = append(out, f(a))
	}
	return out
}
