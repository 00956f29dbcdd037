package api

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/humantask"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Headers of a request that say who acts and why, and which request it is.
const (
	actorHeader   = "X-Aqueduct-Actor"
	reasonHeader  = "X-Aqueduct-Reason"
	requestHeader = "X-Request-Id"
)

// maxReason is how long a reason may be, in characters.
const maxReason = 1000

// admit says who makes a request, and refuses who may not. A context that says so
// already is that of a program in the same process, which needs no leave.
func (s *service) admit(w http.ResponseWriter, r *http.Request, operation string) (who principal.Principal, err error) {
	shown := access.Shown{Authorization: r.Header.Get("Authorization")}
	if r.TLS != nil {
		shown.Certificates = r.TLS.PeerCertificates
	}
	switch headers := len(r.Header.Values("Authorization")); {
	case headers > 1:
		err = invalid("header.Authorization", "two headers say who asks: one may")
	case headers == 1 && len(shown.Certificates) > 0:
		err = invalid("header.Authorization", "a header and a certificate say who asks: one may")
	case principal.In(r.Context()):
		who = principal.Of(r.Context())
	case s.Access == nil:
		who = principal.Principal{Kind: principal.Nobody, Via: principal.API}
	default:
		who, err = s.Access.Admit(r.Context(), shown, operation)
	}
	if who.Via == principal.API {
		who.Via = principal.Way(r.Context(), principal.API)
	}
	who.Claimed, who.Reason, who.Request = r.Header.Get(actorHeader), r.Header.Get(reasonHeader), w.Header().Get(requestHeader)
	if err == nil && (!utf8.ValidString(who.Reason) || utf8.RuneCountInString(who.Reason) > maxReason || containsControl(who.Reason)) {
		err = invalid("header."+reasonHeader, "the reason is not a text of UTF-8 of up to %d characters", maxReason)
	}
	return who, err
}

func containsControl(s string) bool {
	for _, c := range s {
		if unicode.IsControl(c) {
			return true
		}
	}
	return false
}

// actions are the words of the audit for operations that have another there. What is asked
// of an instance stands in the request.
var actions = map[string]string{
	"replay-dead-letter": "replay", "discard-dead-letter": "discard", "edit-dead-letter": "edit-letter", "migrate-instances": "migrate",
	"publish-definition": "publish", publishAll: "publish", "reassign-task": "reassign", rewindInstance: "rewind",
}

// Operations that the audit or the budget of memory knows by name.
const (
	operateInstance = "operate-instance"
	rewindInstance  = "rewind-instance"
)

// maxAsked is how much is read of a request that is refused, to say what it asks for.
const maxAsked = 4 << 10

type recorderKey struct{}

// asks notes what a request asks of an instance.
func asks(ctx context.Context, operation string) {
	if out, ok := ctx.Value(recorderKey{}).(*recorder); ok {
		out.asked = operation
	}
}

// remember notes with which code a request is refused.
func remember(ctx context.Context, status int, code string) {
	if out, ok := ctx.Value(recorderKey{}).(*recorder); ok && (status == http.StatusForbidden || status == http.StatusConflict) {
		out.refusal = code
	}
}

// noteRefusal has it in the audit that somebody was refused. What is only read is in
// none.
func (s *service) noteRefusal(r *http.Request, who principal.Principal, route, asked, code string) {
	if code == "" || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return
	}
	operation := s.operations[route]
	action := cmp.Or(actions[operation], operation)
	if operation == operateInstance && (asked == runNow || slices.Contains(engine.Operations, engine.Operation(asked))) {
		action = asked
	}
	ctx := principal.With(context.WithoutCancel(r.Context()), who)
	target, instance := s.subject(ctx, route, r.URL)
	if err := s.Auditor.Note(ctx, action, target, instance, code); err != nil {
		s.Log.Error("a refusal is not in the audit", "operation", operation, "user", who.Name, "code", code, "error", err)
	}
}

