package shapes

import (
	"os"
	"testing"
)

// TestTextsSayWhatFieldsSay: who adds a field to a row has the statements and scripts that
// name its columns written by AQUEDUCT_UPDATE=1.
func TestTextsSayWhatFieldsSay(t *testing.T) {
	t.Parallel()
	save := os.Getenv("AQUEDUCT_UPDATE") != ""
	stale, err := write("../..", save)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range stale {
		if !save {
			t.Errorf("%s is not as its fields say: AQUEDUCT_UPDATE=1 go test ./internal/shapes", file)
		}
	}
}
