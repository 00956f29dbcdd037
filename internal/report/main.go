// Program report reads the JSON of `go test -json` and prints a report that can
// be pasted into an issue: what was tested, how it went, and every line that a
// test has logged as "report: ...".
//
// A failed test or package makes it exit with status 1, and its output is part
// of the report. With -strict a skipped test does so, too.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// maxLineBytes bounds one line of the input.
const maxLineBytes = 16 << 20

func main() {
	strict := flag.Bool("strict", false, "take a skipped test for a failure")
	commit := flag.String("commit", "unknown", "what was tested")
	database := flag.String("database", "the stand-in", "where")
	flag.Parse()
	r := newReport(os.Stderr)
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
	fmt.Printf("\n## Oracle suite\n\ncommit %s, %s, %s %s/%s, on %s\n", *commit, time.Now().UTC().Format("2006-01-02 15:04 UTC"),
		runtime.Version(), runtime.GOOS, runtime.GOARCH, *database)
	r.print(os.Stdout)
	if len(r.failed) > 0 || *strict && len(r.skipped) > 0 {
		os.Exit(1)
	}
}

// event is one line of `go test -json`.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
}

// tally is what happened in one package.
type tally struct {
	passed, failed, skipped int
	seconds                 float64
}

type report struct {
	packages map[string]*tally
	lines    []string // of tests, in the order of their subjects
	failed   []string
	skipped  []string
	output   map[string][]string // of tests that have not ended
	errors   []string            // output of what failed
	progress io.Writer           // a line for each package
}

func newReport(progress io.Writer) *report {
	return &report{progress: progress, packages: map[string]*tally{}, output: map[string][]string{}}
}

func (r *report) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLineBytes)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Action == "" {
			r.errors = append(r.errors, lines.Text())
			continue
		}
		r.take(e)
	}
	return lines.Err()
}

// mark begins a line of the report in the output of a test.
const mark = "report: "

func (r *report) take(e event) {
	name := e.Package + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		if _, line, ok := strings.Cut(e.Output, mark); ok {
			r.lines = append(r.lines, strings.TrimSpace(line))
		}
		r.output[name] = append(r.output[name], e.Output)
		return
	case "pass", "fail", "skip":
	default:
		return
	}
	p := r.packages[e.Package]
	if p == nil {
		p = &tally{}
		r.packages[e.Package] = p
	}
	if e.Test == "" {
		p.seconds = e.Elapsed
		fmt.Fprintf(r.progress, "%s %s %.0f s\n", e.Action, e.Package, e.Elapsed)
	}
	switch {
	case e.Action == "fail":
		p.failed++
		r.failed = append(r.failed, name)
		r.errors = append(r.errors, r.output[name]...)
	case e.Test == "":
	case e.Action == "pass":
		p.passed++
	default:
		p.skipped++
		r.skipped = append(r.skipped, name)
	}
	delete(r.output, name)
}

func (r *report) print(out io.Writer) {
	fmt.Fprintf(out, "\n| package | passed | failed | skipped | seconds |\n|---|---|---|---|---|\n")
	names := make([]string, 0, len(r.packages))
	for name := range r.packages {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p := r.packages[name]
		if p.passed+p.failed+p.skipped > 0 {
			fmt.Fprintf(out, "| %s | %d | %d | %d | %.0f |\n", name, p.passed, p.failed, p.skipped, p.seconds)
		}
	}
	fmt.Fprintln(out)
	// One subject's lines stay in the order in which they came.
	subject := func(line string) string { s, _, _ := strings.Cut(line, ":"); s, _, _ = strings.Cut(s, " "); return s }
	slices.SortStableFunc(r.lines, func(a, b string) int { return cmp.Compare(subject(a), subject(b)) })
	for _, line := range r.lines {
		fmt.Fprintln(out, "-", line)
	}
	for _, list := range []struct {
		title string
		names []string
	}{{"skipped", r.skipped}, {"FAILED", r.failed}} {
		for _, name := range list.names {
			fmt.Fprintf(out, "- %s: %s\n", list.title, name)
		}
	}
	if len(r.errors) > 0 {
		fmt.Fprintf(out, "\n```\n%s```\n", strings.Join(r.errors, ""))
	}
}
