package main

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
)

// Limits of the world.
const (
	maxKeys      = 1_000_000 // remembered
	maxBodyBytes = 1 << 20   // of a request
)

// The ways in which a request can be refused.
var (
	errKeyReused = errors.New("this Idempotency-Key was used with another body")
	errFull      = errors.New("too many keys are remembered; POST /reset forgets them")
)

// world remembers every effect. All methods may be called from many goroutines.
type world struct {
	mu       sync.Mutex
	records  map[target]*record
	numbers  map[string]int // effects per path: where the serial numbers come from
	controls map[string]*control
	file     *os.File // nil = memory
	node     string   // URL where deliveries are acknowledged; "" = nowhere
}

// target is what an idempotency key is unique in.
type target struct {
	Path string `json:"path"`
	Key  string `json:"key"`
}

// record is what happened to one key.
type record struct {
	target
	Attempts int             `json:"attempts"`
	Effects  int             `json:"effects"`
	Answer   json.RawMessage `json:"answer,omitempty"`
	Body     string          `json:"-"` // digest of the body that had the effect
}

// line is one line of the file.
type line struct {
	Event string `json:"event"` // attempt, effect or reset
	target
	Body   string          `json:"body,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
}

// openWorld reads the file again, up to the first line that a crash cut off.
func openWorld(path string) (*world, error) {
	w := &world{}
	w.clear()
	if path == "" {
		return w, nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	r := bufio.NewReader(file)
	good := int64(0)
	for {
		text, err := r.ReadBytes('\n')
		var l line
		if err != nil || json.Unmarshal(text, &l) != nil {
			break
		}
		w.apply(l)
		good += int64(len(text))
	}
	if err := file.Truncate(good); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if _, err := file.Seek(good, io.SeekStart); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	w.file = file
	return w, nil
}

func (w *world) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file != nil {
		_ = w.file.Close() // every line was written when it happened
	}
}

func (w *world) clear() {
	w.records, w.numbers, w.controls = map[target]*record{}, map[string]int{}, map[string]*control{}
}

// apply changes the memory as a line says.
func (w *world) apply(l line) {
	r := w.records[l.target]
	if r == nil {
		r = &record{target: l.target}
	}
	switch l.Event {
	case "attempt":
		r.Attempts++
	case "effect":
		r.Effects++
		r.Answer, r.Body = l.Answer, l.Body
		w.numbers[l.Path]++
	case "reset":
		w.clear()
		return
	}
	w.records[l.target] = r
}

// write appends a line to the file and then applies it.
func (w *world) write(l line) error {
	if w.file != nil {
		b, err := json.Marshal(l)
		if err != nil {
			return err
		}
		if _, err := w.file.Write(append(b, '\n')); err != nil {
			return err
		}
	}
	w.apply(l)
	return nil
}

// attempt counts a request, before anything can go wrong with it, and returns
// what the control of its path makes of it.
func (w *world) attempt(t target) (trouble, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.records[t] == nil && len(w.records) >= maxKeys {
		return trouble{}, errFull
	}
	if err := w.write(line{Event: "attempt", target: t}); err != nil {
		return trouble{}, err
	}
	return w.meet(t.Path), nil
}

// perform has the effect unless the key had it before, and returns the answer;
// repeated says which.
func (w *world) perform(t target, body []byte, answer func(number int) any) (result json.RawMessage, repeated bool, err error) {
	sum := sha256.Sum256(body)
	digest := hex.EncodeToString(sum[:])
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.records[t]; r != nil && r.Effects > 0 {
		if r.Body != digest {
			return nil, true, errKeyReused
		}
		return r.Answer, true, nil
	}
	result, err = json.Marshal(answer(w.numbers[t.Path] + 1))
	if err != nil {
		return nil, false, fmt.Errorf("answer: %w", err)
	}
	return result, false, w.write(line{Event: "effect", target: t, Body: digest, Answer: result})
}

// reset forgets everything, the controls too.
func (w *world) reset() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.write(line{Event: "reset"})
}

// list returns every record, in order of path and key.
func (w *world) list() []record {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]record, 0, len(w.records))
	for _, r := range w.records {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b record) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Key, b.Key))
	})
	return all
}
