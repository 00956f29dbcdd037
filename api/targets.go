package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/runtime/admission"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Dispatcher decides which command of this node is sent next.
type Dispatcher interface {
	Targets() []admission.State
	ResetTarget(name string) error
	// WaitsFor says what a command waits for on this node; "" = it does not.
	WaitsFor(instance string, position int64) string
	// Unserved reports whether no live node of the database performs commands for a target.
	Unserved(ctx context.Context, target string) bool
}

func (s operatorAPI) targetOperations(h huma.API) {
	const path, tag = "/v1/targets", "targets"
	list := operation("list-targets", http.MethodGet, path, tag, "List where this node sends commands, with circuit breakers and what waits")
	list.Description = "Functions, and methods and paths of hosts. Breakers, places and lines are each node's own; a node remembers what it has sent to."
	register(s.service, h, list, s.listTargets)
	register(s.service, h, operation("list-nodes", http.MethodGet, "/v1/nodes", "nodes",
		"List the nodes on the database, with their last sign of life"), s.listNodes)
	reset := operation("reset-target", http.MethodPost, path+"/reset", tag, "Close the circuit breaker of a target on this node", http.StatusNotFound)
	register(s.service, h, reset, s.resetTarget)
}

func (s operatorAPI) listTargets(context.Context, *struct{}) (*answer[client.Page[client.Target]], error) {
	return ok(client.Page[client.Target]{Items: convert(s.Dispatcher.Targets(), toTarget)}), nil
}

func toTarget(d admission.State) client.Target {
	return client.Target{
		Name: d.Target, Host: d.Host, Breaker: d.Breaker, Failures: d.Failures, OpenUntil: utc(d.OpenUntil),
		Running: d.Running, Waiting: d.Waiting, WaitsFor: d.WaitsFor,
	}
}

func (s operatorAPI) listNodes(ctx context.Context, _ *struct{}) (*answer[client.Page[client.Node]], error) {
	rows, err := s.Reader.Members.Members(ctx)
	return ok(client.Page[client.Node]{Items: convert(rows, toNode)}), err
}

func toNode(n backend.Node) client.Node {
	return client.Node{Name: n.Name, Version: n.Version, StartedAt: n.StartedAt.UTC(), SeenAt: n.SeenAt.UTC(), Held: n.Held}
}

type resetTargetInput struct {
	Body client.ResetTargetRequest
}

func (s operatorAPI) resetTarget(ctx context.Context, in *resetTargetInput) (*struct{}, error) {
	named := func(d admission.State) bool { return d.Target == in.Body.Target }
	if slices.ContainsFunc(s.Dispatcher.Targets(), named) { // what cannot be noted is not done
		if err := s.Auditor.Note(ctx, "reset-target", in.Body.Target, "", ""); err != nil {
			return nil, err
		}
	}
	return nil, s.Dispatcher.ResetTarget(in.Body.Target)
}
