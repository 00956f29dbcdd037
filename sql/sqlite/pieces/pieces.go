// Package pieces cuts documents, so that what is large in one and stays as it was is
// written once.
//
// A document is JSON. What is inside of a large object, list or text is cut out and
// kept as a piece; the rest is JSON still, where these are empty. The next version of a
// document is cut along the one before: what is equal to a piece, byte for byte, refers
// to it, and of a list whose first elements are gone the end of the piece is taken.
package pieces

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
)

const (
	// minPiece is how many bytes a piece has at least: two pages of a database.
	minPiece = 8 << 10
	// maxPieces bounds the numbers of pieces that a document has had. Beyond it, it is cut anew.
	maxPieces = 1 << 20
	// maxCuts bounds the cuts of a document; what is large beyond them stays in the rest.
	maxCuts = 64
)

// piece is what was cut out, by a number that is used once for a document.
type piece struct {
	No    int64
	Body  []byte
	depth int // of the objects and lists in it
}

// document is a version of a document, cut.
type document struct {
	Rest   []byte // it shares memory with the document, if it has no cuts
	cuts   []cut
	pieces []piece
	next   int64
}

// cut is bytes of the rest, and what of a piece follows them.
type cut struct {
	rest   int
	piece  int // of pieces
	from   int
	bytes  int
	anchor string // what is before it in the document: the end of a name, and what opens the value; "" = another value
}

// change is what of a document's pieces is to be written.
type change struct {
	Fresh []piece
	Gone  []int64
}

// cutDocument cuts a document along the version before, nil = there is none. It keeps no
// memory of the document but that of a rest without cuts.
func cutDocument(doc []byte, before *document) (*document, change) {
	return cutAt(doc, before, minPiece)
}

func cutAt(doc []byte, before *document, least int) (*document, change) {
	if len(doc) < least && (before == nil || len(before.cuts) == 0) {
		return &document{Rest: doc}, change{}
	}
	c, known := cutter{doc: doc, least: least, now: &document{}}, 0
	if before != nil {
		c.now.pieces, c.now.next = append([]piece(nil), before.pieces...), before.next
		known = len(before.pieces)
		for i := range before.cuts {
			c.follow(&before.cuts[i])
		}
	}
	c.gap(len(doc))
	return c.now, c.finish(known)
}

// Layout says how the document is put together: a list of the bytes of the rest, the
// number of a piece, where in it, and how many of its bytes follow. "" = it is the rest.
func (d *document) Layout() string {
	if len(d.cuts) == 0 {
		return ""
	}
	b, at := []byte{'['}, 0
	for i := range d.cuts {
		c := &d.cuts[i]
		b = numbers(b, at, c.rest, int(d.pieces[c.piece].No), c.from, c.bytes)
		b, at = append(b, ','), at+c.rest
	}
	return string(append(numbers(b, at, len(d.Rest)-at), ']'))
}

func numbers(b []byte, list ...int) []byte {
	for i, n := range list {
		b = strconv.AppendInt(append(b, "[,"[min(i, 1)]), int64(n), 10)
	}
	return append(b, ']')
}

// Depth is how deep objects and lists are nested in the deepest piece.
func (d *document) Depth() (deepest int) {
	for i := range d.pieces {
		deepest = max(deepest, d.pieces[i].depth)
	}
	return deepest
}

// bytes is the memory that a document keeps.
func (d *document) bytes() int {
	n := 0
	for i := range d.pieces {
		n += len(d.pieces[i].Body)
	}
	return n
}

type cutter struct {
	doc   []byte
	least int // bytes of a piece
	now   *document
	at    int   // up to here the document is cut
	stack []int // values that are open, by where they begin; -1-begin where something in them is large
}

// finish drops the pieces that no cut refers to any more.
func (c *cutter) finish(known int) (did change) {
	d := c.now
	used := make([]bool, len(d.pieces))
	for _, x := range d.cuts {
		used[x.piece] = true
	}
	if len(d.cuts) == 0 {
		d.Rest = c.doc
	} else {
		d.Rest = append(d.Rest, c.doc[c.at:]...)
	}
	at, kept := make([]int, len(d.pieces)), d.pieces[:0:0]
	for i, p := range d.pieces {
		if at[i] = len(kept); used[i] {
			kept = append(kept, p)
		}
		switch {
		case i >= known:
			did.Fresh = append(did.Fresh, p)
		case !used[i]:
			did.Gone = append(did.Gone, p.No)
		}
	}
	for i := range d.cuts {
		d.cuts[i].piece = at[d.cuts[i].piece]
	}
	d.pieces = kept
	return did
}

// How far from where a value is expected it is looked for, and how often.
const (
	window = 64 << 10
	tries  = 4
	lead   = 24 // bytes by which the first element of a list is found that is left
)

