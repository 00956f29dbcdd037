package api

import (
	"bytes"
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/problem"
)

func (s instanceAPI) eventOperations(h huma.API) {
	op := operation("publish-event", http.MethodPost, "/v1/events", "events", "Publish a CloudEvent")
	op.Description = "It reaches every instance that waits for it, each once, however often the event (source and id) is published. " +
		"In structured mode the body is the event; in binary mode its attributes are the headers ce-id, ce-source, ce-type, ce-specversion " +
		"and further ones, and the body is its data."
	op.DefaultStatus = http.StatusAccepted
	op.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{"*/*": {}}}
	register(s.service, h, op, s.event)
	op.RequestBody.Required = false // binary mode may have no data
}

// eventInput keeps every header, since each ce-* one is an attribute.
type eventInput struct {
	Caller
	RawBody   []byte `contentType:"application/cloudevents+json"`
	mediaType string
	binary    map[string]string
}

// Resolve implements huma.Resolver.
func (in *eventInput) Resolve(ctx huma.Context) []error {
	in.mediaType = ctx.Header("Content-Type")
	in.binary = map[string]string{}
	ctx.EachHeader(func(name, value string) {
		if attribute, ok := strings.CutPrefix(strings.ToLower(name), "ce-"); ok {
			in.binary[attribute] = value
		}
	})
	return nil
}

func (s instanceAPI) event(ctx context.Context, in *eventInput) (*answer[client.Reached], error) {
	event, err := in.cloudEvent()
	if err != nil {
		return nil, err
	}
	n, err := s.Signaller.PublishEvent(ctx, event, in.headers())
	if err != nil {
		return nil, err
	}
	return &answer[client.Reached]{http.StatusAccepted, client.Reached{Reached: n}}, nil
}

// cloudEvent is the event in structured mode, checked as far as CloudEvents
// 1.0 says what an event is.
func (in *eventInput) cloudEvent() (json.RawMessage, error) {
	media, _, err := mime.ParseMediaType(in.mediaType)
	if in.mediaType != "" && err != nil || strings.HasPrefix(media, "application/cloudevents-batch") ||
		strings.HasPrefix(media, "application/cloudevents") && media != "application/cloudevents+json" {
		return nil, newFailure(http.StatusUnsupportedMediaType, "request.content-type", "the body's content type is not understood",
			"send one event as Content-Type: application/cloudevents+json, or its attributes as ce-* headers")
	}
	structured := media == "application/cloudevents+json" || len(in.binary) == 0
	if structured && media != "" && !isJSON(media) {
		return nil, newFailure(http.StatusUnsupportedMediaType, "request.content-type", "the body's content type is not understood",
			"send one event as Content-Type: application/cloudevents+json, or its attributes as ce-* headers")
	}
	event := bytes.Clone(in.RawBody)
	if !structured {
		if event, err = in.fromBinary(media); err != nil {
			return nil, err
		}
	}
	if err := checkJSON(event); err != nil {
		return nil, problem.New(problem.Invalid, "event.invalid", "the event cannot be read: %s", err)
	}
	var e struct {
		SpecVersion *string `json:"specversion"`
		ID          string  `json:"id"`
		Source      string  `json:"source"`
		Type        string  `json:"type"`
	}
	if err := jsonv2.Unmarshal(event, &e); err != nil {
		return nil, problem.Wrap(err, problem.Invalid, "event.invalid", "event is not a CloudEvent in JSON")
	}
	if e.SpecVersion == nil || *e.SpecVersion != "1.0" {
		return nil, problem.New(problem.Invalid, "event.invalid", "specversion of the event is not 1.0").
			WithHint(`write "specversion": "1.0"`)
	}
	for _, f := range []struct{ name, value string }{{"id", e.ID}, {"source", e.Source}, {"type", e.Type}} {
		if f.value == "" {
			return nil, problem.New(problem.Invalid, "event.invalid", "event has no %s", f.name)
		}
	}
	return event, nil
}

func isJSON(media string) bool {
	return media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json")
}

// fromBinary puts attributes and data into one object.
func (in *eventInput) fromBinary(media string) (json.RawMessage, error) {
	event := make(map[string]any, len(in.binary)+2)
	for name, value := range in.binary {
		event[name] = value
	}
	if media != "" {
		event["datacontenttype"] = in.mediaType
	}
	switch {
	case len(in.RawBody) == 0:
	case media == "" || isJSON(media):
		if err := checkJSON(in.RawBody); err != nil {
			return nil, problem.New(problem.Invalid, "event.invalid", "the event's data cannot be read: %s", err)
		}
		event["data"] = json.RawMessage(in.RawBody)
	case utf8.Valid(in.RawBody):
		event["data"] = string(in.RawBody)
	default:
		event["data_base64"] = in.RawBody
	}
	b, err := json.Marshal(event)
	if err != nil {
		return nil, problem.Wrap(err, problem.Invalid, "event.invalid", "the event is not JSON")
	}
	return b, nil
}
