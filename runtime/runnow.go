package runtime

import (
	"context"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/runtime/service"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// sleepingMax is how many pending commands of an instance are looked at for one that
// backs off.
const sleepingMax = 500

// sleeping finds the commands of an instance at which an attempt has failed, and the next
// one is not due. One that a worker outside has, or that its consumer got, is theirs.
func sleeping(streams backend.StreamReader, now func() time.Time) func(context.Context, string) ([]service.Sleeping, error) {
	return func(ctx context.Context, instance string) (found []service.Sleeping, err error) {
		rows, err := streams.Pending(ctx, instance, sleepingMax)
		if err != nil {
			return nil, err
		}
		at := now()
		for _, row := range rows {
			if row.ClaimedBy != "" || !row.DeliveredAt.IsZero() || !row.NextAttemptAt.After(at) || ack.Claimant(row.LastError, row.NextAttemptAt, at) != "" {
				continue
			}
			c, err := commandOf(row)
			if err != nil {
				return nil, err
			}
			found = append(found, service.Sleeping{Position: row.Position, Pointer: c.Pointer})
		}
		return found, nil
	}
}
