package api

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/store/backend"
)

func (b *node) Edit(context.Context, string, backend.DeadLetterChange) (backend.DeadLetterEdit, error) {
	return backend.DeadLetterEdit{}, b.err
}
func (b *node) DeadLetterEdits(context.Context, string, string, int) (backend.Page[backend.DeadLetterEdit], error) {
	return backend.Page[backend.DeadLetterEdit]{}, b.err
}
