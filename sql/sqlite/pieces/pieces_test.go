package pieces

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// table is what a database has of a document's pieces.
type table map[int64][]byte

// take writes a change, and puts the document together as its layout says.
func (t table) take(d *document, c change) ([]byte, error) {
	for _, no := range c.Gone {
		if _, ok := t[no]; !ok {
			return nil, fmt.Errorf("piece %d goes, and was not there", no)
		}
		delete(t, no)
	}
	for _, p := range c.Fresh {
		if _, ok := t[p.No]; ok {
			return nil, fmt.Errorf("piece %d is there already", p.No)
		}
		t[p.No] = p.Body
	}
	layout := d.Layout()
	if layout == "" {
		if len(t) > 0 {
			return nil, fmt.Errorf("%d pieces are left", len(t))
		}
		return d.Rest, nil
	}
	var cuts [][]int
	if err := json.Unmarshal([]byte(layout), &cuts); err != nil {
		return nil, fmt.Errorf("layout %s: %w", layout, err)
	}
	used, doc := map[int64]bool{}, []byte(nil)
	for _, x := range cuts {
		doc = append(doc, d.Rest[x[0]:x[0]+x[1]]...)
		if len(x) > 2 {
			used[int64(x[2])] = true
			doc = append(doc, t[int64(x[2])][x[3]:x[3]+x[4]]...)
		}
	}
	if len(used) != len(t) {
		return nil, fmt.Errorf("%d pieces are there, %d are used", len(t), len(used))
	}
	return doc, nil
}

// history cuts versions one after another, and says how many bytes of pieces each wrote.
func history(t *testing.T, versions ...string) (fresh []int, rests []int) {
	t.Helper()
	return historyAt(t, minPiece, versions...)
}

func historyAt(t *testing.T, least int, versions ...string) (fresh []int, rests []int) {
	t.Helper()
	var before *document
	pieces := table{}
	for i, v := range versions {
		now, change := cutDocument([]byte(v), before)
		if json.Valid([]byte(v)) && now.Layout() != "" && !json.Valid(now.Rest) {
			t.Fatalf("version %d: the rest is no JSON: %.400s", i, now.Rest)
		}
		got, err := pieces.take(now, change)
		if err != nil {
			t.Fatalf("version %d: %v", i, err)
		}
		if string(got) != v {
			t.Fatalf("version %d is not what was cut:\n%.300s\n%.300s", i, got, v)
		}
		n := 0
		for _, p := range change.Fresh {
			n += len(p.Body)
		}
		fresh, rests = append(fresh, n), append(rests, len(now.Rest))
		now.Rest = nil
		before = now
	}
	return fresh, rests
}

func items(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		if fmt.Fprintf(&b, `{"n":%d}`, i); i < to-1 {
			b.WriteByte(',')
		}
	}
	return b.String()
}

func TestWhatStaysIsWrittenOnce(t *testing.T) {
	long := strings.Repeat("text ", 4_000)
	for name, c := range map[string]struct {
		version func(i int) string
		fresh   []int // bytes of pieces that each version writes
	}{
		"the list of a loop": {func(i int) string {
			return fmt.Sprintf(`{"input":{"items":[%s]},"version":%d,"frames":[{"items":[%s],"vars":{"i":%d}}],"data":{"items":[%[1]s]}}`, items(0, 3_000), i, items(i, 3_000), i)
		}, []int{len(items(0, 3_000)), 0, 0, 0}},
		"data that get a number more": {func(i int) string {
			return fmt.Sprintf(`{"version":%d,"data":{"kept":{"a":%q},"n":%d},"context":{"kept":{"a":%[2]q}}}`, i, long, i)
		}, []int{len(long), 0, 0, 0}},
		"a text among others": {func(i int) string {
			return fmt.Sprintf(`{"list":["\"x\":[",%q,"y\\"],"n":%d}`, long, i)
		}, []int{len(long), 0, 0, 0}},
		"a list that changes": {func(i int) string { return fmt.Sprintf(`{"a":{"items":[%d,%s]}}`, i, items(0, 3_000)) },
			[]int{len(items(0, 3_000)) + 2, len(items(0, 3_000)) + 2, len(items(0, 3_000)) + 2, len(items(0, 3_000)) + 2}},
		"what is small": {func(i int) string { return fmt.Sprintf(`{"a":{"items":[%d,%s]}}`, i, items(0, 100)) }, []int{0, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			var versions []string
			for i := range 4 {
				versions = append(versions, c.version(i))
			}
			fresh, rests := history(t, versions...)
			if !slices.Equal(fresh, c.fresh) {
				t.Errorf("versions write %v bytes of pieces, not %v", fresh, c.fresh)
			}
			if slices.Max(rests) > minPiece {
				t.Errorf("the rests have %v bytes", rests)
			}
		})
	}
}

