package appendjson

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

type kind string

type inner struct {
	Name kind `json:"name"`
	N    int  `json:"n,omitempty"`
}

type outer struct {
	Text   string                     `json:"text"`
	Opt    kind                       `json:"opt,omitempty"`
	Int    int                        `json:"int"`
	Long   int64                      `json:"long,omitempty"`
	Yes    bool                       `json:"yes,omitempty"`
	At     time.Time                  `json:"at"`
	Then   time.Time                  `json:"then,omitzero"`
	Raw    json.RawMessage            `json:"raw,omitempty"`
	Raws   []json.RawMessage          `json:"raws,omitempty"`
	Texts  []string                   `json:"texts,omitempty"`
	Ints   []int                      `json:"ints"`
	Map    map[string]string          `json:"map,omitempty"`
	RawMap map[string]json.RawMessage `json:"rawMap,omitempty"`
	In     inner                      `json:"in"`
	Ptr    *inner                     `json:"ptr,omitempty"`
	List   []inner                    `json:"list,omitempty"`
	Ptrs   []*inner                   `json:"ptrs"`
	Hidden func()                     `json:"-"`
}

func TestAValueIsAsEncodingJSONWritesIt(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	form := Of[outer]()
	for name, v := range map[string]outer{
		"nothing": {Ints: []int{}, Ptrs: []*inner{}},
		"all": {
			Text: "a \"quoted\" \\ text", Opt: "Größe\n\u2028<&>\x00", Int: -7, Long: 1 << 60, Yes: true, At: at, Then: at,
			Raw: json.RawMessage(`[1]`), Raws: []json.RawMessage{nil, json.RawMessage(`{}`)}, Texts: []string{"", "\xff"}, Ints: []int{0, 1, 2},
			Map: map[string]string{"b\n": "1", "a": "\""}, RawMap: map[string]json.RawMessage{"z": json.RawMessage(`1`), "y": json.RawMessage(`null`)},
			In: inner{Name: "in"}, Ptr: &inner{N: 3}, List: []inner{{Name: "x"}, {N: 4}, {Name: "y", N: 5}}, Ptrs: []*inner{{Name: "p"}, nil, {N: 6}},
		},
	} {
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
		if got := string(form.Append(nil, &v)); got != strings.TrimSuffix(want.String(), "\n") {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want.String())
		}
	}
}

func TestMembersAreWrittenInsteadAndBefore(t *testing.T) {
	t.Parallel()
	form := Of[inner]()
	form.Before("n", func(b []byte, v *inner) []byte { return append(Key(b, "more"), '1') })
	form.Instead("name", func(b []byte, v *inner) []byte { return b })
	if got := string(form.Append(nil, &inner{Name: "x", N: 2})); got != `{"more":1,"n":2}` {
		t.Error(got)
	}
	if got := string(form.Members([]byte(`{"a":0`), &inner{})); got != `{"a":0,"more":1` {
		t.Error(got)
	}
}

func TestOfATypeThatItCannotWriteThereIsNoForm(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(){
		"a channel":          func() { Of[chan int]() },
		"a number of floats": func() { Of[[]float64]() },
		"a map of numbers":   func() { Of[map[string]int]() },
		"a field unnamed":    func() { Of[struct{ A int }]() },
		"an optional struct": func() {
			Of[struct {
				A inner `json:"a,omitempty"`
			}]()
		},
		"a member not there": func() { Of[inner]().Instead("x", nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s has a form", name)
				}
			}()
			of()
		}()
	}
}
