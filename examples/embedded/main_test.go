package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/internal/places"
)

func TestSecondRunFindsTheFirstOrder(t *testing.T) {
	t.Parallel()
	places.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		var first, second bytes.Buffer
		for _, out := range []*bytes.Buffer{&first, &second} {
			db, err := places.Open(t.Context(), place)
			if err != nil {
				t.Fatal(err)
			}
			if err := run(t.Context(), db, out); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		want := `completed: {"address":"1 Main Street","cents":1999,"parcel":"p-1","receipt":"r-1"}` + "\n"
		if got := first.String(); !strings.HasSuffix(got, want) || strings.Count(got, "charging") != 1 {
			t.Errorf("first run:\n%s", got)
		}
		if got := second.String(); !strings.HasSuffix(got, want) || strings.Contains(got, "charging") || !strings.Contains(got, "new: false") {
			t.Errorf("second run:\n%s", got)
		}
	})
}
