// Package tidy is the house style that no compiler knows, as a test: which
// package may import which, what is pure, how long a file and a function may
// be, and what is never committed.
//
// [check] is a pure function of the files it is given; the law it applies is
// data in law.go. A test runs it on the whole repository, and another on small
// forbidden sources, so that every rule is known to fail when it should.
//
// DO NOT CHANGE THE DATA TO MAKE A BUILD PASS.
package tidy

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Limits of the house.
const (
	maxFileLines     = 600 // of a test's file; those of others are in law.go
	maxFuncLines     = 70
	maxTestFuncLines = 120
)

// File is a file of the repository.
type File struct {
	Path   string // from the root, with slashes
	Source []byte
}

// finding is a broken rule.
type finding struct {
	Path string
	Line int // 0 = the whole file
	Rule string
	Text string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %s (%s)", f.Path, f.Line, f.Text, f.Rule)
}

// source is a parsed Go file.
type source struct {
	File
	set *token.FileSet
	ast *ast.File
}

func (s source) dir() string  { return path.Dir(s.Path) }
func (s source) isTest() bool { return strings.HasSuffix(s.Path, "_test.go") }

// find makes a finding at a position of the file.
func (s source) find(at token.Pos, rule, text string, args ...any) finding {
	return finding{Path: s.Path, Line: s.set.Position(at).Line, Rule: rule, Text: fmt.Sprintf(text, args...)}
}

// check returns everything in files that breaks the law, in order of place.
func check(files []File) []finding {
	var found []finding
	documented := map[string]bool{}
	var sleeps []finding
	house, vocabulary := newHouse(), newVocabulary()
	for _, f := range files {
		found = append(found, checkText(f)...)
		house.text(f)
		vocabulary.file(f.Path)
		if !strings.HasSuffix(f.Path, ".go") || strings.Contains("/"+f.Path, "/testdata/") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, f.Path, f.Source, parser.ParseComments)
		if err != nil {
			found = append(found, finding{Path: f.Path, Rule: "go", Text: err.Error()})
			continue
		}
		s := source{File: f, set: set, ast: parsed}
		found = append(found, checkImports(s)...)
		found = append(found, checkPurity(s)...)
		found = append(found, checkKeys(s)...)
		found = append(found, checkAsserts(s)...)
		found = append(found, checkShape(s)...)
		sleeps = append(sleeps, sleepsOf(s)...)
		house.source(s)
		vocabulary.source(s)
		if !s.isTest() {
			documented[s.dir()] = documented[s.dir()] || parsed.Doc != nil
		}
	}
	for dir, ok := range documented {
		if !ok {
			found = append(found, finding{Path: dir, Rule: "package-doc", Text: "the package has no doc comment"})
		}
	}
	found = append(found, checkSleeps(sleeps)...)
	found = append(found, house.check()...)
	found = append(found, vocabulary.check()...)
	slices.SortFunc(found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	})
	return found
}

// The patterns are put together from parts, so that they do not match here.
var (
	unfinished  = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`)
	machinePath = regexp.MustCompile("(^|[\\s\"'`=:(,])/(wor" + `k|roo` + `t|hom` + `e|User` + `s|tm` + `p)/\w`)
	registry    = regexp.MustCompile(`\b((proxy|sum)\.golang` + `\.org|registry\.npm` + `js|pypi` + `\.org|artifact` + `ory|gopro` + `xy\.)`)
)

// checkText looks at every line of any text file.
func checkText(f File) []finding {
	if bytes.IndexByte(f.Source, 0) >= 0 {
		return nil
	}
	var found []finding
	for i, line := range bytes.Split(f.Source, []byte("\n")) {
		for _, p := range []struct {
			pattern    *regexp.Regexp
			rule, text string
		}{
			{unfinished, "unfinished", "do it, or write an issue"},
			{machinePath, "machine-path", "a path of one machine"},
			{registry, "registry", "the address of a package registry"},
		} {
			if m := p.pattern.Find(line); m != nil {
				found = append(found, finding{Path: f.Path, Line: i + 1, Rule: p.rule, Text: p.text + ": " + strconv.Quote(string(m))})
			}
		}
	}
	return found
}

// checkShape looks at names, lengths and layout.
func checkShape(s source) []finding {
	var found []finding
	if lines := bytes.Count(s.Source, []byte("\n")); s.isTest() && lines > maxFileLines {
		found = append(found, finding{Path: s.Path, Rule: "file-lines", Text: fmt.Sprintf("%d lines, the limit is %d", lines, maxFileLines)})
	}
	if formatted, err := format.Source(s.Source); err != nil || !bytes.Equal(formatted, s.Source) {
		found = append(found, finding{Path: s.Path, Rule: "gofmt", Text: "is not formatted by gofmt"})
	}
	name := strings.TrimSuffix(s.ast.Name.Name, "_test")
	if slices.Contains(bannedNames, name) {
		found = append(found, s.find(s.ast.Name.Pos(), "package-name", "package %s says nothing", name))
	}
	limit := maxFuncLines
	if s.isTest() {
		limit = maxTestFuncLines
	}
	for _, d := range s.ast.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		lines := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line + 1
		if lines > limit {
			found = append(found, s.find(f.Pos(), "func-lines", "function %s has %d lines, the limit is %d", f.Name.Name, lines, limit))
		}
	}
	return found
}
