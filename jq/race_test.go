//go:build race

package jq

// slow is how much time and memory the race detector may add: it drops what
// the regular expressions keep for their next use.
const slow = 6
