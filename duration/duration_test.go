package duration

import (
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
