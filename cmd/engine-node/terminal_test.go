package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestNothingThatATerminalObeysIsPrinted: in whichever pieces it comes.
func TestNothingThatATerminalObeysIsPrinted(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"plain\tÄ 漢 \U0001f600\n":       "plain\tÄ 漢 \U0001f600\n",
		"\x1b]0;x\x07":                  `\u001b]0;x\u0007`,
		"\u009b31m\x7f\x00":             `\u009b31m\u007f\u0000`,
		"\x9b31m":                       `\x9b31m`,
		"over\rwritten\r\n":             `over\u000dwritten` + "\r\n",
		"end\r":                         `end\u000d`,
		"cut \xe6\xbc":                  `cut \xe6\xbc`,
		"a\u202eb\u2066c\u2028d\u200fe": `a\u202eb\u2066c\u2028d\u200fe`,
	} {
		for size := 1; size <= len(given); size++ {
			var out bytes.Buffer
			to := &terminal{to: &out}
			for rest := []byte(given); len(rest) > 0; {
				n := min(size, len(rest))
				if wrote, err := to.Write(rest[:n]); wrote != n || err != nil {
					t.Fatal(wrote, err)
				}
				rest = rest[n:]
			}
			to.end()
			if out.String() != want {
				t.Errorf("%q by %d: %q, want %q", given, size, out.String(), want)
			}
		}
	}
	// What is JSON says the same.
	var out bytes.Buffer
	to := &terminal{to: &out}
	hostile := map[string]string{"a": "\x1b]0;x\x07\u009b\x7f\u202e\u2028\r\n"}
	p := page{out: to}
	if err := p.print(hostile); err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got["a"] != hostile["a"] || strings.ContainsFunc(strings.TrimSuffix(out.String(), "\n"), func(r rune) bool { return r != '\n' && control(r) }) {
		t.Errorf("%v: %q, %v", err, out.String(), got)
	}
}
