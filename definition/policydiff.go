package definition

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/aqueduct-engine/aqueduct/problem"
	jsonv2 "github.com/go-json-experiment/json"
)

// DiffPolicies compares two policies, as their canonical documents: which values were
// added, removed and changed, by JSON pointer. What names a version is not compared.
func DiffPolicies(old, now []byte) ([]Change, error) {
	var docs [2]map[string]any
	for i, raw := range [][]byte{old, now} {
		if err := jsonv2.Unmarshal(raw, &docs[i]); err != nil {
			return nil, problem.Wrap(err, problem.Internal, "definition.stored", "a policy is stored and cannot be read")
		}
		delete(docs[i], "version")
	}
	return differences("", docs[0], docs[1]), nil
}

func differences(at string, old, now any) (all []Change) {
	a, b := children(old), children(now)
	if a == nil || b == nil {
		if reflect.DeepEqual(old, now) {
			return nil
		}
		return []Change{{Kind: Changed, Old: at, New: at}}
	}
	names := maps.Clone(a)
	maps.Copy(names, b)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		p := at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		x, had := a[name]
		y, has := b[name]
		switch {
		case !had:
			all = append(all, Change{Kind: Added, New: p})
		case !has:
			all = append(all, Change{Kind: Removed, Old: p})
		default:
			all = append(all, differences(p, x, y)...)
		}
	}
	return all
}

// children of an object or a list, by name; nil of any other value.
func children(v any) map[string]any {
	switch v := v.(type) {
	case map[string]any:
		return v
	case []any:
		m := make(map[string]any, len(v))
		for i, x := range v {
			m[strconv.Itoa(i)] = x
		}
		return m
	}
	return nil
}
