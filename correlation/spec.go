// Package correlation says which events an instance waits for, as rows that are found
// by what an event has: its type, and the values that it is correlated by.
package correlation

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Waits adds to the rows of a turn the event waits that came and went with it. One that
// moved to another version of the definition did both. prev is nil for a start.
func Waits(rows *projections.Rows, prev, next *snapshot.Snapshot) {
	had := map[string]string{} // the spec of each token
	if prev != nil {
		for _, w := range prev.Waits {
			if w.Kind == snapshot.WaitEvent {
				had[w.Token] = spec(prev.Definition, w)
			}
		}
	}
	for _, w := range next.Waits {
		if w.Kind != snapshot.WaitEvent {
			continue
		}
		spec := spec(next.Definition, w)
		if had[w.Token] == spec {
			delete(had, w.Token)
			continue
		}
		rows.Waits = append(rows.Waits, projections.Wait{
			Token: w.Token, InstanceID: next.InstanceID, EventType: w.Event,
			Spec: spec, KeyHash: KeyHash(engine.Key(w.Key)), CreatedAt: next.UpdatedAt,
		})
	}
	if prev != nil {
		for _, w := range prev.Waits {
			if had[w.Token] != "" {
				rows.WaitsGone = append(rows.WaitsGone, w.Token)
			}
		}
	}
}

// spec says how the events of a wait are correlated: name@version#pointer, and
// before the pointer, where they are not zero, the arm and the set of bound
// correlations: name@version#2.1/do/0/all.
func spec(d snapshot.Definition, w snapshot.Wait) string {
	place := ""
	if w.Arm != 0 || w.Bound != 0 {
		place = strconv.Itoa(w.Arm)
	}
	if w.Bound != 0 {
		place += "." + strconv.Itoa(w.Bound)
	}
	return d.Name + "@" + d.Version + "#" + place + w.Pointer
}

// KeyHash is what WF_WAITS is searched by: the first 128 bits of the key's
// SHA-256, in hex.
func KeyHash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// Place is where events of a spec are correlated.
type Place struct {
	Name, Version string // of the definition
	Pointer       string
	Arm, Bound    int
}

// ParseSpec takes a spec apart.
func ParseSpec(spec string) (p Place, ok bool) {
	ref, rest, ok := strings.Cut(spec, "#")
	i, slash := strings.LastIndexByte(ref, '@'), strings.IndexByte(rest, '/')
	if !ok || i < 0 || slash < 0 {
		return Place{}, false
	}
	p = Place{Name: ref[:i], Version: ref[i+1:], Pointer: rest[slash:]}
	arm, bound, _ := strings.Cut(rest[:slash], ".")
	for _, f := range []struct {
		text string
		to   *int
	}{{arm, &p.Arm}, {bound, &p.Bound}} {
		if f.text == "" {
			continue
		}
		var err error
		if *f.to, err = strconv.Atoi(f.text); err != nil || *f.to < 0 {
			return Place{}, false
		}
	}
	return p, true
}
