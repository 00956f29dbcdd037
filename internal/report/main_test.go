package main

import (
	"io"
	"strings"
	"testing"
)

const input = `{"Action":"output","Package":"p/a","Test":"TestX","Output":"    x_test.go:1: report: stop: 2 s\n"}
{"Action":"output","Package":"p/a","Test":"TestX","Output":"    x_test.go:1: report: fact 1: yes\n"}
{"Action":"output","Package":"p/a","Test":"TestX","Output":"    x_test.go:1: report: stop: 1 s\n"}
{"Action":"pass","Package":"p/a","Test":"TestX","Elapsed":1}
{"Action":"pass","Package":"p/a","Elapsed":1.6}
{"Action":"output","Package":"p/b","Test":"TestY","Output":"it broke\n"}
{"Action":"fail","Package":"p/b","Test":"TestY"}
{"Action":"skip","Package":"p/b","Test":"TestZ"}
{"Action":"fail","Package":"p/b","Elapsed":3}
`

func TestTheReportHasCountsLinesAndFailures(t *testing.T) {
	r := newReport(io.Discard)
	if err := r.read(strings.NewReader(input)); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	r.print(&b)
	want := `
| package | passed | failed | skipped | seconds |
|---|---|---|---|---|
| p/a | 1 | 0 | 0 | 2 |
| p/b | 0 | 2 | 1 | 3 |

- fact 1: yes
- stop: 2 s
- stop: 1 s
- skipped: p/b TestZ
- FAILED: p/b TestY
- FAILED: p/b 

` + "```\nit broke\n```\n"
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}
