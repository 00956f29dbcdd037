package service

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// oneActivity keeps the activity that was written last.
type oneActivity struct {
	others
	kept backend.Activity
}

// others is what the test asks for nothing of.
type others interface {
	Activities(ctx context.Context, instanceID, after string, limit int) (backend.Page[backend.Activity], error)
}

func (o *oneActivity) AttachActivity(_ context.Context, a backend.Activity, _ store.Audit) error {
	o.kept = a
	return nil
}

func (o *oneActivity) ChangeActivity(ctx context.Context, a backend.Activity, by store.Audit) error {
	return o.AttachActivity(ctx, a, by)
}

func (o *oneActivity) Activity(context.Context, string, string) (backend.Activity, error) {
	return o.kept, nil
}

type epoch struct{}

func (epoch) Now() time.Time { return time.Unix(0, 0) }

// A name of 256 bytes, as certificates have, is no reason to refuse an activity: its columns
// hold the beginning, and a repeat is known.
func TestALongNameNotesActivities(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 256)
	ctx := t.Context()
	one := &oneActivity{}
	s := &Activities{Activities: one, Clock: epoch{}}
	if _, _, err := s.Attach(ctx, backend.Activity{InstanceID: "i", ID: "a", Name: "inspection", UpdatedBy: long}); err != nil {
		t.Fatal(err)
	}
	status := "begun"
	for range 2 {
		if _, err := s.Change(ctx, backend.ActivityChange{InstanceID: "i", ID: "a", Version: 1, Status: &status, Actor: long}); err != nil {
			t.Fatal(err)
		}
	}
	if a := one.kept; a.CreatedBy != long[:128] || a.UpdatedBy != long[:128] || a.Version != 2 {
		t.Errorf("%+v", a)
	}
}
