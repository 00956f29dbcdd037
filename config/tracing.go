package config

import "net/url"

// checkTracing finds what is wrong with where spans are sent.
func checkTracing(t Tracing) (key, code, detail, hint string) {
	if t.Endpoint == "" {
		if t.HeadersFile != "" {
			return "tracing.headers-file", "config.needs", "needs tracing.endpoint", "set it, or leave the headers out"
		}
		return "", "", "", ""
	}
	u, err := url.Parse(t.Endpoint)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "tracing.endpoint", "config.url", "is not an http or https URL", "write http://HOST:4318"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "tracing.endpoint", "config.url", "has more than a host and a path", "write credentials as a header into tracing.headers-file"
	case t.Service == "":
		return "tracing.service", "config.needs", "is empty: a receiver finds spans by it", "leave it out, or write a name"
	}
	return "", "", "", ""
}
