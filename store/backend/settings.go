package backend

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Settings keeps how the nodes of a database are set where they must be alike.
type Settings interface {
	// Settings are those that were recorded, the newest of each, in order of their keys.
	Settings(ctx context.Context) ([]Setting, error)
	// Record notes settings, all of them or none, with who has done it; store.ErrDuplicate
	// where one of them has a record of that number.
	Record(ctx context.Context, list []Setting, by ...store.Audit) error
}

// Setting is what was recorded of one setting.
type Setting struct {
	Key    string
	Number int // of the record, from 1
	Value  string
	By     string // node, or who said so
	At     time.Time
}

// MaxFact is how long the value of a fact of WF_META may be, in bytes.
const MaxFact = 2000

// A record is a fact of WF_META, which is never changed: its name begins with this, and
// ends with its number.
const settingName = "setting-"

type settingFact struct {
	Value string    `json:"value"`
	By    string    `json:"by"`
	At    time.Time `json:"at"`
}

// Fact is the record as WF_META has it.
func (s *Setting) Fact() (name string, value []byte, err error) {
	value, err = jsonv2.Marshal(settingFact{s.Value, s.By, s.At.UTC().Truncate(time.Microsecond)})
	if err == nil && len(value) > MaxFact {
		err = problem.New(problem.Invalid, "settings.long", "the value of %s is too long to be recorded: with who has set it, %d bytes, at most %d may be", s.Key, len(value), MaxFact)
	}
	return fmt.Sprintf("%s%s-%06d", settingName, s.Key, s.Number), value, err
}

// Recorded are the newest records of all, in order of their keys.
type Recorded map[string]Setting

// Add takes a fact.
func (r Recorded) Add(name string, value []byte) error {
	name = strings.TrimPrefix(name, settingName)
	at := strings.LastIndexByte(name, '-')
	n, err := strconv.Atoi(name[at+1:])
	if at < 0 || err != nil {
		return problem.New(problem.Internal, "settings.corrupt", "WF_META has a fact %q, which is no record of a setting", name)
	}
	var f settingFact
	if err := jsonv2.Unmarshal(value, &f); err != nil {
		return problem.Wrap(err, problem.Internal, "settings.corrupt", "the record of %s in WF_META cannot be read", name)
	}
	if key := name[:at]; n > r[key].Number {
		r[key] = Setting{key, n, f.Value, f.By, f.At}
	}
	return nil
}

// List is all of them, in order of their keys.
func (r Recorded) List() (all []Setting) {
	for _, key := range slices.Sorted(maps.Keys(r)) {
		all = append(all, r[key])
	}
	return all
}
