package api

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
)

func (s instanceAPI) eventOperations(h huma.API) {
	op := operation("publish-event", http.MethodPost, "/v1/events", "events", "Publish a CloudEvent")
	op.Description = "It reaches every instance that waits for it, each once, however often the event (source and id) is published. " +
		"In structured mode the body is the event; in binary mode its attributes are the headers ce-id, ce-source, ce-type, ce-specversion " +
		"and further ones, percent-encoded, and the body is its data."
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
	event, typ, err := in.cloudEvent()
	if err == nil {
		err = access.Publishes(principal.Of(ctx), typ)
	}
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
func (in *eventInput) cloudEvent() (event json.RawMessage, typ string, err error) {
	media, _, err := mime.ParseMediaType(in.mediaType)
	if in.mediaType != "" && err != nil || strings.HasPrefix(media, "application/cloudevents-batch") ||
		strings.HasPrefix(media, "application/cloudevents") && media != "application/cloudevents+json" {
		return nil, "", newFailure(http.StatusUnsupportedMediaType, "request.content-type", "the body's content type is not understood",
			"send one event as Content-Type: application/cloudevents+json, or its attributes as ce-* headers")
	}
	structured := media == "application/cloudevents+json" || len(in.binary) == 0
	if structured && media != "" && !isJSON(media) {
		return nil, "", newFailure(http.StatusUnsupportedMediaType, "request.content-type", "the body's content type is not understood",
			"send one event as Content-Type: application/cloudevents+json, or its attributes as ce-* headers")
	}
	event = bytes.Clone(in.RawBody)
	if !structured {
		if event, err = in.fromBinary(media); err != nil {
			return nil, "", err
		}
	}
	if err := checkJSON(event); err != nil {
		return nil, "", problem.New(problem.Invalid, "event.invalid", "the event cannot be read: %s", err)
	}
	var e struct {
		SpecVersion *string `json:"specversion"`
		ID          string  `json:"id"`
		Source      string  `json:"source"`
		Type        string  `json:"type"`
	}
	if err := jsonv2.Unmarshal(event, &e); err != nil {
		return nil, "", problem.Wrap(err, problem.Invalid, "event.invalid", "event is not a CloudEvent in JSON")
	}
	if e.SpecVersion == nil || *e.SpecVersion != "1.0" {
		return nil, "", problem.New(problem.Invalid, "event.invalid", "specversion of the event is not 1.0").
			WithHint(`write "specversion": "1.0"`)
	}
	for _, f := range []struct{ name, value string }{{"id", e.ID}, {"source", e.Source}, {"type", e.Type}} {
		if f.value == "" {
			return nil, "", problem.New(problem.Invalid, "event.invalid", "event has no %s", f.name)
		}
	}
	return event, e.Type, checkAttributes(event)
}

// checkAttributes holds what else there is in an event to CloudEvents 1.0: the time, the
// names and the values of extensions, and that it has its data once. An attribute that is
// null is not there.
func checkAttributes(event json.RawMessage) error {
	bad := func(format string, args ...any) error {
		return problem.New(problem.Invalid, "event.invalid", format, args...)
	}
	attributes := map[string]jsontext.Value{}
	if err := jsonv2.Unmarshal(event, &attributes); err != nil {
		return problem.Wrap(err, problem.Invalid, "event.invalid", "event is not a CloudEvent in JSON")
	}
	if attributes["data"] != nil && attributes["data_base64"] != nil {
		return bad("event has data and data_base64")
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		v := attributes[name]
		var text string
		isText := v.Kind() == '"' && jsonv2.Unmarshal(v, &text) == nil
		switch {
		case name == "data" || v.Kind() == 'n':
		case name == "data_base64":
			if _, err := base64.StdEncoding.DecodeString(text); !isText || err != nil {
				return bad("data_base64 of the event is not base64")
			}
		case name == "time":
			if _, err := time.Parse(time.RFC3339Nano, text); err != nil {
				return bad("time of the event is %.64s, not as 2026-01-31T12:00:00Z", v)
			}
		case slices.Contains([]string{"datacontenttype", "dataschema", "subject"}, name) && !isText:
			return bad("%s of the event is not a text", name)
		case strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") != "" || name == "":
			return bad("attribute %.64q of the event is not named of lower-case letters and digits", name)
		case isText || v.Kind() == 't' || v.Kind() == 'f':
		default:
			if _, err := strconv.ParseInt(string(v), 10, 32); err != nil {
				return bad("attribute %.64q of the event is not a text, a boolean or an integer of 32 bits", name)
			}
		}
	}
	return nil
}

func isJSON(media string) bool {
	return media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json")
}

// fromHeader is the value of an attribute as a header carries it, which the HTTP binding of
// CloudEvents says (3.1.3.2): in quotes or not, a backslash before what is meant as it is in
// them, and percent-encoded. What is no encoding is itself.
func fromHeader(s string) (string, error) {
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		plain := make([]byte, 0, len(s))
		for i := 1; i < len(s)-1; i++ {
			if s[i] == '\\' && i < len(s)-2 {
				i++
			}
			plain = append(plain, s[i])
		}
		s = string(plain)
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if code, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(code))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	if text := b.String(); utf8.ValidString(text) {
		return text, nil
	}
	return "", errors.New("it is not text in UTF-8")
}

// fromBinary puts attributes and data into one object.
func (in *eventInput) fromBinary(media string) (json.RawMessage, error) {
	event := make(map[string]any, len(in.binary)+2)
	for name, value := range in.binary {
		text, err := fromHeader(value)
		if err != nil {
			return nil, problem.Wrap(err, problem.Invalid, "event.invalid", "the header ce-%.64s", name)
		}
		event[name] = text
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
