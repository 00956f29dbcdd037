package main

import (
	"strings"
	"sync"
	"testing"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
)

// safe is a text that the program and its functions write at the same time.
type safe struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *safe) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func TestSecondRunFindsTheFirstOrder(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		var first, second safe
		for _, out := range []*safe{&first, &second} {
			db, err := testdb.Open(t.Context(), place)
			if err != nil {
				t.Fatal(err)
			}
			if err := run(t.Context(), db.Store, out); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		want := `completed: {"address":"1 Main Street","cents":1999,"parcel":"p-1","receipt":"r-1"}` + "\n" + `completed: "thanked to \"1 Main Street\""` + "\n"
		if got := first.String(); !strings.HasSuffix(got, want) || strings.Count(got, "charging") != 1 {
			t.Errorf("first run:\n%s", got)
		}
		if got := second.String(); !strings.HasSuffix(got, want) || strings.Contains(got, "charging") || !strings.Contains(got, "new: false") {
			t.Errorf("second run:\n%s", got)
		}
	})
}
