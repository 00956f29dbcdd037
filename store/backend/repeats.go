package backend

import "context"

// Repeats counts what is said to an instance again and again, on the entry that has
// recorded it first: a stream does not fill with what changes nothing.
type Repeats interface {
	// Repeated counts once more the entry of an instance that has a signal id, in its
	// Attempts, or returns ErrNotFound.
	Repeated(ctx context.Context, instanceID, signalID string) error
}