// subject is what a request is about, and of which instance, by its path: as the audit
// names it. Of what has no name yet it is the path; of what is not there no instance.
func (s *service) subject(ctx context.Context, route string, at *url.URL) (target, instance string) {
	var named []string
	pattern, path := strings.Split(route[strings.Index(route, "/")+1:], "/"), strings.Split(at.EscapedPath(), "/")
	for i, part := range pattern {
		if strings.HasPrefix(part, "{") && i+1 < len(path) {
			value, _ := url.PathUnescape(path[i+1]) // it was read
			named = append(named, value)
		}
	}
	if len(named) == 0 {
		return at.Path, ""
	}
	target = strings.Join(named, "/")
	switch pattern[1] {
	case "instances":
		if instance = named[0]; len(pattern) > 4 && pattern[3] == "activities" {
			target = named[1]
		}
	case "tasks":
		t, _ := s.Reader.Tasks.Task(ctx, target)
		instance = t.InstanceID
	case "dead-letters":
		d, _ := s.Reader.DeadLetters.DeadLetter(ctx, target)
		instance = d.InstanceID
	case "lifecycles":
		i, _ := s.Reader.Instances.Started(ctx, named[0]+"/"+named[1], named[2], signal.LifecycleKey)
		instance = i.ID
	}
	return target, instance
}

// requested is what a request that was not served asks of an instance; "" = that cannot be read.
func requested(r *http.Request) string {
	var body client.OperationRequest
	_ = jsonv2.UnmarshalRead(io.LimitReader(r.Body, maxAsked), &body) // what cannot be read asks for nothing
	return body.Operation
}

// actor is who has done what a body says that somebody has done.
func actor(ctx context.Context, said string) string {
	if who := principal.Of(ctx); who.Name != "" && (!who.Speaks || said == "") {
		return who.Actor()
	}
	return said
}

// yourself refuses who works on tasks as somebody that they are not, or as a member of
// a group that they are not of. Where nobody is asked who they are, what they say counts,
// and so it does of those who may speak for others.
func yourself(ctx context.Context, user string, groups []string) error {
	who := principal.Of(ctx)
	if who.Name == "" || who.Speaks {
		return nil
	}
	if user != "" && user != who.Name {
		return problem.New(problem.Denied, "access.not-you", "%s may not work on tasks as %s", who.Name, clip(user)).
			WithHint("who may speak for others has one of the roles %s, %s", access.Application, access.Admin)
	}
	for _, g := range groups {
		if !slices.Contains(who.Groups, g) {
			return problem.New(problem.Denied, "access.not-you", "%s is not in the group %s", who.Name, clip(g))
		}
	}
	return nil
}

// onlyTheirs says whether somebody sees of tasks only those that they may do.
func onlyTheirs(who principal.Principal) bool {
	return len(who.Roles) > 0 && !seesAll(who, who.Scope)
}

// seesAll says whether somebody sees all tasks of a scope.
func seesAll(who principal.Principal, scope []string) bool {
	return access.Cover(who.Roles, scope, access.Viewer, access.Operator, access.Application, access.Admin)
}

// mayRead says why somebody may not read a task; nil = they may. Who could have claimed it
// hears who was faster, whatever they ask of it; for who could not it is not there.
func mayRead(who principal.Principal, t projections.Task) error {
	namespace, _, _ := strings.Cut(t.Definition, "/")
	if len(who.Roles) == 0 || seesAll(who, []string{namespace}) || t.Assignee == who.Name || t.EndedBy == who.Name {
		return nil
	}
	_, candidate := humantask.Candidate(backend.Asked(t), who.Name, who.Groups)
	switch {
	case !candidate:
		return store.ErrNotFound
	case t.Assignee == "":
		return nil
	case t.Status == projections.TaskReserved:
		return problem.New(problem.Conflict, "task.taken", "task %s is reserved for %s", t.ID, t.Assignee)
	case t.Status == projections.TaskCompleted:
		return problem.New(problem.Conflict, "task.completed", "task %s was completed by %s", t.ID, t.EndedBy)
	}
	return problem.New(problem.Conflict, "task.closed", "task %s is %s", t.ID, t.Status)
}
