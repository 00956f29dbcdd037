// Package nearest guesses which name somebody meant: for hints of errors.
package nearest

import (
	"slices"
	"strings"
)

// maxLength bounds the names that are compared at all.
const maxLength = 64

// Name returns the name in names with the smallest edit distance to typed; ok
// is false when none is near enough to be a good guess. Among equals the first
// in order wins, so the guess does not depend on the order of names.
func Name(typed string, names []string) (name string, ok bool) {
	if len(typed) == 0 || len(typed) > maxLength {
		return "", false
	}
	best := 1 + len(typed)/3
	for _, n := range slices.Sorted(slices.Values(names)) {
		if n == typed || len(n) > maxLength {
			continue
		}
		d := distance(strings.ToLower(typed), strings.ToLower(n))
		if d <= best && (!ok || d < best) {
			name, best, ok = n, d, true
		}
	}
	return name, ok
}

// distance counts the insertions, deletions, changes and swaps of neighbours
// that make a into b.
func distance(a, b string) int {
	two, one, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range one {
		one[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			cur[j] = min(one[j]+1, cur[j-1]+1, one[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], two[j-2]+1)
			}
		}
		two, one, cur = one, cur, two
	}
	return one[len(b)]
}
