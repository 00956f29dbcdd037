package pieces

import (
	"container/list"
	"embed"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
)

// Statements are those by which pieces are written.
//
//go:embed query/*.sql
var Statements embed.FS

// Memory keeps how documents were cut that were written last, so that their next
// versions are cut along them. It is bounded by the bytes of the pieces. One goroutine
// uses it, who writes.
type Memory struct {
	max   int
	size  int
	order *list.List // front = used last
	byID  map[string]*list.Element
	next  Next
}

// kept is a version that was written, but for its rest.
type kept struct {
	id       string
	document *document
	version  int64
	sum      int64
	bytes    int
}

// NewMemory makes a memory of so many bytes.
func NewMemory(max int) *Memory {
	return &Memory{max: max, order: list.New(), byID: map[string]*list.Element{}}
}

// Next is a version of a document that is written over the one before. The row of that
// is as expected: it has a checksum, and pieces that are known, or none. Where it is not,
// Anew is the way. It is good until the next one.
type Next struct {
	Rest     []byte
	Layout   any // for the row; nil = there are no pieces
	Expected any // checksum of the row before, or withoutPieces; nil = it is however it is

	memory *Memory
	id     string
	doc    []byte
	sum    int64
	now    *document
	change change
}

// withoutPieces is no checksum: the row has no pieces.
const withoutPieces = int64(-1)

// Next cuts a document with a checksum along the version before, 0 = there is none. It
// refuses one that SQLite would not read.
func (m *Memory) Next(id string, before int64, doc []byte, sum int64) (*Next, error) {
	n := &m.next
	*n = Next{Expected: withoutPieces, memory: m, id: id, doc: doc, sum: sum}
	if e, ok := m.byID[id]; !ok || e.Value.(*kept).version != before {
		n.cut(nil)
	} else if v := e.Value.(*kept); v.document.next > maxPieces-maxCuts { // the numbers begin anew
		n.Anew()
	} else {
		n.Expected = v.sum
		n.cut(v.document)
	}
	err := conn.Readable(n.Rest, n.now.Depth())
	if err != nil && n.now.Depth() > 0 { // what is deepest may be elsewhere
		err = conn.Readable(doc, 0)
	}
	return n, err
}

// Anew cuts the document as if there were no version before: whatever pieces that has
// are written over.
func (n *Next) Anew() {
	n.Expected = nil
	n.cut(nil)
}

func (n *Next) cut(before *document) {
	n.now, n.change = cutDocument(n.doc, before)
	n.Rest, n.Layout = n.now.Rest, conn.Text(n.now.Layout())
}

// Written writes, behind the row with a number, what has changed of the pieces.
func (n *Next) Written(no, version int64, exec func(statement string, args ...any) (id, changed int64, err error)) (err error) {
	if n.Expected == nil {
		_, _, err = exec("pieces_delete", no*maxPieces, (no+1)*maxPieces)
	}
	for i := 0; i < len(n.change.Gone) && err == nil; i++ {
		_, _, err = exec("pieces_delete", no*maxPieces+n.change.Gone[i], no*maxPieces+n.change.Gone[i]+1)
	}
	for i := 0; i < len(n.change.Fresh) && err == nil; i++ {
		_, _, err = exec("piece_insert", no*maxPieces+n.change.Fresh[i].No, n.change.Fresh[i].Body)
	}
	n.memory.put(&kept{id: n.id, document: n.now, version: version, sum: n.sum, bytes: n.now.bytes()})
	return err
}

// put keeps a version; one without pieces needs no memory.
func (m *Memory) put(v *kept) {
	if e, ok := m.byID[v.id]; ok {
		m.remove(e)
	}
	if v.bytes == 0 {
		return
	}
	v.document.Rest = nil
	m.size += v.bytes
	m.byID[v.id] = m.order.PushFront(v)
	for m.size > m.max {
		m.remove(m.order.Back())
	}
}

// Forget drops all: what was written may not be there.
func (m *Memory) Forget() { *m = *NewMemory(m.max) }

func (m *Memory) remove(e *list.Element) {
	v := m.order.Remove(e).(*kept)
	delete(m.byID, v.id)
	m.size -= v.bytes
}
