package activity

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// whole has a text looked for, and its forms in encodings that the search does
// not undo, unless it is shorter than least.
func (s *secrecy) whole(text string, least int) {
	if len(text) < least || s.seen[text] {
		return
	}
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	s.seen[text] = true
	s.needle(text)
	if len(text) < minPart {
		return
	}
	for _, between := range []string{":", " "} { // as dumps of bytes are written
		s.needle(inHex(text, between))
	}
	// The escaped forms are undone by the search; inside of base64 and hex they
	// are not, so each form has its own there.
	escaped := map[string]bool{text: true, quoted(text): true, inner(strconv.Quote(text)): true,
		inner(strconv.QuoteToASCII(text)): true, inner(string(encode(text))): true,
		url.QueryEscape(text): true, url.PathEscape(text): true, html.EscapeString(text): true}
	for form := range escaped {
		s.needle(hex.EncodeToString([]byte(form)))
		for shift := range 3 {
			s.needle(inBase64(base64.RawStdEncoding, form, shift))
			s.needle(inBase64(base64.RawURLEncoding, form, shift))
		}
	}
}

// inHex is a text in hex with something between the bytes.
func inHex(text, between string) string {
	pairs := make([]string, len(text))
	for i := range len(text) {
		pairs[i] = hex.EncodeToString([]byte{text[i]})
	}
	return strings.Join(pairs, between)
}

// quoted is a text inside of a string of JSON that escapes no more than it must.
func quoted(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string cannot fail
	return inner(strings.TrimSuffix(b.String(), "\n"))
}

// inner is a string without its quotes.
func inner(quoted string) string { return quoted[1 : len(quoted)-1] }

// inBase64 is what is certain of a text in base64 that begins after so many
// other bytes: characters that it shares with its neighbours are left out.
func inBase64(e *base64.Encoding, text string, shift int) string {
	coded := e.EncodeToString(append(make([]byte, shift), text...))
	return coded[(shift*8+5)/6 : (shift+len(text))*8/6]
}

func (s *secrecy) needle(text string) {
	n := fold([]byte(text))
	for _, i := range s.first[n[0]] {
		if bytes.Equal(s.needles[i], n) {
			return
		}
	}
	s.first[n[0]] = append(s.first[n[0]], len(s.needles))
	s.needles = append(s.needles, n)
}

// fold makes ASCII letters small: servers change the case of what they quote.
func fold(b []byte) []byte {
	b = slices.Clone(b)
	for i, c := range b {
		b[i] = lower(c)
	}
	return b
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
