package ocisim_test

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Limits of the house, for C.
const (
	fileLines     = 600
	functionLines = 70
)

// signature begins a function: C is formatted so that only these lines begin at
// the margin with a letter, hold a parenthesis and do not end in a semicolon.
var signature = regexp.MustCompile(`^[A-Za-z].*\(`)

func TestClientKeepsTheHouseStyle(t *testing.T) {
	files, err := filepath.Glob("client/*.[ch]")
	must(t, err)
	if len(files) < 30 {
		t.Fatalf("%d files", len(files))
	}
	functions := 0
	for _, name := range files {
		f, err := os.Open(name)
		must(t, err)
		defer f.Close()
		var lines []string
		for s := bufio.NewScanner(f); s.Scan(); {
			lines = append(lines, s.Text())
		}
		if len(lines) > fileLines {
			t.Errorf("%s has %d lines", name, len(lines))
		}
		if !strings.HasPrefix(lines[0], "// ") {
			t.Errorf("%s does not say what it is", name)
		}
		if strings.HasSuffix(name, ".c") {
			functions += checkFunctions(t, name, lines)
		}
	}
	if functions < 300 {
		t.Errorf("only %d functions were looked at", functions)
	}
}

// checkFunctions checks that functions are short and documented, and counts them.
func checkFunctions(t *testing.T, name string, lines []string) int {
	found := 0
	for i := 0; i < len(lines); i++ {
		if !signature.MatchString(lines[i]) || strings.HasPrefix(lines[i], "typedef") {
			continue
		}
		head := i
		for i < len(lines) && !strings.HasSuffix(lines[i], "{") && !strings.HasSuffix(lines[i], ";") {
			i++
		}
		if i == len(lines) || strings.HasSuffix(lines[i], ";") {
			continue
		}
		found++
		if head == 0 || !strings.HasPrefix(lines[head-1], "// ") {
			t.Errorf("%s:%d: not documented: %s", name, head+1, lines[head])
		}
		for i < len(lines) && lines[i] != "}" {
			i++
		}
		if n := i - head + 1; n > functionLines {
			t.Errorf("%s:%d: %d lines: %s", name, head+1, n, lines[head])
		}
	}
	return found
}
