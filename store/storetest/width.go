package storetest

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/correlation"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

var widthCases = map[string]func(*testCase){
	"a text as long as its column is kept, and a longer one is refused": func(k *testCase) {
		for name, build := range widest {
			k.commit(build(0, func(any) {}))
			k.commit(build(1, func(v any) {
				texts(v, func(_ string, most int, unit string) string { return strings.Repeat(unit, most/len(unit)) })
			}))
			var fields []string
			build(2, func(v any) {
				texts(v, func(field string, _ int, _ string) string { fields = append(fields, field); return "" })
			})
			for i, one := range fields {
				too := build(3+i, func(v any) {
					texts(v, func(field string, most int, unit string) string {
						if field != one {
							return ""
						}
						return strings.Repeat(unit, most/len(unit)) + "x"
					})
				})
				if err := k.s.Writer.Commit(k.ctx, too); problem.CodeOf(err) != "store.value" || problem.KindOf(err) != problem.Invalid {
					k.Errorf("%s.%s, one character too long: %v", name, one, err)
				}
			}
			if len(fields) == 0 {
				k.Errorf("%s has no width", name)
			}
		}
	},
	"a kept event has no longer type than its column": func(k *testCase) {
		e := backend.Event{Key: strings.Repeat("k", 128), Type: strings.Repeat("é", 256), ReceivedAt: at, ExpiresAt: at.Add(time.Hour), Body: []byte("{}")}
		keeps(k, e, true)
		e.Key, e.Type = "k", e.Type+"x"
		_, err := k.s.Inbox.KeepEvent(k.ctx, e)
		equal(k, problem.CodeOf(err), "store.value")
	},
}

//	are changes with a row of each kind, of the instance and the task n. What
//
// is given gets the row.
var widest = map[string]func(n int, row func(any)) store.Change{
	"instance": func(n int, row func(any)) store.Change {
		c := turn(long("instance", n), 1)
		row(c.Rows.Instance)
		row(&c.Runtime)
		return c
	},
	"entry": func(n int, row func(any)) store.Change {
		c := turn(long("entry", n), 1)
		c.Rows.Stream = []projections.Entry{command(c.Snapshot.InstanceID, 1, "")}
		row(&c.Rows.Stream[0])
		return c
	},
	"wait": func(n int, row func(any)) store.Change {
		c := turn(long("wait", n), 1)
		c.Rows.Waits = []projections.Wait{{Token: long("token", n), InstanceID: c.Snapshot.InstanceID, EventType: "t", Spec: "s", KeyHash: correlation.KeyHash("k"), CreatedAt: at}}
		row(&c.Rows.Waits[0])
		return c
	},
	"task": func(n int, row func(any)) store.Change {
		c := turn(long("task", n), 1)
		c.Rows.Tasks = []projections.Task{task(long("open", n), c.Snapshot.InstanceID)}
		c.Rows.TaskEvents = []projections.TaskEvent{{TaskID: long("open", n), InstanceID: c.Snapshot.InstanceID, At: at}}
		c.Rows.Tasks[0].Token = long("token", n)
		row(&c.Rows.Tasks[0])
		row(&c.Rows.TaskEvents[0])
		return c
	},
	"dead letter": func(n int, row func(any)) store.Change {
		l := &projections.DeadLetter{ID: long("letter", n), Envelope: []byte("e"), EnqueuedAt: at, DiedAt: at}
		row(l)
		return store.Change{DeadLetter: l}
	},
	"definition": func(n int, row func(any)) store.Change {
		d := publication("wide", fmt.Sprint(n), n+1)
		row(d)
		return store.Change{Definition: d}
	},
}

// long is an id of the most bytes that one may have.
func long(name string, n int) string {
	id := fmt.Sprintf("%s-%d-", name, n)
	return id + strings.Repeat("i", 128-len(id))
}

// texts sets the texts of a row that have a width, but those that say what it
// belongs to: to characters of four bytes, where characters count.
func texts(row any, set func(field string, most int, unit string) string) {
	v := reflect.ValueOf(row).Elem()
	for i := range v.NumField() {
		tag, ok := v.Type().Field(i).Tag.Lookup("width")
		name := v.Type().Field(i).Name
		if !ok || name == "ID" || name == "InstanceID" || name == "TaskID" || name == "KeyHash" || name == "Version" || name == "Token" {
			continue
		}
		number, bytes := strings.CutSuffix(tag, "B")
		most, _ := strconv.Atoi(number)
		unit := "x"
		if !bytes {
			unit, most = "😀", most*len("😀")
		}
		if text := set(name, most, unit); text != "" {
			v.Field(i).SetString(text)
		}
	}
}
