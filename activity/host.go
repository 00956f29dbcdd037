package activity

import (
	"net/http"
	"net/url"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// Destination says where a command goes, without its secrets: which of them
// have one, is the target of an attempt's health. A request is known by method,
// host and path; of the path, what the definition fills in stands as {name},
// and where the definition does not tell, what looks like an id as {}.
func (p *Performer) Destination(c engine.Command) engine.Destination {
	switch {
	case c.Target == engine.TargetEvent || c.Target == engine.TargetLifecycle:
		if p.config.Sink == nil || p.function(engine.TargetEvent) != nil {
			return engine.Destination{Target: engine.TargetEvent}
		}
		return requestTo(http.MethodPost, p.config.Sink, "")
	case c.Target != TargetHTTP || p.function(c.Target) != nil:
		return engine.Destination{Target: c.Target}
	}
	var call struct {
		Method string `json:"method"`
		URI    string `json:"uri"`
		Path   string `json:"path"`
	}
	if err := jsonv2.Unmarshal(c.Input, &call); err != nil {
		return engine.Destination{Target: c.Target} // a wrong input is told by who performs it
	}
	u, err := url.Parse(call.URI)
	if err != nil || u.Host == "" {
		return engine.Destination{Target: c.Target}
	}
	if call.Method == "" {
		call.Method = http.MethodGet
	}
	return requestTo(strings.ToUpper(call.Method), u, call.Path)
}

// maxDestination bounds the name of a destination; the rest of a longer one is
// cut.
const maxDestination = 256

func requestTo(method string, u *url.URL, path string) engine.Destination {
	if path == "" {
		path = templated(u.EscapedPath())
	}
	host := strings.ToLower(u.Host)
	name := strings.ToValidUTF8(method+" "+host+path, "")
	return engine.Destination{Target: strings.ToValidUTF8(name[:min(len(name), maxDestination)], ""), Host: host}
}

// A segment of a path is taken for an id when it is long, or has many digits.
const (
	idBytes  = 32
	idDigits = 3
)

// templated is a path without the ids in it.
func templated(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		digits := 0
		for _, b := range []byte(s) {
			if b >= '0' && b <= '9' {
				digits++
			}
		}
		if digits >= idDigits || len(s) > idBytes || digits > 0 && digits == len(s) {
			segments[i] = "{}"
		}
	}
	return strings.Join(segments, "/")
}
