package openworkflow

import (
	"regexp"
	"strconv"
	"strings"
)

// address is an absolute HTTP URI in its parts. The package is pure and does
// without net/url.
type address struct{ scheme, host, path, query string }

var absolute = regexp.MustCompile(`^(?i:(https?))://([^/?#\s@]+)([^?#\s]*)(\?[^#\s]*)?(#\S*)?$`)

// parseAddress reads an absolute HTTP URI; its fragment is dropped.
func parseAddress(s string) (a address, ok bool) {
	m := absolute.FindStringSubmatch(s)
	if m == nil {
		return a, false
	}
	return address{scheme: strings.ToLower(m[1]), host: m[2], path: m[3], query: m[4]}, true
}

func (a address) String() string { return a.scheme + "://" + a.host + a.path + a.query }

// resolve gives what a reference in the document at a leads to.
func (a address) resolve(ref string) (address, bool) {
	switch {
	case strings.HasPrefix(ref, "//"):
		return parseAddress(a.scheme + ":" + ref)
	case strings.HasPrefix(ref, "/"):
		return parseAddress(a.scheme + "://" + a.host + ref)
	case scheme.MatchString(ref):
		return parseAddress(ref)
	}
	path := a.path[:strings.LastIndexByte(a.path, '/')+1]
	if path == "" {
		path = "/"
	}
	for {
		if rest, ok := strings.CutPrefix(ref, "./"); ok {
			ref = rest
		} else if rest, ok := strings.CutPrefix(ref, "../"); ok {
			ref = rest
			path = path[:strings.LastIndexByte(strings.TrimSuffix(path, "/"), '/')+1]
			if path == "" {
				path = "/"
			}
		} else {
			break
		}
	}
	return parseAddress(a.scheme + "://" + a.host + path + ref)
}

var escaped = regexp.MustCompile(`%[0-9a-fA-F]{2}`)

// unescaped replaces %41 by A.
func unescaped(s string) string {
	return escaped.ReplaceAllStringFunc(s, func(m string) string {
		n, _ := strconv.ParseUint(m[1:], 16, 8)
		return string([]byte{byte(n)})
	})
}
