package definition

import (
	"cmp"
	"strings"
)

// compareVersions orders versions by semantic versioning: 1.10.0 is above
// 1.9.0, and 1.0.0-rc.1 below 1.0.0. Versions that differ in build metadata
// alone are ordered by it, and texts that are no versions come below all that
// are, so that the order is total and the highest is always the same one.
func compareVersions(a, b string) int {
	x, okX := split(a)
	y, okY := split(b)
	if okX != okY {
		if okX {
			return 1
		}
		return -1
	}
	if !okX {
		return cmp.Compare(a, b)
	}
	for i := range x.core {
		if c := numeric(x.core[i], y.core[i]); c != 0 {
			return c
		}
	}
	if c := prerelease(x.pre, y.pre); c != 0 {
		return c
	}
	return cmp.Compare(a, b)
}

type version struct {
	core [3]string
	pre  string
}

func split(s string) (v version, ok bool) {
	s, _, _ = strings.Cut(s, "+")
	s, v.pre, _ = strings.Cut(s, "-")
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return v, false
	}
	for i, p := range parts {
		if !digits(p) {
			return v, false
		}
		v.core[i] = p
	}
	return v, true
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// numeric compares numbers of any length.
func numeric(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

func prerelease(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(b2i(a == ""), b2i(b == ""))
	}
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(x), len(y)) {
		c := 0
		switch nx, ny := digits(x[i]), digits(y[i]); {
		case nx && ny:
			c = numeric(x[i], y[i])
		case nx != ny:
			c = cmp.Compare(b2i(ny), b2i(nx)) // numbers are below words
		default:
			c = cmp.Compare(x[i], y[i])
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
