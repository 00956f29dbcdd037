package activity

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// Limits of the search for secrets. A shorter one would be found everywhere.
const (
	minSecret = 4 // bytes of a whole secret that is searched for
	minPart   = 6 // bytes of a part of one, or of one in another encoding
	maxLayers = 3 // encodings on top of each other that are undone

	// maxSteps bounds one search. A text that takes more is made to, and is taken
	// for a secret as a whole.
	maxSteps = 1_000_000

	stepBytes = 64 // of a layer that was decoded, as a step
)

// open are the fields of an authentication policy that are not secret, also
// where the policy as a whole is read from a secret.
var open = []string{"authority", "grant", "endpoints", "request", "scopes", "issuers", "audiences", "type", "authentication"}

// secrecy collects what must not leave an attempt, and takes it out of what
// does. Several goroutines may use it.
type secrecy struct {
	mu      sync.Mutex
	seen    map[string]bool // without the forms that are made of them
	needles [][]byte        // folded, with the forms
	first   [256][]int      // needles by their first byte
	steps   int             // of the search under way
}

// add remembers secrets and their forms. Text of several lines is also looked
// for line by line.
func (s *secrecy) add(texts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range texts {
		s.whole(t, minSecret)
		for line := range strings.SplitSeq(t, "\n") {
			s.whole(strings.TrimSpace(line), minPart)
		}
	}
}

// addValue remembers every text and number in a secret, as far as its field is
// secret: without all, fields of a policy that are none stay readable.
func (s *secrecy) addValue(v any, all bool) {
	switch v := v.(type) {
	case string:
		s.add(v)
	case json.Number:
		s.add(v.String())
	case []any:
		for _, x := range v {
			s.addValue(x, all)
		}
	case map[string]any:
		for k, x := range v {
			if all || !slices.Contains(open, k) {
				s.addValue(x, all)
			}
		}
	}
}

// text takes the secrets out of a text, in whatever encoding they stand there.
func (s *secrecy) text(t string) string { return string(s.bytes([]byte(t))) }

func (s *secrecy) bytes(t []byte) []byte {
	found := s.ranges(t)
	if len(found) == 0 {
		return t
	}
	var out []byte
	end := 0
	for _, r := range found {
		if r[0] >= end {
			out = append(append(out, t[end:r[0]]...), shownSecret...)
		}
		end = max(end, r[1])
	}
	return append(out, t[end:]...)
}

// holds reports whether a secret stands in a text.
func (s *secrecy) holds(t string) bool { return len(s.ranges([]byte(t))) > 0 }

// value takes the secrets out of a JSON value. It stays as it is, byte for
// byte, when there is none in it.
func (s *secrecy) value(raw json.RawMessage) json.RawMessage {
	if len(s.ranges(raw)) == 0 {
		return raw
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) == nil {
		if clean := encode(s.inside(v)); len(s.ranges(clean)) == 0 {
			return clean
		}
	}
	return encode(shownSecret) // across the parts of the value
}

func (s *secrecy) inside(v any) any {
	switch v := v.(type) {
	case string:
		return s.text(v)
	case json.Number:
		if s.holds(v.String()) {
			return shownSecret
		}
	case []any:
		for i, x := range v {
			v[i] = s.inside(x)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[s.text(k)] = s.inside(x)
		}
		return out
	}
	return v
}

// failure takes the secrets out of a failure. The given one is not changed:
// those who wait for the same token share it.
func (s *secrecy) failure(f *engine.Failure) *engine.Failure {
	if f == nil {
		return nil
	}
	clean := *f
	clean.Error.Type, clean.Error.Title, clean.Error.Detail = s.text(f.Error.Type), s.text(f.Error.Title), s.text(f.Error.Detail)
	clean.Error.Instance = s.text(f.Error.Instance)
	return &clean
}

// ranges finds the secrets in a text, in order. It looks at the text as it
// stands, and again with one and two encodings taken off.
func (s *secrecy) ranges(t []byte) [][2]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.needles) == 0 {
		return nil
	}
	s.steps = 0
	found := s.search(t, nil, maxLayers-1)
	if s.steps > maxSteps {
		return [][2]int{{0, len(t)}}
	}
	sort.Slice(found, func(a, b int) bool { return found[a][0] < found[b][0] })
	return found
}

