package client

import (
	"context"
	"time"
)

// Node is a run of a node on the database.
type Node struct {
	Name      string    `json:"name"`
	Version   string    `json:"version,omitempty" doc:"Of its program; absent: it does not say."`
	StartedAt time.Time `json:"startedAt"`
	SeenAt    time.Time `json:"seenAt" doc:"When it gave a sign of life last. On Oracle a node that is silent for 15s counts as dead, and its work goes to others."`
	Held      int       `json:"held" doc:"Messages with its workers, counted up to 10,000; on Oracle at its last sign of life."`
}

// Nodes lists the nodes on the database, by their names.
func (c operatorCalls) Nodes(ctx context.Context) ([]Node, error) {
	p, err := get[Page[Node]](ctx, c.caller, "/v1/nodes", nil)
	return p.Items, err
}

// Metrics returns what the node measures, in the text form of Prometheus.
func (c operatorCalls) Metrics(ctx context.Context) ([]byte, error) {
	return get[[]byte](ctx, c.caller, "/metrics", nil)
}
