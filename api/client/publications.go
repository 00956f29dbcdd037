package client

import (
	"context"
	"unicode/utf8"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Document is the source of a definition or a policy, as its author wrote it.
type Document struct {
	File   string `json:"file,omitempty" maxLength:"512" doc:"What findings call the source."`
	Source string `json:"source" doc:"YAML or JSON."`
}

// PublishRequest asks for the publication of documents, of all or of none.
type PublishRequest struct {
	Documents []Document `json:"documents" minItems:"1" maxItems:"100" nullable:"false"`
}

// Publication is what has become of documents, in their order.
type Publication struct {
	Items []Published `json:"items" nullable:"false"`
}

// Published is what has become of a document.
type Published struct {
	Definition
	Created bool `json:"created" doc:"False: the same was published before."`
}

// PublishAll publishes definitions and policies in one commit, all of them or none: each
// may name what another of them defines, and their order means nothing.
func (c definitionCalls) PublishAll(ctx context.Context, documents []Document) ([]Published, error) {
	var p Publication
	for _, d := range documents {
		if !utf8.ValidString(d.Source) {
			return nil, problem.New(problem.Invalid, "request.invalid", "%s is not UTF-8", d.File)
		}
	}
	r, err := jsonRequest("/v1/publications", PublishRequest{documents}, &p)
	if err != nil {
		return nil, err
	}
	_, err = c.send(ctx, r)
	return p.Items, err
}
