package activity

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// The modes in which a sink gets CloudEvents over HTTP.
const (
	SinkStructured = "structured" // the event as the body
	SinkBinary     = "binary"     // its data as the body, its attributes as ce-* headers
)

// publish sends an event to the sink, as one HTTP request under the limits of
// every HTTP call. An answer of 200 to 299 takes it; redirects are not
// followed.
func (p *Performer) publish(ctx context.Context, c engine.Command, key string) *engine.Failure {
	keep, authorization := &secrecy{}, ""
	if p.config.SinkAuthorization != nil {
		var err error
		if authorization, err = p.config.SinkAuthorization(); err != nil || authorization == "" {
			return retryable(typeAuthorization, http.StatusForbidden, "secret", "the file of events.sink-authorization-file is empty, or cannot be read")
		}
		_, credentials, _ := strings.Cut(authorization, " ")
		keep.add(authorization, credentials)
	}
	input, err := sinkCall(p.config.Sink, p.config.SinkMode, authorization, c.Input)
	if err != nil {
		return permanent(TypeValidation, http.StatusBadRequest, "invalid event", err.Error())
	}
	c.Input = input
	for _, values := range p.config.Sink.Query() {
		keep.add(values...) // whoever takes events may want a key there
	}
	_, failure := p.request(ctx, c, key, keep)
	return failure
}

// sinkCall is the HTTP call that carries an event.
func sinkCall(sink *url.URL, mode, authorization string, event json.RawMessage) (json.RawMessage, error) {
	headers := map[string]string{"Content-Type": "application/cloudevents+json"}
	body := event
	if mode == SinkBinary {
		var attributes map[string]json.RawMessage
		if err := json.Unmarshal(event, &attributes); err != nil {
			return nil, fmt.Errorf("event: %w", err)
		}
		if attributes["data_base64"] != nil {
			return sinkCall(sink, SinkStructured, authorization, event) // the body of a call is text, or JSON
		}
		body = attributes["data"]
		delete(attributes, "data")
		headers = map[string]string{"Content-Type": "application/json"}
		for name, value := range attributes {
			text, err := scalar(value)
			if err != nil {
				return nil, fmt.Errorf("attribute %q: %w", name, err)
			}
			if name == "datacontenttype" {
				headers["Content-Type"] = text
				continue
			}
			headers["ce-"+name] = escapeHeader(text)
		}
	}
	if authorization != "" {
		headers["Authorization"] = authorization
	}
	return json.Marshal(map[string]any{
		"method": http.MethodPost, "uri": sink.String(), "headers": headers, "body": body, "output": outputRaw,
	})
}

// escapeHeader writes what a header cannot carry as the HTTP binding of
// CloudEvents says: percent-encoded.
func escapeHeader(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
