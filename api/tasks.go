package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

func (s taskAPI) taskOperations(h huma.API) {
	register(s.service, h, operation("list-tasks", http.MethodGet, "/v1/tasks", taskTag,
		"List human tasks, most urgent first"), s.listTasks)
	register(s.service, h, operation("get-task", http.MethodGet, "/v1/tasks/{id}", taskTag,
		"Show a task and what happened to it", http.StatusNotFound, http.StatusConflict), s.getTask)
	register(s.service, h, operation("claim-task", http.MethodPost, "/v1/tasks/{id}/claim", taskTag,
		"Reserve a task for a user", http.StatusNotFound, http.StatusConflict), s.claimTask)
	register(s.service, h, operation("comment-task", http.MethodPost, "/v1/tasks/{id}/comments", taskTag,
		"Say something of an open task, which stays in its history", http.StatusNotFound, http.StatusConflict), s.commentTask)
	register(s.service, h, operation("release-task", http.MethodPost, "/v1/tasks/{id}/release", taskTag,
		"Give a task back to its candidates", http.StatusNotFound, http.StatusConflict), s.releaseTask)
	register(s.service, h, operation("delegate-task", http.MethodPost, "/v1/tasks/{id}/delegate", taskTag,
		"Hand a task on to another user", http.StatusNotFound, http.StatusConflict), s.delegateTask)
	register(s.service, h, operation("reassign-task", http.MethodPost, "/v1/tasks/{id}/reassign", taskTag,
		"Give a task to a user, whoever has it: an administrator's", http.StatusNotFound, http.StatusConflict), s.reassignTask)
	register(s.service, h, operation("claim-next-tasks", http.MethodPost, "/v1/tasks/claim-next", taskTag,
		"Reserve the most urgent tasks that a user may do"), s.claimNext)
	complete := operation("complete-task", http.MethodPost, "/v1/tasks/{id}/complete", taskTag,
		"Answer a task", http.StatusNotFound, http.StatusConflict)
	complete.Description = "Only the user it is reserved for may. A second completion changes nothing: " +
		"it is the problem task.completed, with completedBy and completedAt."
	register(s.service, h, complete, s.completeTask)
}

// allTasks is the status that is any.
const allTasks = "all"

type listTasksInput struct {
	Paging
	Status     string   `query:"status" enum:"open,all,ready,reserved,completed,cancelled,expired" default:"open" doc:"open: ready or reserved; all: those that have ended, too."`
	InstanceID string   `query:"instance" maxLength:"128"`
	Assignee   string   `query:"assignee" maxLength:"256"`
	User       string   `query:"user" maxLength:"256" doc:"Their list of tasks: those assigned to them, and those that they or one of their groups may claim."`
	Groups     []string `query:"group,explode" maxItems:"100" doc:"A group of the user; may be repeated. Without a user: what a member of the group may claim."`
}

