package storetest

import (
	"fmt"
	"reflect"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
)

// fieldCases are about every field of a row that is inserted whole, whichever it has.
var fieldCases = map[string]func(*testCase){
	"every field of an instance and of a task comes back": func(k *testCase) {
		c := turn("a", 1)
		filled(c.Rows.Instance)
		row := task("t", "a")
		filled(&row)
		c.Rows.Tasks = []projections.Task{row}
		k.commit(c)
		got, err := k.s.Instances.Instance(k.ctx, "a")
		k.ok(err)
		equal(k, got, *c.Rows.Instance)
		have, err := k.s.Tasks.Task(k.ctx, "t")
		k.ok(err)
		equal(k, have, row)
	},
}

// filled gives every field of a row, to which it points, that has none a value of its own.
func filled(row any) {
	v := reflect.ValueOf(row).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.IsZero() {
			switch to := f.Addr().Interface().(type) {
			case *string:
				*to = fmt.Sprint("text-", i)
			case *int:
				*to = i + 1
			case *int64:
				*to = int64(i) + 1
			case *[]byte:
				*to = fmt.Appendf(nil, `{"bytes":%d}`, i)
			case *time.Time:
				*to = at.Add(time.Duration(i) * time.Hour)
			default:
				panic(fmt.Sprintf("storetest: no value for a %T", to)) // of the suite's own rows
			}
		}
	}
}
