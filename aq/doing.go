package aq

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/godror/godror"
)

// Bytes that the database shows of who works, and at what; more is cut off. Of the
// module and the action every release keeps as many.
const (
	maxClient = 64
	maxModule = 48
	maxAction = 32
	traceSize = 55 // of a traceparent, which is not cut: databases of today keep 64 bytes
)

// Doing says what the calls under a context work at: MODULE and ACTION of the
// session in V$SESSION, ASH and AWR. The names travel with the next call, so they
// cost no round trip, and stay until a call has others.
func Doing(ctx context.Context, module, action string) context.Context {
	most := maxAction
	if len(action) == traceSize && strings.HasPrefix(action, "00-") {
		most = traceSize
	}
	return godror.ContextWithTraceTag(ctx, godror.TraceTag{Module: cut(module, maxModule), Action: cut(action, most)})
}

// cut keeps whole characters in n bytes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