// A list is taken up to its end, and what is left when it is small is in the rest.
func TestAListIsTakenToItsEnd(t *testing.T) {
	var versions []string
	for i := 0; i <= 1_000; i += 1 + i%7 {
		versions = append(versions, fmt.Sprintf(`{"version":%d,"frames":[{"items":[%s]}]}`, i, items(i, 1_000)))
	}
	fresh, _ := history(t, versions...)
	again := 0
	for _, n := range fresh[1:] {
		again += n
	}
	if again > 3*minPiece { // the last of it is cut with what is around it
		t.Errorf("%d bytes were written again", again)
	}
}

// What only looks like a name, or like elements, misleads nobody.
func TestCutsAreOfValues(t *testing.T) {
	long := items(0, 2_000)
	nested := strings.Repeat("[1,2],", 2_000) + "[4]"
	plain := strings.TrimSuffix(strings.Repeat("1,2,", 4_000), ",")
	history := func(t *testing.T, versions ...string) {
		historyAt(t, 8, versions...)
		historyAt(t, minPiece, versions...)
	}
	history(t, `{"a":[`+long+`],"z":1}`, `{"s":"\"a\":[`+strings.ReplaceAll(long, `"`, `\"`)+`]","a":[`+long+`]}`, `{"s":"a\":[","a":[`+long+`]}`)
	history(t, `{"a":[[`+nested+`]]}`, `{"a":[[`+strings.TrimPrefix(nested, "[1,")+`]]`, `{"a":[2],[1,2],`+nested+`]}`)
	history(t, `{"ab":[`+plain+`]}`, `{"k":["ab",":[`+plain+`]"],"ab":[`+plain+`]}`, `{"s":"ab\\":[`+plain+`]}`, `["ab",":[`+plain+`"]`)
	history(t, `{",":[`+plain+`]}`, `{"s":[",",":[`+plain+`]"]}`)
	history(t, `{"a":"`+plain+`"}`, `{"a":"`+plain+`","a":"`+plain+`x"}`, `{"a":"x`+plain+`"}`)
	history(t, `{"a":[`+plain+`]}`, `{}`, `{"a":[`+plain+`]}`, ``)
}

// TestAnyHistoryIsPutTogether: whatever documents follow one another, each is what its
// layout says.
func TestAnyHistoryIsPutTogether(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		var value func(depth int) any
		shared := []any{strings.Repeat("a\"b\\", 300), strings.Repeat("x", 100), json.RawMessage("[" + items(0, 150) + "]")}
		value = func(depth int) any {
			switch n := r.IntN(12); {
			case n < 3:
				return shared[r.IntN(len(shared))]
			case n < 5 && depth < 5:
				list := make([]any, r.IntN(6))
				for i := range list {
					list[i] = value(depth + 1)
				}
				return list
			case n < 9 && depth < 5:
				m := map[string]any{}
				for range r.IntN(5) {
					m[[]string{"a", "b", "items", `q"`, ",", "", `\`}[r.IntN(7)]] = value(depth + 1)
				}
				return m
			case n == 9:
				return "a\":[" + strings.Repeat("1,", r.IntN(1_000))
			}
			return r.IntN(1_000)
		}
		state := map[string]any{"a": value(0), "b": value(0), "items": json.RawMessage("[" + items(0, 200) + "]")}
		var versions []string
		for i := range 12 {
			switch r.IntN(3) {
			case 0:
				state[[]string{"a", "b", "c"}[r.IntN(3)]] = value(0)
			case 1:
				state["items"] = json.RawMessage("[" + items(i, 200) + "]")
			default:
				state["n"] = i
			}
			v, err := json.Marshal(state)
			if err != nil {
				t.Fatal(err)
			}
			versions = append(versions, string(v))
		}
		historyAt(t, int(8<<(seed%8)), versions...)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add([]byte(`{"a":[`+items(0, 9)+`]}`), []byte(`{"b":1,"a":[`+items(3, 9)+`]}`))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		var before *document
		pieces := table{}
		for _, v := range [][]byte{one, two, one} {
			now, change := cutAt(v, before, 8)
			got, err := pieces.take(now, change)
			if err != nil || !bytes.Equal(got, v) {
				t.Fatalf("%v\n%q\n%q", err, got, v)
			}
			if json.Valid(v) && now.Layout() != "" && !json.Valid(now.Rest) {
				t.Fatalf("the rest of %q is no JSON: %q", v, now.Rest)
			}
			before = now
		}
	})
}

func BenchmarkCut(b *testing.B) {
	var versions [][]byte
	for i := range 1_000 {
		versions = append(versions, fmt.Appendf(nil, `{"input":{"items":[%s]},"version":%d,"frames":[{"items":[%s]}],"data":{"items":[%[1]s]}}`, items(0, 10_000), i, items(i, 10_000)))
	}
	var before *document
	b.SetBytes(int64(len(versions[0])))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		before, _ = cutDocument(versions[i%1_000], before)
	}
}
