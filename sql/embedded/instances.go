package embedded

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// instances reads instances and who waits.
type instances struct{ *sqlite.Store }

// Instance implements backend.InstanceReader.
func (s instances) Instance(ctx context.Context, id string) (projections.Instance, error) {
	r := read("instance_select")
	r.Where("INSTANCE_NO = (select INSTANCE_NO from WF_STATES where INSTANCE_ID = ?)", id)
	row, err := sqlite.One[lists.InstanceRow](ctx, s.Store, r)
	return row.Instance, wrap("instance "+id, err)
}

// Instances implements backend.InstanceReader. The order is that in which the
// starts were committed.
func (s instances) Instances(ctx context.Context, q backend.InstanceQuery) (p backend.Page[projections.Instance], err error) {
	if q.OrderBy != "" {
		return s.ordered(ctx, &q, &lists.Filter{Alias: "I.", Key: "INSTANCE_NO", Time: microseconds, Newest: newest("I.")})
	}
	r, limit := read("instance_select"), projections.Bounded(q.Limit)
	filter := lists.Filter{Alias: "WF_INSTANCES.", Key: "INSTANCE_NO", Time: microseconds, Newest: newest("WF_INSTANCES.")}
	filter.Where(r, &q)
	if err := r.Behind("INSTANCE_NO", q.After); err != nil {
		return p, wrap("instances", err)
	}
	r.Order("INSTANCE_NO desc", limit+1)
	found, err := sqlite.List[lists.InstanceRow](ctx, s.Store, r)
	mark := func(i lists.InstanceRow) string { return strconv.FormatInt(i.No, 10) }
	return lists.Cut(found, limit, lists.InstanceRow.Item, mark), wrap("instances", err)
}

// newest is the condition on instances that are among those at which a list looks for a text.
func newest(alias string) string {
	return fmt.Sprintf("%sINSTANCE_NO >= coalesce((select E.INSTANCE_NO from WF_INSTANCES E where E.ERROR_TYPE is not null order by E.INSTANCE_NO desc limit 1 offset %d), 0)",
		alias, backend.MaxSearched-1)
}

// microseconds is how a moment is compared.
func microseconds(t time.Time) (bind string, arg any) { return "?", t.UnixMicro() }

// Started implements backend.InstanceReader.
func (s instances) Started(ctx context.Context, definition, businessKey, startKey string) (projections.Instance, error) {
	r := read("instance_select")
	r.Where(startedBy, startKey, businessKey, definition)
	row, err := sqlite.One[lists.InstanceRow](ctx, s.Store, r)
	return row.Instance, wrap("start key "+startKey, err)
}

// startedBy is the key of the index on start keys.
const startedBy = "START_KEY = ? and coalesce(BUSINESS_KEY, '') = ? and coalesce(DEFINITION, '') = ?"

// NextLive implements backend.InstanceReader.
func (s instances) NextLive(ctx context.Context, definition, after string) (string, error) {
	found, err := sqlite.List[lists.VersionRow](ctx, s.Store, read("instance_live", definition, after))
	return lists.First(found, lists.VersionRow.Item), wrap("versions of "+definition+" that live", err)
}

// WaitSpecs implements backend.WaitReader.
func (s instances) WaitSpecs(ctx context.Context, eventType string) ([]string, error) {
	found, err := sqlite.List[lists.SpecRow](ctx, s.Store, read("wait_specs", eventType, backend.MaxCount))
	return rows.Items(found, lists.SpecRow.Item), wrap("specs of "+eventType, err)
}

// Waits implements backend.WaitReader. Behind an instance that was deleted meanwhile the list begins anew.
func (s instances) Waits(ctx context.Context, eventType, spec, keyHash string, after projections.Wait, limit int) ([]projections.Wait, error) {
	items, err := sqlite.List[projections.Wait](ctx, s.Store, read("waits", eventType, spec, conn.Hash(keyHash), after.InstanceID, after.Token, projections.Bounded(limit)))
	return items, wrap("waits for "+eventType, err)
}
