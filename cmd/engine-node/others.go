package main

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/aqueduct-engine/aqueduct/duration"
)

// others are the names and values of what a document says in texts, lists, counts and
// moments beside what a page shows in its own way: a field that is added to a document is shown.
func (p *page) others(of any, shown ...string) []string {
	var pairs []string
	eachField(of, shown, func(f reflect.StructField, v reflect.Value) {
		text := ""
		switch x := v.Interface().(type) {
		case string:
			text = oneLine(x)
		case []string:
			text = oneLine(strings.Join(x, ", "))
		case int:
			if x != 0 {
				text = strconv.Itoa(x)
			}
		case time.Time:
			text = p.momentOrNone(x)
		}
		pairs = append(pairs, spelled(f, ' '), text)
	})
	return pairs
}

// textFlags makes a flag of every text of a request that has none of its own, named and
// explained as in the API.
func textFlags(flags *pflag.FlagSet, request any, own ...string) {
	eachField(request, own, func(f reflect.StructField, v reflect.Value) {
		if to, ok := v.Addr().Interface().(*string); ok {
			flags.StringVar(to, spelled(f, '-'), "", f.Tag.Get("doc"))
		}
	})
}

// eachField visits the fields of a struct, to which of points.
func eachField(of any, except []string, visit func(reflect.StructField, reflect.Value)) {
	v := reflect.ValueOf(of).Elem()
	for i := range v.NumField() {
		if f := v.Type().Field(i); !slices.Contains(except, f.Name) {
			visit(f, v.Field(i))
		}
	}
}

// spelled is the name of a field in the API, its words apart: escalateTo, escalate to.
func spelled(f reflect.StructField, between rune) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	var words []rune
	for _, r := range name {
		if unicode.IsUpper(r) {
			words = append(words, between)
		}
		words = append(words, unicode.ToLower(r))
	}
	return string(words)
}

// period is the value of a flag that takes a duration as settings do.
type period struct{ time.Duration }

// Set implements pflag.Value.
func (p *period) Set(text string) (err error) {
	p.Duration, err = duration.Parse(text)
	return err
}

// Type implements pflag.Value.
func (p *period) Type() string { return "duration" }

// String implements pflag.Value.
func (p *period) String() string { return duration.Text(p.Duration) }
