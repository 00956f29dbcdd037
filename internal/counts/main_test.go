package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestCounts(t *testing.T) {
	t.Parallel()
	const (
		pass  = `{"Action":"output","Package":"p","Test":"TestA","Output":"quiet\n"}` + "\n" + `{"Action":"pass","Package":"p","Test":"TestA"}` + "\n"
		fail  = `{"Action":"output","Package":"p","Test":"TestB","Output":"loud\n"}` + "\n" + `{"Action":"fail","Package":"p","Test":"TestB"}` + "\n" + `{"Action":"fail","Package":"p"}` + "\n"
		skip  = `{"Action":"skip","Package":"p","Test":"TestC"}` + "\n"
		build = `{"Action":"build-output","ImportPath":"q","Output":"q.go:1: wrong\n"}` + "\n" + `{"Action":"fail","Package":"q","FailedBuild":"q"}` + "\n"
		done  = `{"Action":"output","Package":"p","Output":"PASS\n"}` + "\n" + `{"Action":"output","Package":"p","Output":"ok  \tp\t1s\n"}` + "\n" + `{"Action":"pass","Package":"p"}` + "\n"
		empty = `{"Action":"skip","Package":"r"}` + "\n"
		cut   = `{"Action":"output","Package":"p","Test":"TestD","Output":"half\n"}` + "\n"
	)
	cases := []struct {
		name, in   string
		strict, ok bool
		want       string
	}{
		{"all pass", pass + done + empty, true, true, "ok  \tp\t1s\n1 passed, 0 failed, 0 skipped\n"},
		{"a test fails", pass + fail, false, false, "loud\n--- FAIL: p.TestB\n1 passed, 1 failed, 0 skipped\n"},
		{"a skip", pass + skip, false, true, "--- SKIP: p.TestC\n1 passed, 0 failed, 1 skipped\n"},
		{"a skip, strictly", pass + skip, true, false, "--- SKIP: p.TestC\n1 passed, 0 failed, 1 skipped\n"},
		{"does not build", pass + build, false, false, "q.go:1: wrong\n--- FAIL: q\n1 passed, 1 failed, 0 skipped\n"},
		{"nothing", "", false, false, "0 passed, 0 failed, 0 skipped\n"},
		{"not json", "go: oh\n" + pass, false, true, "go: oh\n1 passed, 0 failed, 0 skipped\n"},
		{"process died", pass + cut + `{"Action":"fail","Package":"p"}`, false, false,
			"p.TestD did not end:\nhalf\n--- FAIL: p\n1 passed, 1 failed, 0 skipped\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			counts := newCounts(&out)
			if err := counts.read(strings.NewReader(c.in)); err != nil {
				t.Fatal(err)
			}
			if ok := counts.report(c.strict); ok != c.ok || out.String() != c.want {
				t.Errorf("got %t\n%s\nwant %t\n%s", ok, out.String(), c.ok, c.want)
			}
		})
	}
	if newCounts(&bytes.Buffer{}).read(strings.NewReader(strings.Repeat("x", maxLineBytes+1))) == nil {
		t.Error("an endless line is read")
	}
}
