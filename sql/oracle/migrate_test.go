package oracle

import (
	"context"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// TestMigrateTellsWhatDoesNotCompile: the database answers that it has made an
// invalid package as if all were well.
func TestMigrateTellsWhatDoesNotCompile(t *testing.T) {
	d := empty(t)
	db, err := aq.Open(aq.Options{DSN: d.DSN()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	pool := db.Shared(1)
	units, err := Installation{}.units()
	if err != nil {
		t.Fatal(err)
	}
	body := -1
	for i, u := range units {
		if strings.HasPrefix(u.text, "CREATE OR REPLACE PACKAGE BODY AQUEDUCT_API") {
			body = i
		}
	}
	sound := units[body].text
	units[body].text = strings.ReplaceAll(sound, "FUNCTION new_id RETURN VARCHAR2 IS", "FUNCTION other_id RETURN VARCHAR2 IS")
	if units[body].text == sound {
		t.Fatal("the package is as it was")
	}
	ctx := context.WithoutCancel(t.Context())
	err = executeAll(ctx, pool, units)
	if problem.CodeOf(err) != "store.invalid" {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{"40_package.sql, line ", "PACKAGE BODY AQUEDUCT_API, line 1", "column 1: PLS-00323"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
	units[body].text = sound
	if err := executeAll(ctx, pool, units); err != nil {
		t.Errorf("mended: %v", err)
	}
}
