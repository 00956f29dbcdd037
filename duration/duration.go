// Package duration reads ISO 8601 durations, by the calendar and in UTC.
package duration

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Longest bounds what is waited for: 100 years.
const Longest = 100 * 366 * 24 * time.Hour

// After returns the moment an ISO 8601 duration ("P1DT2H30M", "PT0.5S",
// "P1M") after t, in UTC. Years, months and days are calendar units; where the
// target month is too short for the day, its last day is meant, as people say
// it: a month after 31 January is 28 February. Negative durations are refused.
func After(t time.Time, iso string) (time.Time, error) {
	bad := func(why string) (time.Time, error) {
		return time.Time{}, fmt.Errorf("%q is not an ISO 8601 duration: %s", iso, why)
	}
	rest, ok := strings.CutPrefix(iso, "P")
	if !ok || rest == "" {
		return bad("it has the form P1DT2H30M")
	}
	date, clock, hasTime := strings.Cut(rest, "T")
	if hasTime && clock == "" {
		return bad("nothing follows T")
	}
	var years, months, days float64
	var exact float64 // seconds
	err := units(date, "YMWD", func(unit byte, n float64) {
		switch unit {
		case 'Y':
			years = n
		case 'M':
			months = n
		case 'W':
			days += 7 * n
		case 'D':
			days += n
		}
	})
	if err == nil {
		err = units(clock, "HMS", func(unit byte, n float64) {
			exact += n * map[byte]float64{'H': 3600, 'M': 60, 'S': 1}[unit]
		})
	}
	if err != nil {
		return bad(err.Error())
	}
	if years != math.Trunc(years) || months != math.Trunc(months) {
		return bad("years and months are whole numbers")
	}
	wholeDays := math.Trunc(days)
	exact += (days - wholeDays) * 24 * 3600
	if years > 100 || months > 1200 || wholeDays > 36_600 || exact > Longest.Seconds() {
		return bad("it is longer than 100 years")
	}
	t = addMonths(t.UTC(), 12*int(years)+int(months)).AddDate(0, 0, int(wholeDays))
	return t.Add(time.Duration(math.Round(exact * float64(time.Second)))), nil
}

// addMonths is time.AddDate with the day kept inside the target month.
func addMonths(t time.Time, months int) time.Time {
	first := time.Date(t.Year(), t.Month(), 1, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
	target := first.AddDate(0, months, 0)
	last := target.AddDate(0, 1, -1).Day()
	return target.AddDate(0, 0, min(t.Day(), last)-1)
}

// units reads number-unit pairs in the order of the letters in allowed.
func units(s, allowed string, add func(unit byte, n float64)) error {
	for s != "" {
		i := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != ',' })
		if i <= 0 {
			return fmt.Errorf("a number is missing")
		}
		at := strings.IndexByte(allowed, s[i])
		if at < 0 {
			return fmt.Errorf("unit %q is unknown or out of order", s[i])
		}
		n, err := strconv.ParseFloat(strings.Replace(s[:i], ",", ".", 1), 64)
		if err != nil {
			return fmt.Errorf("%q is not a number", s[:i])
		}
		add(s[i], n)
		allowed, s = allowed[at+1:], s[i+1:]
	}
	return nil
}
