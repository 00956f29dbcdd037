// Program counts reads the JSON of `go test -json`, prints what a person wants
// to see of it, and ends with one line: how many tests passed, failed and were
// skipped.
//
// A failed test, a package that does not build, and, with -strict, a skipped
// test make it exit with status 1. A test that is skipped where everything is
// installed proves nothing, so an unattended run takes it for a failure.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// maxLineBytes bounds one line of the input.
const maxLineBytes = 16 << 20

func main() {
	strict := flag.Bool("strict", false, "take a skipped test for a failure")
	summary := flag.String("summary", "", "file to write the last line to as well")
	flag.Parse()
	c := newCounts(os.Stdout)
	if err := c.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "counts:", err)
		os.Exit(1)
	}
	ok := c.report(*strict)
	if *summary != "" {
		if err := os.WriteFile(*summary, []byte(c.line()+"\n"), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, "counts:", err)
			os.Exit(1)
		}
	}
	if !ok {
		os.Exit(1)
	}
}

// event is one line of `go test -json`.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a build
	Test        string
	Output      string
	FailedBuild string
}

// counts is what was seen so far.
type counts struct {
	out     io.Writer
	passed  int
	failed  []string
	skipped []string
	pending map[string][]string // output of tests that have not ended
}

func newCounts(out io.Writer) *counts {
	return &counts{out: out, pending: map[string][]string{}}
}

// read takes in every line. One that is no JSON is printed as it is.
func (c *counts) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLineBytes)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Action == "" {
			fmt.Fprintln(c.out, lines.Text())
			continue
		}
		c.take(e)
	}
	return lines.Err()
}

func (c *counts) take(e event) {
	name := e.Package
	if e.Test != "" {
		name += "." + e.Test
	}
	switch e.Action {
	case "output":
		c.output(e, name)
	case "build-output":
		fmt.Fprint(c.out, e.Output)
	case "pass":
		if e.Test != "" {
			c.passed++
		}
		delete(c.pending, name)
	case "fail":
		c.fail(e, name)
	case "skip":
		if e.Test != "" { // else a package without tests
			c.skipped = append(c.skipped, name)
		}
		delete(c.pending, name)
	}
}

// output prints a package's line at once and keeps a test's until it fails. A
// panic is printed under the package, so that it is never lost.
func (c *counts) output(e event, name string) {
	if e.Test != "" {
		c.pending[name] = append(c.pending[name], e.Output)
		return
	}
	if e.Output != "PASS\n" && !strings.Contains(e.Output, "[no test files]") {
		fmt.Fprint(c.out, e.Output)
	}
}

// fail prints what a failed test said. A package fails in its own name only
// when none of its tests did: it did not build, or its process died.
func (c *counts) fail(e event, name string) {
	if e.Test == "" {
		inside := func(failed string) bool { return strings.HasPrefix(failed, e.Package+".") }
		if slices.ContainsFunc(c.failed, inside) {
			return
		}
	}
	c.failed = append(c.failed, name)
	fmt.Fprint(c.out, strings.Join(c.pending[name], ""))
	delete(c.pending, name)
}

func (c *counts) line() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, len(c.failed), len(c.skipped))
}

// report prints the end and reports whether all is well. A run without a
// single test is not.
func (c *counts) report(strict bool) bool {
	for name, text := range c.pending {
		fmt.Fprintf(c.out, "%s did not end:\n%s", name, strings.Join(text, ""))
	}
	for _, name := range c.failed {
		fmt.Fprintln(c.out, "--- FAIL:", name)
	}
	for _, name := range c.skipped {
		fmt.Fprintln(c.out, "--- SKIP:", name)
	}
	fmt.Fprintln(c.out, c.line())
	return len(c.failed) == 0 && c.passed > 0 && (!strict || len(c.skipped) == 0)
}
