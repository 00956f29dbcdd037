package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// What others have written (names, keys, errors, documents) may hold characters that move
// the cursor of a terminal, change its title or type for its user. None leaves the program
// as it is: it is shown as JSON would escape it, so that what is JSON stays the same JSON.

// control reports whether a terminal obeys a character instead of showing it.
func control(r rune) bool {
	switch {
	case r < ' ' || r >= 0x7f && r <= 0x9f:
		return true
	case r == 0x61c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069: // order of writing
		return true
	}
	return r == 0x2028 || r == 0x2029
}

// oneLine is a text without breaks of lines, whose control characters can be seen.
func oneLine(s string) string {
	if !strings.ContainsFunc(s, control) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteByte(' ')
		case control(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// ownLines is a text of which no line looks as one of ours, a hint say: names in it are others'.
func ownLines(s string) string { return strings.ReplaceAll(s, "\n", "\n  ") }

// terminal is where the program prints: lines and tabs go through, other control
// characters are escaped.
type terminal struct {
	to io.Writer

	mu   sync.Mutex
	rest []byte // of a character, or a \r, whose end has not come yet
}

// Write implements io.Writer.
func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	in := p
	if len(t.rest) > 0 {
		in = append(t.rest, p...)
	}
	out, rest := escape(make([]byte, 0, len(in)), in, false)
	t.rest = append([]byte(nil), rest...)
	if _, err := t.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// end writes what was kept of a character that has no end.
func (t *terminal) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if out, _ := escape(nil, t.rest, true); len(out) > 0 {
		_, _ = t.to.Write(out) // nobody is left to be told
	}
	t.rest = nil
}

// escape appends a text to out, and returns what has to wait for what follows it.
func escape(out, in []byte, last bool) (_, rest []byte) {
	for len(in) > 0 {
		r, n := utf8.DecodeRune(in)
		switch {
		case !last && (!utf8.FullRune(in) || r == '\r' && len(in) == 1):
			return out, in
		case r == utf8.RuneError && n == 1:
			out = fmt.Appendf(out, `\x%02x`, in[0])
		case r == '\n' || r == '\t' || r == '\r' && len(in) > 1 && in[1] == '\n':
			out = append(out, byte(r))
		case control(r):
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = append(out, in[:n]...)
		}
		in = in[n:]
	}
	return out, nil
}
