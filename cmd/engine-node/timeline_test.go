package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// What is left out of a timeline is said, and where it goes on.
func TestATimelineSaysWhereItEnds(t *testing.T) {
	t.Parallel()
	left := streamMax + 1
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasSuffix(r.URL.Path, "/stream") {
			_, _ = io.WriteString(w, `{"id":"i","status":"waiting"}`)
			return
		}
		after, _ := strconv.Atoi(r.URL.Query().Get("after"))
		end := min(after+streamPage, left)
		next := ""
		if end < left {
			next = fmt.Sprintf(`,"next":"%d"`, end)
		}
		rows := make([]string, 0, streamPage)
		for n := after + 1; n <= end; n++ {
			rows = append(rows, fmt.Sprintf(`{"position":%d}`, n))
		}
		_, _ = io.WriteString(w, `{"items":[`+strings.Join(rows, ",")+`]`+next+`}`)
	}))
	t.Cleanup(node.Close)
	for more, want := range map[int]string{1: "only the first 100000 entries are shown: there may be more behind position 100000\n", 1 - streamMax: ""} {
		left = streamMax + more
		var out, complaints bytes.Buffer
		code := Run(t.Context(), []string{"--server", node.URL, "--json", "show", "i", "--timeline"}, nil, &out, &complaints)
		if code != 0 || complaints.String() != want || strings.Contains(out.String(), `"next": "100000"`) != (want != "") {
			t.Errorf("%d more: %d, %q, ...%s", more, code, &complaints, out.String()[max(0, out.Len()-200):])
		}
	}
}
