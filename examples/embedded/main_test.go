package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecondRunFindsTheFirstOrder(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.db")
	var first, second bytes.Buffer
	if err := run(t.Context(), file, &first); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), file, &second); err != nil {
		t.Fatal(err)
	}
	want := `completed: {"address":"1 Main Street","cents":1999,"parcel":"p-1","receipt":"r-1"}` + "\n"
	if got := first.String(); !strings.HasSuffix(got, want) || strings.Count(got, "charging") != 1 {
		t.Errorf("first run:\n%s", got)
	}
	if got := second.String(); !strings.HasSuffix(got, want) || strings.Contains(got, "charging") || !strings.Contains(got, "new: false") {
		t.Errorf("second run:\n%s", got)
	}
}
