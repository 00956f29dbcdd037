package duration

import (
	"strings"
	"testing"
	"time"
)

func TestAfter(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct{ iso, want string }{
		{"PT1S", "2026-01-31T10:00:01Z"},
		{"PT0.25S", "2026-01-31T10:00:00.25Z"},
		{"PT0,5S", "2026-01-31T10:00:00.5Z"},
		{"PT90M", "2026-01-31T11:30:00Z"},
		{"P1D", "2026-02-01T10:00:00Z"},
		{"P1.5D", "2026-02-01T22:00:00Z"},
		{"P2W", "2026-02-14T10:00:00Z"},
		{"P1M", "2026-02-28T10:00:00Z"},
		{"P25M", "2028-02-29T10:00:00Z"},
		{"P1Y1M1DT1H1M1S", "2027-03-01T11:01:01Z"},
		{"PT0S", "2026-01-31T10:00:00Z"},
		{"", ""}, {"P", ""}, {"PT", ""}, {"1D", ""}, {"P-1D", ""}, {"P1", ""}, {"P1H", ""}, {"PT1D", ""}, {"P1D1Y", ""},
		{"P1.5M", ""}, {"P101Y", ""}, {"PT1e9S", ""}, {"P1D ", ""}, {"P..1D", ""}, {"PT9999999999999S", ""},
	} {
		got, err := After(from, c.iso)
		switch {
		case c.want == "" && err == nil:
			t.Errorf("%q is taken: %s", c.iso, got)
		case c.want != "" && (err != nil || got.Format(time.RFC3339Nano) != c.want):
			t.Errorf("%q: %s, %v, want %s", c.iso, got.Format(time.RFC3339Nano), err, c.want)
		}
	}
}

// TestParse reads what people write in settings and flags, and what Text has written.
func TestParse(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "2h30m": 150 * time.Minute, "0": 0, "0d": 0, "30d": 30 * day, "P30D": 30 * day, "P4W": 28 * day,
		"PT5M": 5 * time.Minute, "P1M": 31 * day, "P1Y": 365 * day, "P1DT1H": 25 * time.Hour, "720h": 30 * day, "-1s": -time.Second,
	} {
		got, err := Parse(text)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		if again, err := Parse(Text(got)); err != nil || again != got {
			t.Errorf("%s is written %s, which is %v, %v", text, Text(got), again, err)
		}
	}
	for _, text := range []string{"", "d", "30", "-1d", "1.5d", "30D", "1d12h", "40000d", "99999999d", "P", "P-1D", "PT", "p30d", "a day", "P101Y"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
	for _, text := range []string{"40000d", "400000d"} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), "longer than 100 years") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestFormatIsReadBack(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		time.Second: "PT1S", 15 * time.Minute: "PT15M", 24 * time.Hour: "PT24H", 90 * time.Minute: "PT1H30M", 1500 * time.Millisecond: "PT1.5S",
		time.Hour + time.Second: "PT1H0M1S", time.Millisecond: "PT0.001S", 10 * time.Hour: "PT10H", 10 * time.Second: "PT10S", time.Minute + 10*time.Second: "PT1M10S", 0: "PT0S",
	} {
		got := Format(d)
		at := time.Unix(0, 0)
		until, err := After(at, got)
		if got != want || err != nil || until.Sub(at) != d {
			t.Errorf("%s: %s, want %s; %v, %v", d, got, want, until, err)
		}
	}
}
