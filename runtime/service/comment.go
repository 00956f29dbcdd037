package service

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Limits of what people say of tasks.
const (
	MaxComments = 100   // of one task
	MaxComment  = 2_000 // characters of one
)

const taskCommented = "commented"

// CommentTask adds to the history of an open task what somebody says of it: nobody takes
// it away. Who has the task keeps it. Who says again what they have just said, by a second
// press or a retry, has said it once. The caller must have made sure that the user may see
// the task. Problems: task.unknown, task.completed, task.closed, task.user-missing,
// task.comment, task.comments.
func (ts *Tasks) CommentTask(ctx context.Context, id, user, text string) (projections.Task, error) {
	switch {
	case user == "":
		return projections.Task{}, problem.New(problem.Invalid, "task.user-missing", "commenting on task %s needs a user", id)
	case strings.TrimSpace(text) == "" || !utf8.ValidString(text) || utf8.RuneCountInString(text) > MaxComment:
		return projections.Task{}, problem.New(problem.Invalid, "task.comment", "a comment has 1 to %d characters of UTF-8", MaxComment)
	}
	data, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		return projections.Task{}, err
	}
	return ts.editTask(ctx, id, func(t projections.Task) (*store.TaskEdit, error) {
		events, err := ts.Tasks.TaskEvents(ctx, id)
		if err != nil {
			return nil, err
		}
		if n := len(events); n > 0 && events[n-1].Event == taskCommented && events[n-1].Actor == user && bytes.Equal(events[n-1].Data, data) {
			return nil, nil
		}
		said := 0
		for _, e := range events {
			if e.Event == taskCommented {
				said++
			}
		}
		if said >= MaxComments {
			return nil, problem.New(problem.Conflict, "task.comments", "task %s has %d comments, and may have no more", id, said)
		}
		return &store.TaskEdit{Status: t.Status, Assignee: t.Assignee, Role: t.Role, Event: projections.TaskEvent{Event: taskCommented, Actor: user, Data: data}}, nil
	})
}