// follow finds what a cut of the version before was of, where it is still there.
func (c *cutter) follow(was *cut) {
	if was.anchor == "" || len(c.now.cuts) == maxCuts {
		return
	}
	body := c.now.pieces[was.piece].Body
	at := c.from()
	for range tries {
		i := bytes.Index(c.doc[at:min(at+window, len(c.doc))], []byte(was.anchor))
		if i < 0 {
			return
		}
		at += i + len(was.anchor)
		if from, ok := c.match(at, body, was.from); ok {
			c.gap(at - 1)
			c.cut(cut{piece: was.piece, from: from, bytes: len(body) - from, anchor: was.anchor}, at)
			return
		}
	}
}

// from is where the next value may begin: a cut ends inside of one.
func (c *cutter) from() int {
	if c.at > 0 {
		return c.at + 1
	}
	return 0
}

// match says from where on a piece is what is inside of the value that begins before a byte.
func (c *cutter) match(at int, body []byte, from int) (int, bool) {
	closing := closes[c.doc[at-1]]
	inside := func(from int) bool {
		rest := body[from:]
		return len(c.doc)-at > len(rest) && c.doc[at+len(rest)] == closing && bytes.Equal(c.doc[at:at+len(rest)], rest)
	}
	if len(body)-from < c.least {
		return 0, false
	}
	if inside(from) {
		return from, true
	}
	if closing != ']' || len(c.doc)-at < max(c.least, lead) {
		return 0, false
	}
	// Of a list, the first elements may be gone.
	for next, n := from, 0; n < tries; n++ {
		i := bytes.Index(body[next:min(next+window, len(body))], c.doc[at:at+lead])
		if i < 0 {
			return 0, false
		}
		if next += i; next > from && body[next-1] == ',' && len(body)-next >= c.least {
			if _, whole := elements(body[from : next-1]); whole && inside(next) {
				return next, true
			}
		}
		next++
	}
	return 0, false
}

// closes says what closes the value that a byte opens.
var closes = [256]byte{'[': ']', '{': '}', '"': '"'}

// elements reports whether bytes from the beginning of an element are whole elements,
// and how deep they are nested.
func elements(b []byte) (deepest int, whole bool) {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			if i = conn.TextEnd(b, i+1); i == len(b) {
				return deepest, false
			}
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ']', '}':
			if depth--; depth < 0 {
				return deepest, false
			}
		}
	}
	return deepest, depth == 0
}

// gap cuts what is large between the last cut and a byte, which is inside of no text.
func (c *cutter) gap(end int) {
	if end-c.at < c.least {
		return
	}
	c.stack = c.stack[:0]
	doc := c.doc[:end]
	for i := c.from(); i < len(doc) && len(c.now.cuts) < maxCuts; i++ {
		switch doc[i] {
		case '"':
			from := i + 1
			if i = conn.TextEnd(doc, from); i < len(doc) && i-from >= c.least {
				c.large(from, i)
			}
		case '[', '{':
			c.stack = append(c.stack, i)
		case ']', '}':
			if len(c.stack) == 0 { // it began before the gap
				continue
			}
			open := c.stack[len(c.stack)-1]
			if c.stack = c.stack[:len(c.stack)-1]; open >= 0 && i-open > c.least {
				c.large(open+1, i)
			}
		}
	}
}

// large cuts out what is inside of a value, and notes that those around it have it.
func (c *cutter) large(from, to int) {
	for i := len(c.stack) - 1; i >= 0 && c.stack[i] >= 0; i-- {
		c.stack[i] = -1 - c.stack[i]
	}
	body := c.doc[from:to]
	no := slices.IndexFunc(c.now.pieces, func(p piece) bool { return bytes.Equal(p.Body, body) })
	if no < 0 {
		p := piece{No: c.now.next, Body: bytes.Clone(body)}
		if c.doc[from-1] != '"' {
			p.depth, _ = elements(body)
		}
		no = len(c.now.pieces)
		c.now.pieces = append(c.now.pieces, p)
		c.now.next++
	}
	c.cut(cut{piece: no, bytes: len(body), anchor: anchor(c.doc[:from])}, from)
}

func (c *cutter) cut(x cut, at int) {
	x.rest = at - c.at
	c.now.Rest = append(c.now.Rest, c.doc[c.at:at]...)
	c.now.cuts = append(c.now.cuts, x)
	c.at = at + x.bytes
}

// anchor is by what a value is found again: the end of its name, and what opens it. A
// quote behind a letter ends a text, and what a colon follows is a name: wherever such
// bytes are, what comes behind them is a value.
func anchor(before []byte) string {
	const behind, most = len(`":[`), 16
	n := len(before) - behind
	if n < 1 || !wordByte(before[n-1]) || before[n] != '"' || before[n+1] != ':' {
		return ""
	}
	return string(before[max(bytes.LastIndexByte(before[:n], '"'), n+behind-most, 0):])
}

func wordByte(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '_'
}
