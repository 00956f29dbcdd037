package service

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Activities keeps what applications note of their instances (D8): beside the stream,
// each change in a commit of its own, with its audit. It is no turn, and no turn looks
// there.
type Activities struct {
	Activities backend.Activities
	Clock      backend.Clock
}

// Attach notes something of an instance. A repeat with the id of one that is there
// changes nothing, and gives that one. Problems: activity.invalid, activity.too-large,
// activity.limit, instance.unknown.
func (s *Activities) Attach(ctx context.Context, a backend.Activity) (made backend.Activity, isNew bool, err error) {
	switch {
	case !validID(a.ID):
		return a, false, problem.New(problem.Invalid, "activity.invalid", "%.40q is no id of an activity", a.ID).
			WithHint("1 to %d bytes without spaces and control characters", signal.MaxIDBytes)
	case a.Name == "":
		return a, false, problem.New(problem.Invalid, "activity.invalid", "activity %s has no name", a.ID).WithHint("say what it is")
	}
	if err = plain(a.ID, a.Status); err != nil {
		return a, false, err
	}
	if a.Data, err = dataOf(a.ID, a.Data); err != nil {
		return a, false, err
	}
	now := s.Clock.Now()
	by := audit.As(audit.Row(ctx, now, "attach-activity", a.ID, a.InstanceID), a.UpdatedBy)
	a.UpdatedBy = audit.Name(a.UpdatedBy)
	a.Version, a.CreatedAt, a.CreatedBy, a.UpdatedAt = 1, now, a.UpdatedBy, now
	err = s.Activities.AttachActivity(ctx, a, by)
	switch {
	case errors.Is(err, store.ErrDuplicate):
		made, err = s.Activities.Activity(ctx, a.InstanceID, a.ID)
		return made, false, err
	case errors.Is(err, store.ErrNotFound):
		err = problem.Wrap(err, problem.NotFound, "instance.unknown", "instance %s does not exist", a.InstanceID)
	case errors.Is(err, backend.ErrFull):
		err = problem.Wrap(err, problem.Conflict, "activity.limit", "instance %s has %d activities, as many as it may", a.InstanceID, backend.MaxActivities).
			WithHint("update one that is there")
	case err == nil:
		made, err = s.Activities.Activity(ctx, a.InstanceID, a.ID)
	}
	return made, true, err
}

// validID says whether a path can name it.
func validID(id string) bool {
	return id != "" && len(id) <= signal.MaxIDBytes && utf8.ValidString(id) && id != "." && id != ".." &&
		!strings.ContainsFunc(id, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

// plain refuses a status that is more than words: it is shown in lists.
func plain(id, status string) error {
	if i := strings.IndexFunc(status, unicode.IsControl); i >= 0 {
		return problem.New(problem.Invalid, "activity.invalid", "the status of activity %s has a control character at byte %d", id, i).
			WithHint("say it in one line, and keep the rest in data")
	}
	return nil
}

// dataOf are data as they are kept; null are none.
func dataOf(id string, data []byte) ([]byte, error) {
	if data = bytes.TrimSpace(data); len(data) == 0 || string(data) == "null" {
		return nil, nil
	}
	if len(data) > backend.MaxActivityBytes {
		return nil, problem.New(problem.TooLarge, "activity.too-large", "the data of activity %s have %d bytes, more than %d", id, len(data), backend.MaxActivityBytes).
			WithHint("keep them in a table of the application, and note their key")
	}
	return data, nil
}

// Change says how an activity stands, or freezes it. A repeat of the change that was made last
// changes nothing. Problems: activity.unknown, activity.frozen, activity.version,
// activity.too-large, activity.invalid.
func (s *Activities) Change(ctx context.Context, c backend.ActivityChange) (backend.Activity, error) {
	for {
		old, err := s.Activities.Activity(ctx, c.InstanceID, c.ID)
		if errors.Is(err, store.ErrNotFound) {
			return old, problem.Wrap(err, problem.NotFound, "activity.unknown", "instance %s has no activity %s", c.InstanceID, c.ID)
		}
		if err != nil {
			return old, err
		}
		next, err := changed(&c, old)
		if err != nil || next.Version == old.Version {
			return next, err
		}
		action := "update-activity"
		if next.UpdatedAt = s.Clock.Now(); c.Freeze {
			action, next.FrozenAt = "freeze-activity", next.UpdatedAt
		}
		row := audit.As(audit.Row(ctx, next.UpdatedAt, action, c.ID, c.InstanceID), c.Actor)
		if err = s.Activities.ChangeActivity(ctx, next, row); err == nil {
			return s.Activities.Activity(ctx, c.InstanceID, c.ID)
		}
		if !errors.Is(err, store.ErrStale) { // else the next look says why
			return old, err
		}
	}
}

// changed is an activity as it is then: the same when the change has been made already.
func changed(c *backend.ActivityChange, old backend.Activity) (backend.Activity, error) {
	next := old
	next.Version, next.UpdatedBy = c.Version+1, audit.Name(c.Actor)
	if c.Status != nil {
		if err := plain(c.ID, *c.Status); err != nil {
			return old, err
		}
		next.Status = *c.Status
	}
	if c.Data != nil {
		var err error
		if next.Data, err = dataOf(c.ID, c.Data); err != nil {
			return old, err
		}
	}
	if next.Version == old.Version && next.Status == old.Status && bytes.Equal(next.Data, old.Data) && next.UpdatedBy == old.UpdatedBy && c.Freeze == !old.FrozenAt.IsZero() {
		return old, nil
	}
	switch {
	case !old.FrozenAt.IsZero():
		return old, problem.New(problem.Conflict, "activity.frozen", "activity %s of %s is frozen since %s", c.ID, c.InstanceID, old.FrozenAt.UTC().Format("2006-01-02T15:04:05Z07:00")).
			WithHint("attach another")
	case old.Version != c.Version:
		return old, problem.New(problem.Conflict, "activity.version", "activity %s of %s has version %d, not %d", c.ID, c.InstanceID, old.Version, c.Version).
			WithHint("read it again, and decide again")
	}
	return next, nil
}
