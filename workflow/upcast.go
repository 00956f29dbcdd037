package workflow

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// upcast takes the state of one version to another.
type upcast struct {
	from, to string
	old, new reflect.Type
	do       func(json.RawMessage) (json.RawMessage, error)
}

// chain takes the state of a version to the present one, step by step.
type chain []upcast

// Upcast has instances that began in an older version go on in this one: f makes the
// state of the version to out of that of the version from. Where to is not the
// version of the workflow, another Upcast leads on from it, and takes what f makes: the
// types of a chain fit, and end at that of the workflow's state.
func Upcast[Old, New, S any](w *Workflow[S], from, to string, f func(Old) (New, error)) {
	w.upcasts = append(w.upcasts, upcast{from, to, reflect.TypeFor[Old](), reflect.TypeFor[New](), func(raw json.RawMessage) (json.RawMessage, error) {
		var old Old
		if err := decode(raw, &old); err != nil {
			return nil, faultOf("workflow.state", "the state of version %s is no %T: %v", from, old, err)
		}
		s, err := f(old)
		if err != nil {
			return nil, faultOf("workflow.upcast", "from version %s to %s: %v", from, to, err)
		}
		if raw, err = encode(s); err != nil {
			return nil, faultOf("workflow.upcast", "from version %s to %s: its state is no JSON: %v", from, to, err)
		}
		return raw, nil
	}})
}

// chains follows the upcasts from each version to the present one, with states of a type.
func chains(all []upcast, version string, state reflect.Type) (map[string]chain, []problem.Place) {
	next := map[string]upcast{}
	var wrong []problem.Place
	find := func(code, from, detail string, args ...any) {
		wrong = append(wrong, problem.Place{Pointer: "/upcast/" + from, Code: code, Detail: fmt.Sprintf(detail, args...)})
	}
	for _, u := range all {
		if _, twice := next[u.from]; twice {
			find("workflow.upcast-twice", u.from, "two upcasts begin at version %s", u.from)
		}
		if u.from == version {
			find("workflow.upcast-cycle", u.from, "an upcast leads away from the present version %s", version)
		}
		next[u.from] = u
	}
	for _, u := range all {
		if n, goesOn := next[u.to]; goesOn && n.old != u.new {
			find("workflow.upcast-type", u.from, "the upcast from version %s to %s makes a %s, and that from %s to %s takes a %s", u.from, u.to, u.new, n.from, n.to, n.old)
		} else if u.to == version && u.new != state {
			find("workflow.upcast-type", u.from, "the upcast from version %s to %s makes a %s, and the state of version %s is a %s", u.from, u.to, u.new, version, state)
		}
	}
	list := map[string]chain{}
	for _, u := range all {
		at := u.from
		for len(list[u.from]) <= len(all) && at != version {
			n, ok := next[at]
			if !ok {
				find("workflow.upcast-hole", u.from, "the upcasts from version %s end at %s, and no one leads from there to %s", u.from, at, version)
				break
			}
			list[u.from] = append(list[u.from], n)
			at = n.to
		}
		if len(list[u.from]) > len(all) {
			find("workflow.upcast-cycle", u.from, "the upcasts from version %s lead in a circle", u.from)
		}
	}
	return list, wrong
}
