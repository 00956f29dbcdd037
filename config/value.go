package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

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
	case *time.Duration:
		d, err := parseDuration(given)
		if err != nil {
			return s.notA("a duration such as 30s, 5m, 2h or 30d", given)
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

// parseDuration reads a Go duration, or a number of days: "30d".
func parseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * day, err
	}
	return time.ParseDuration(s)
}

func isBool(field any) bool {
	_, ok := field.(*bool)
	return ok
}

// text writes a field so that assign reads it back.
func text(field any) string {
	if d, ok := field.(*time.Duration); ok {
		return durationText(*d)
	}
	return fmt.Sprint(reflect.ValueOf(field).Elem().Interface())
}

func durationText(d time.Duration) string {
	if d > 0 && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
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