// search looks at a layer of a text, and below it. At says where each byte of
// the layer stands in the text; nil = at the same place.
func (s *secrecy) search(layer []byte, at []int32, below int) (found [][2]int) {
	for i := 0; i < len(layer) && s.steps <= maxSteps; i++ {
		end := s.match(layer, i)
		if end < 0 {
			continue
		}
		r := [2]int{i, end}
		if at != nil {
			r = [2]int{int(at[i]), int(at[end])}
		}
		found = append(found, r)
		i = end - 1
	}
	for _, kind := range []byte(`%\&`) {
		if below == 0 || bytes.IndexByte(layer, kind) < 0 {
			continue
		}
		if next, places, changed := decoded(layer, at, kind); changed {
			found = append(found, s.search(next, places, below-1)...)
		}
	}
	for i := range coders {
		c := &coders[i]
		for shift := 0; below > 0 && shift < c.group && s.steps <= maxSteps; shift++ {
			next, places := c.runs(layer, at, shift)
			s.steps += len(next) / stepBytes
			found = append(found, s.search(next, places, below-1)...)
		}
	}
	return found
}

// coder is an encoding of bytes in groups of characters.
type coder struct {
	group  int       // characters
	bytes  int       // that they are
	symbol [256]byte // for each character; 0 = it is none
	decode func(dst, src []byte) (int, error)
}

