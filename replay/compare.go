package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// compareEntries holds what a decision has come to, to the entries that are stored.
func (p *player) compareEntries(group []row, out *engine.Outcome) bool {
	rows, err := projections.Fold(nil, out, "", func(*engine.Entry) (string, int) { return "", 0 })
	if err != nil {
		p.differs(group[0], "", "", "")
		p.found.Why = "the turn was written, and cannot be written again: " + err.Error()
		return false
	}
	for i, x := range group {
		if i == len(rows.Stream) {
			if x.meta.Version > 0 { // another decision, which says nothing of what it was made on
				p.unverifiable(x.Position, "an engine that does not record what it decides on has made the turn")
				return false
			}
			p.differs(group[0], "", "", "")
			p.found.Position, p.found.Path, p.found.Stored, p.found.Replayed = x.Position, "TYPE", x.Type, "no entry"
			return false
		}
		if path, stored, replayed := entryDiffers(&x.Entry, &rows.Stream[i]); path != "" {
			p.differs(group[0], path, stored, replayed)
			p.found.Position = x.Position
			return false
		}
	}
	if n := len(group); n < len(rows.Stream) {
		p.differs(group[0], "TYPE", "no entry", rows.Stream[n].Type)
		p.found.Position = rows.Stream[n].Position
		return false
	}
	return true
}

// entryDiffers compares an entry with what it is made again to. What becomes of a
// command later is no part of it.
func entryDiffers(stored, again *projections.Entry) (path, was, is string) {
	for _, c := range []struct{ column, stored, again string }{
		{"POSITION", strconv.FormatInt(stored.Position, 10), strconv.FormatInt(again.Position, 10)},
		{"TYPE", stored.Type, again.Type},
		{"KIND", stored.Kind, again.Kind},
		{"DIRECTION", stored.Direction, again.Direction},
		{"SIGNAL_ID", stored.SignalID, again.SignalID},
		{"CREATED_ON_UTC", moment(stored.CreatedAt), moment(again.CreatedAt)},
	} {
		if c.stored != c.again {
			return c.column, c.stored, c.again
		}
	}
	if path, was, is = differ(stored.Data, again.Data, lineage(again.Type)); path != "" {
		return "DATA" + path, was, is
	}
	if path, was, is = differ(stored.Metadata, again.Metadata, map[string]bool{"/basis/rules": true}); path != "" {
		return "METADATA" + path, was, is
	}
	return "", "", ""
}

// lineage is what a node adds to an event that an instance publishes: which
// definitions have led to it.
func lineage(entry string) map[string]bool {
	if entry == engine.EntryEmitted || entry == engine.EntryLifecycle {
		return map[string]bool{"/headers": true}
	}
	return nil
}

// compareSnapshot holds what the last turn has left to the snapshot that is stored.
func (p *player) compareSnapshot(stored []byte) {
	again, err := p.snap.Encode()
	last := row{Entry: projections.Entry{Position: p.found.Through}}
	if err != nil {
		p.differs(last, "snapshot", "", err.Error())
		return
	}
	if _, err := snapshot.Decode(stored); problem.CodeOf(err) == "snapshot.newer" {
		p.unverifiable(p.found.Through, "%s", err)
		return
	}
	if path, was, is := differ(stored, again, nil); path != "" {
		p.differs(last, "snapshot"+strings.TrimSuffix(path, "/"), was, is)
	}
}

// differ compares two JSON texts and says where they differ first, in the order of
// keys; "" = nowhere. A path that is passed over is not compared. What stands at the
// root of no JSON, or is there only once, differs at "/".
func differ(stored, again []byte, over map[string]bool) (path, was, is string) {
	if bytes.Equal(stored, again) {
		return "", "", ""
	}
	a, errA := read(stored)
	b, errB := read(again)
	if errA != nil || errB != nil {
		return "/", string(stored), string(again)
	}
	return walk("", a, b, over)
}

// read reads JSON with its numbers as they stand there.
func read(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func walk(at string, a, b any, over map[string]bool) (path, was, is string) {
	if over[at] || reflect.DeepEqual(a, b) {
		return "", "", ""
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		keys := maps.Clone(x)
		maps.Copy(keys, y)
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			inside := at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(k)
			v, inA := x[k]
			w, inB := y[k]
			if inA != inB && !over[inside] {
				return inside, text(v, inA), text(w, inB)
			}
			if path, was, is = walk(inside, v, w, over); path != "" {
				return path, was, is
			}
		}
		return "", "", ""
	case []any:
		y, ok := b.([]any)
		if !ok {
			break
		}
		for i := range min(len(x), len(y)) {
			if path, was, is = walk(fmt.Sprintf("%s/%d", at, i), x[i], y[i], over); path != "" {
				return path, was, is
			}
		}
		if len(x) != len(y) {
			return cmp.Or(at, "/"), fmt.Sprintf("%d elements", len(x)), fmt.Sprintf("%d elements", len(y))
		}
		return "", "", ""
	}
	return cmp.Or(at, "/"), text(a, true), text(b, true)
}

// text is a value as it is shown.
func text(v any, there bool) string {
	if !there {
		return "nothing"
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// maxShown bounds a value that is shown, in bytes.
const maxShown = 200

func clip(s string) string {
	if len(s) <= maxShown {
		return s
	}
	cut := maxShown
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

func moment(t time.Time) string { return t.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano) }
