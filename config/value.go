package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/duration"
	"github.com/aqueduct-engine/aqueduct/nearest"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// assign sets the setting's field to a value from a file, a variable or a
// flag, or says what is wrong with it.
func (s setting) assign(c *Config, raw any) *problem.Place {
	given := fmt.Sprint(raw)
	if raw == nil {
		return &problem.Place{Code: "config.type", Detail: "has no value", Hint: "leave it out to get the default"}
	}
	kind := reflect.TypeOf(raw).Kind()
	if kind == reflect.Map || kind == reflect.Slice {
		return s.notA("a single value", given)
	}
	switch field := s.field(c).(type) {
	case *int:
		n, err := strconv.Atoi(given)
		if err != nil {
			return s.notA("a whole number", given)
		}
		if wrong := s.bounded(int64(n), strconv.FormatInt(s.low, 10), strconv.FormatInt(s.high, 10)); wrong != nil {
			return wrong
		}
		*field = n
	case *float64:
		f, err := strconv.ParseFloat(given, 64)
		if err != nil {
			return s.notA("a number", given)
		}
		if !(f >= float64(s.low) && f <= float64(s.high)) { // it may be none
			return s.bounded(s.high+1, strconv.FormatInt(s.low, 10), strconv.FormatInt(s.high, 10))
		}
		*field = f
	case *time.Duration:
		d, err := duration.Parse(given)
		if err != nil {
			return s.notA("a duration such as 30s, 5m, 2h, 30d or P30D", given)
		}
		low, high := time.Duration(s.low), time.Duration(s.high)
		if wrong := s.bounded(int64(d), text(&low), text(&high)); wrong != nil {
			return wrong
		}
		*field = d
	case *bool:
		b, err := strconv.ParseBool(given)
		if err != nil {
			return s.notA("true or false", given)
		}
		*field = b
	default:
		if s.choices != nil && !slices.Contains(s.choices, given) {
			return &problem.Place{Code: "config.choice", Detail: strconv.Quote(given) + " is not a choice",
				Hint: "write " + strings.Join(s.choices, " or ")}
		}
		reflect.ValueOf(field).Elem().SetString(given)
	}
	return nil
}

func (s setting) notA(what, given string) *problem.Place {
	if s.secret {
		given = "the value"
	} else {
		given = strconv.Quote(given)
	}
	return &problem.Place{Code: "config.type", Detail: given + " is not " + what}
}

func (s setting) bounded(n int64, low, high string) *problem.Place {
	if n >= s.low && n <= s.high {
		return nil
	}
	return &problem.Place{Code: "config.range", Detail: "is out of range", Hint: "from " + low + " to " + high}
}

func isBool(field any) bool {
	_, ok := field.(*bool)
	return ok
}

// isText reports whether a setting takes any text, and not a number or the like.
func isText(field any) bool { return reflect.TypeOf(field).Elem().Kind() == reflect.String }

// text writes a field so that assign reads it back.
func text(field any) string {
	if d, ok := field.(*time.Duration); ok {
		return duration.Text(*d)
	}
	return fmt.Sprint(reflect.ValueOf(field).Elem().Interface())
}

// suggest is the hint for a name that is not a setting's.
func suggest(given string, all []setting, name func(setting) string) string {
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = name(s)
	}
	near, ok := nearest.Name(given, names)
	if section, _, dotted := strings.Cut(given, "."); !ok && dotted && slices.Contains(names, section) {
		near, ok = section, true // a value written as a section
	}
	if ok {
		return "did you mean " + near + "?"
	}
	return "engine-node config lists them"
}