var coders = []coder{
	{2, 1, symbols("0123456789abcdef", "ABCDEF", "abcdef"), hex.Decode},
	{4, 3, symbols("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "-_", "+/"), base64.RawStdEncoding.Decode},
}

// symbols is what stands for a character in an alphabet, and for those of
// another spelling; 0 = nothing.
func symbols(alphabet, other, same string) (to [256]byte) {
	for i := range len(alphabet) {
		to[alphabet[i]] = alphabet[i]
	}
	for i := range len(other) {
		to[other[i]] = same[i]
	}
	return to
}

// runs decodes what may be encoded in a text, one after the other with a byte
// between them. What is encoded may begin shift characters before the end of a
// group. Lines may be folded.
func (c *coder) runs(t []byte, at []int32, shift int) (out []byte, places []int32) {
	place := func(i int) int32 {
		if at == nil {
			return int32(i)
		}
		return at[i]
	}
	var run []byte
	var from []int // where its characters stand
	flush := func(end int) {
		n := len(run) - shift
		if n%c.group == 1 {
			n-- // no byte ends there
		}
		if size := n * c.bytes / c.group; size >= minPart {
			begin := len(out)
			out = append(out, make([]byte, size+1)...)
			_, _ = c.decode(out[begin:], run[shift:shift+n]) // characters of the alphabet only
			for i := range size {
				places = append(places, place(from[shift+i*c.group/c.bytes]))
			}
			places = append(places, place(end))
		}
		run, from = run[:0], from[:0]
	}
	for i, ch := range t {
		switch l := c.symbol[ch]; {
		case l != 0:
			run, from = append(run, l), append(from, i)
		case len(run) > 0 && (ch == '\n' || ch == '\r'):
		default:
			flush(i)
		}
	}
	flush(len(t))
	return out, append(places, place(len(t)))
}

// match returns where the longest secret ends that begins at a place, or -1.
func (s *secrecy) match(t []byte, i int) int {
	end := -1
	try := func(first byte) {
		for _, n := range s.first[lower(first)] {
			end = max(end, s.walk(t, i, s.needles[n]))
		}
	}
	try(t[i])
	if t[i] == '+' {
		try(' ')
	}
	if c, _ := unescape(t[i:]); len(c) > 0 {
		try(c[0])
	}
	return end
}

// step is a place in a text, and how much of a secret stands before it.
type step struct{ at, done int }

// walk returns where a secret ends that begins at a place of a text, or -1.
// Each of its bytes may stand there as it is or escaped, and lines may be
// folded. Ways that led nowhere are remembered.
func (s *secrecy) walk(t []byte, i int, needle []byte) int {
	ways := []step{{i, 0}}
	var been map[step]bool
	for len(ways) > 0 && s.steps <= maxSteps {
		w := ways[len(ways)-1]
		ways = ways[:len(ways)-1]
		for {
			if w.done == len(needle) {
				return w.at
			}
			if w.at == len(t) {
				break
			}
			c := t[w.at]
			same := lower(c) == needle[w.done]
			if c == '%' || c == '\\' || c == '&' || c == '+' || c == '\n' || c == '\r' {
				if been[w] {
					break
				}
				if been == nil {
					been = map[step]bool{}
				}
				been[w] = true
				s.steps++
				ways = append(ways, escapes(t, w, needle)...)
			}
			if !same {
				break
			}
			w.at, w.done = w.at+1, w.done+1
			if w.done > minPart {
				s.steps++ // a text that looks like the secret for long
			}
		}
	}
	return -1
}

// escapes are the steps from a place by what is not the byte itself.
func escapes(t []byte, w step, needle []byte) []step {
	var ways []step
	c, width := t[w.at:w.at+1], 1
	if c[0] == '+' {
		c = []byte(" ")
	} else if value, n := unescape(t[w.at:]); n > 0 {
		c, width = value, n
	}
	if bytes.HasPrefix(needle[w.done:], fold(c)) {
		ways = append(ways, step{w.at + width, w.done + len(c)})
	} else if w.done > 0 && (c[0] == '\n' || c[0] == '\r') {
		ways = append(ways, step{w.at + width, w.done})
	}
	return ways
}

// decoded takes one encoding off a text: the one whose escapes begin with kind.
func decoded(t []byte, at []int32, kind byte) (out []byte, places []int32, changed bool) {
	out, places = make([]byte, 0, len(t)), make([]int32, 0, len(t)+1)
	place := func(i int) int32 {
		if at == nil {
			return int32(i)
		}
		return at[i]
	}
	for i := 0; i < len(t); {
		value, n := t[i:i+1], 1
		if t[i] == kind {
			if v, escaped := unescape(t[i:]); escaped > 0 {
				value, n, changed = v, escaped, true
			}
		}
		for range value {
			places = append(places, place(i))
		}
		out = append(out, value...)
		i += n
	}
	return out, append(places, place(len(t))), changed
}

// plainEscapes are those of one letter after a backslash.
var plainEscapes = map[byte]string{
	'n': "\n", 'r': "\r", 't': "\t", 'b': "\b", 'f': "\f", 'a': "\a", 'v': "\v", '"': `"`, '\\': `\`, '/': "/", '\'': "'",
}

// unescape reads the escape that a text begins with: of URLs, of strings of
// JSON, Go and C, or of HTML; n is its length, 0 when there is none.
func unescape(t []byte) (value []byte, n int) {
	if len(t) < 2 {
		return nil, 0
	}
	switch t[0] {
	case '%':
		return hexByte(t, 1)
	case '&':
		i := bytes.IndexByte(t[:min(len(t), 12)], ';')
		if i < 0 {
			return nil, 0
		}
		if text := html.UnescapeString(string(t[:i+1])); text != string(t[:i+1]) {
			return []byte(text), i + 1
		}
	case '\\':
		if text, ok := plainEscapes[t[1]]; ok {
			return []byte(text), 2
		}
		switch t[1] {
		case '0', '1', '2', '3':
			return octalByte(t)
		case 'x':
			return hexByte(t, 2)
		case 'u':
			return hexRune(t, 4)
		case 'U':
			return hexRune(t, 8)
		}
	}
	return nil, 0
}

// octalByte reads a backslash and up to three digits.
func octalByte(t []byte) ([]byte, int) {
	b, n := 0, 1
	for n < min(4, len(t)) && '0' <= t[n] && t[n] <= '7' {
		b, n = b<<3|int(t[n]-'0'), n+1
	}
	return []byte{byte(b)}, n
}

func hexByte(t []byte, from int) ([]byte, int) {
	if len(t) < from+2 {
		return nil, 0
	}
	b, err := strconv.ParseUint(string(t[from:from+2]), 16, 8)
	if err != nil {
		return nil, 0
	}
	return []byte{byte(b)}, from + 2
}

// hexRune reads a backslash, a letter and so many digits, or a pair of them.
func hexRune(t []byte, digits int) ([]byte, int) {
	read := func(t []byte) rune {
		if len(t) < 2+digits || t[0] != '\\' {
			return -1
		}
		r, err := strconv.ParseUint(string(t[2:2+digits]), 16, 31)
		if err != nil {
			return -1
		}
		return rune(r)
	}
	r, n := read(t), 2+digits
	if r < 0 {
		return nil, 0
	}
	if utf16.IsSurrogate(r) && len(t) >= 2*n && t[n+1] == t[1] {
		if pair := utf16.DecodeRune(r, read(t[n:])); pair != utf8.RuneError {
			r, n = pair, 2*n
		}
	}
	return utf8.AppendRune(nil, r), n
}