func (s taskAPI) listTasks(ctx context.Context, in *listTasksInput) (*answer[client.Page[client.Task]], error) {
	status := in.Status
	if status == allTasks {
		status = ""
	}
	if who := principal.Of(ctx); onlyTheirs(who) {
		if in.User != "" || len(in.Groups) > 0 {
			if err := yourself(ctx, in.User, in.Groups); err != nil {
				return nil, err
			}
		}
		in.User, in.Groups = who.Name, who.Groups
	}
	p, err := s.Reader.Tasks.Tasks(ctx, backend.TaskQuery{
		Status: status, InstanceID: in.InstanceID, Assignee: in.Assignee, User: in.User, Groups: in.Groups, After: in.After, Limit: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	return ok(client.Page[client.Task]{Items: convert(p.Items, toTask), Next: p.Next}), nil
}

func (s taskAPI) getTask(ctx context.Context, in *ByID) (*answer[client.TaskDetail], error) {
	t, err := s.readable(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return s.taskDetail(ctx, t)
}

// readable is a task that who asks may read.
func (s *service) readable(ctx context.Context, id string) (projections.Task, error) {
	t, err := s.Reader.Tasks.Task(ctx, id)
	if err == nil {
		err = mayRead(principal.Of(ctx), t)
	}
	return t, s.completedBy(ctx, id, missing(err, "task.unknown", "task %s does not exist", clip(id)))
}

func (s taskAPI) taskDetail(ctx context.Context, t projections.Task) (*answer[client.TaskDetail], error) {
	events, err := s.Reader.Tasks.TaskEvents(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	return ok(client.TaskDetail{Task: toTask(t), Events: convert(events, toTaskEvent)}), nil
}

type claimInput struct {
	ByID
	Body client.ClaimRequest
}

func (s taskAPI) claimTask(ctx context.Context, in *claimInput) (*answer[client.TaskDetail], error) {
	if err := yourself(ctx, in.Body.User, in.Body.Groups); err != nil {
		return nil, err
	}
	t, err := s.Tasks.ClaimTask(ctx, in.ID, in.Body.User, in.Body.Groups)
	if err != nil {
		return nil, s.completedBy(ctx, in.ID, err)
	}
	return s.taskDetail(ctx, t)
}

type commentInput struct {
	ByID
	Body client.CommentRequest
}

func (s taskAPI) commentTask(ctx context.Context, in *commentInput) (*answer[client.TaskDetail], error) {
	if err := yourself(ctx, in.Body.User, nil); err != nil {
		return nil, err
	}
	if _, err := s.getTask(ctx, &in.ByID); err != nil { // nobody says anything of what they do not see
		return nil, err
	}
	t, err := s.Commenter.CommentTask(ctx, in.ID, in.Body.User, in.Body.Text)
	if err != nil {
		return nil, s.completedBy(ctx, in.ID, err)
	}
	return s.taskDetail(ctx, t)
}

type releaseInput struct {
	ByID
	Body client.ReleaseRequest
}

func (s taskAPI) releaseTask(ctx context.Context, in *releaseInput) (*answer[client.TaskDetail], error) {
	if err := yourself(ctx, in.Body.User, nil); err != nil {
		return nil, err
	}
	t, err := s.Tasks.ReleaseTask(ctx, in.ID, in.Body.User)
	if err != nil {
		return nil, s.completedBy(ctx, in.ID, err)
	}
	return s.taskDetail(ctx, t)
}

type completeInput struct {
	ByID
	Body client.CompleteRequest
}

func (s taskAPI) completeTask(ctx context.Context, in *completeInput) (*answer[client.TaskDetail], error) {
	if err := yourself(ctx, in.Body.User, in.Body.Groups); err != nil {
		return nil, err
	}
	groups := in.Body.Groups
	if who := principal.Of(ctx); groups == nil && who.Name != "" && !who.Speaks { // what they are in is known, and may be none
		groups = append([]string{}, who.Groups...)
	}
	t, err := s.Tasks.CompleteTask(ctx, in.ID, in.Body.User, groups, in.Body.Outcome, in.Body.Data)
	if err != nil {
		return nil, s.completedBy(ctx, in.ID, err)
	}
	return s.taskDetail(ctx, t)
}

type delegateInput struct {
	ByID
	Body client.DelegateRequest
}

func (s taskAPI) delegateTask(ctx context.Context, in *delegateInput) (*answer[client.TaskDetail], error) {
	if err := yourself(ctx, in.Body.User, nil); err != nil {
		return nil, err
	}
	t, err := s.Tasks.DelegateTask(ctx, in.ID, in.Body.User, in.Body.To)
	if err != nil {
		return nil, s.completedBy(ctx, in.ID, err)
	}
	return s.taskDetail(ctx, t)
}

type reassignInput struct {
	ByID
	Body client.ReassignRequest
}

func (s taskAPI) reassignTask(ctx context.Context, in *reassignInput) (*answer[client.TaskDetail], error) {
	if err := yourself(ctx, in.Body.User, nil); err != nil {
		return nil, err
	}
	t, err := s.Tasks.ReassignTask(ctx, in.ID, in.Body.User, in.Body.To)
	if err != nil {
		return nil, s.completedBy(ctx, in.ID, err)
	}
	return s.taskDetail(ctx, t)
}

type claimNextInput struct {
	Body client.ClaimNextRequest
}

// claimNext answers with what the user has got, which may be nothing.
func (s taskAPI) claimNext(ctx context.Context, in *claimNextInput) (*answer[client.Page[client.Task]], error) {
	if err := yourself(ctx, in.Body.User, in.Body.Groups); err != nil {
		return nil, err
	}
	list, err := s.Tasks.ClaimNext(ctx, in.Body.User, in.Body.Groups, scopeOf(ctx), max(in.Body.Count, 1))
	if err != nil {
		return nil, err
	}
	return ok(client.Page[client.Task]{Items: convert(list, toTask)}), nil
}
