package engine

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxDuration bounds a wait: 100 years.
const maxDuration = 100 * 366 * 24 * time.Hour

// After returns the moment an ISO 8601 duration ("P1DT2H30M", "PT0.5S",
// "P1M") after t, in UTC. Years, months and days are calendar units; where the
// target month is shorter, the date moves on into the next one, as
// time.AddDate does. Negative durations are refused.
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
	if years > 100 || months > 1200 || wholeDays > 36_600 || exact > maxDuration.Seconds() {
		return bad("it is longer than 100 years")
	}
	return t.UTC().AddDate(int(years), int(months), int(wholeDays)).Add(time.Duration(math.Round(exact * float64(time.Second)))), nil
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
