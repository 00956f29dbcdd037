// Package duration reads durations: those of ISO 8601 by the calendar and in UTC, and
// those of settings and flags, which no calendar is for.
package duration

import (
	"errors"
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

// Parse reads a duration that begins at no certain moment: of Go ("90s", "2h30m"), a
// number of days ("30d"), or of ISO 8601 ("P30D", "PT5M"), where a month has 31 days and
// a year 365.
func Parse(s string) (time.Duration, error) {
	if strings.HasPrefix(s, "P") {
		began := time.Unix(0, 0)
		until, err := After(began, s)
		return until.Sub(began), err
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if d := time.Duration(n) * 24 * time.Hour; err == nil && d <= Longest {
			return d, nil
		}
		if err == nil || errors.Is(err, strconv.ErrRange) {
			return 0, fmt.Errorf("%q is longer than 100 years", s)
		}
	} else if d, err := time.ParseDuration(s); err == nil {
		return d, nil
	}
	return 0, fmt.Errorf("%q is not a duration such as 90s, 2h30m, 30d or P30D", s)
}

// Text writes a duration as [Parse] reads it: in days where it has only those.
func Text(d time.Duration) string {
	if d > 0 && d%(24*time.Hour) == 0 {
		return strconv.FormatInt(int64(d/(24*time.Hour)), 10) + "d"
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

// Format writes a duration as ISO 8601 has it, in hours, minutes and seconds: PT1H30M.
func Format(d time.Duration) string {
	text := strings.ToUpper(d.String())
	switch {
	case d%time.Second != 0 || d <= 0:
		return fmt.Sprintf("PT%sS", strconv.FormatFloat(d.Seconds(), 'f', -1, 64))
	case strings.HasSuffix(text, "H0M0S"):
		text = strings.TrimSuffix(text, "0M0S")
	case strings.HasSuffix(text, "M0S"):
		text = strings.TrimSuffix(text, "0S")
	}
	return "PT" + text
}
