package otlp

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/aqueduct-engine/aqueduct/tracing"
)

// maxTextBytes bounds a name and the text of an attribute.
const maxTextBytes = 1024

// request is what is sent for spans: an ExportTraceServiceRequest in the JSON of OTLP,
// where ids are hexadecimal and integers of 64 bits are texts.
func request(resource []tracing.Attribute, scope, version string, spans []tracing.Span) []byte {
	b := append(make([]byte, 0, 512+768*len(spans)), `{"resourceSpans":[{"resource":{`...)
	b = attributes(b, resource)
	b = append(b, `},"scopeSpans":[{"scope":{"name":`...)
	b = append(text(b, scope), `,"version":`...)
	b = append(text(b, version), `},"spans":[`...)
	for i := range spans {
		if i > 0 {
			b = append(b, ',')
		}
		b = span(b, &spans[i])
	}
	return append(b, `]}]}]}`...)
}

func span(b []byte, s *tracing.Span) []byte {
	b = id(append(b, `{"traceId":`...), s.Trace[:])
	b = id(append(b, `,"spanId":`...), s.ID[:])
	if s.Parent != [8]byte{} {
		b = id(append(b, `,"parentSpanId":`...), s.Parent[:])
	}
	b = text(append(b, `,"name":`...), s.Name)
	b = strconv.AppendInt(append(b, `,"kind":`...), int64(s.Kind), 10)
	b = moment(append(b, `,"startTimeUnixNano":`...), s.Start)
	end := s.End
	if end.Before(s.Start) { // a clock was set back
		end = s.Start
	}
	b = moment(append(b, `,"endTimeUnixNano":`...), end)
	b = attributes(append(b, ','), s.Attributes)
	if len(s.Links) > 0 {
		b = append(b, `,"links":[`...)
		for i, l := range s.Links {
			if i > 0 {
				b = append(b, ',')
			}
			b = id(append(b, `{"traceId":`...), l.Trace[:])
			b = append(id(append(b, `,"spanId":`...), l.ID[:]), '}')
		}
		b = append(b, ']')
	}
	if s.Unlinked > 0 {
		b = strconv.AppendInt(append(b, `,"droppedLinksCount":`...), int64(s.Unlinked), 10)
	}
	if s.Failed {
		b = append(b, `,"status":{"code":2}`...)
	}
	return append(b, `,"flags":1}`...) // sampled
}

func attributes(b []byte, list []tracing.Attribute) []byte {
	b = append(b, `"attributes":[`...)
	for i, a := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(text(append(b, `{"key":`...), a.Key), `,"value":{`...)
		if a.IsText {
			b = text(append(b, `"stringValue":`...), a.Text)
		} else {
			b = append(strconv.AppendInt(append(b, `"intValue":"`...), a.Number, 10), '"')
		}
		b = append(b, `}}`...)
	}
	return append(b, ']')
}

func id(b, raw []byte) []byte {
	return append(hex.AppendEncode(append(b, '"'), raw), '"')
}

func moment(b []byte, t time.Time) []byte {
	return append(strconv.AppendInt(append(b, '"'), max(t.UnixNano(), 0), 10), '"')
}

// text is a JSON string, of at most maxTextBytes.
func text(b []byte, s string) []byte {
	if len(s) > maxTextBytes {
		s = s[:maxTextBytes]
		for n := 1; n < utf8.UTFMax && !utf8.ValidString(s[len(s)-n:]); n++ { // a letter that is cut
			if utf8.RuneStart(s[len(s)-n]) {
				s = s[:len(s)-n]
				break
			}
		}
	}
	out, err := jsontext.AppendQuote(b, strings.ToValidUTF8(s, "\uFFFD"))
	if err != nil {
		return append(b, `""`...)
	}
	return out
}
