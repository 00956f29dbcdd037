package backend

import "context"

// Functions knows what the nodes of a database perform.
type Functions interface {
	// Declare says to which targets this node performs commands, in place of what it has
	// said before. It is forgotten with the node, when that ends or is dead.
	Declare(ctx context.Context, targets []string) error
	// Declared returns the targets of all live nodes, in order.
	Declared(ctx context.Context) ([]string, error)
	// Unclaimed counts the commands that are pending and that no node has, by target,
	// which is the name: limit of them.
	Unclaimed(ctx context.Context, limit int) ([]Count, error)
}
