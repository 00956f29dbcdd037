package backend

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/aqueduct-engine/aqueduct/store"
)

// Activities keeps what applications note of their instances (D8). Nothing that a
// node decides looks there: without it one feature is gone.
type Activities interface {
	// AttachActivity adds one to its instance, with its audit: store.ErrDuplicate where
	// the instance has one of its id, store.ErrNotFound where there is no instance,
	// ErrFull where the instance has MaxActivities.
	AttachActivity(ctx context.Context, a Activity, by store.Audit) error
	// ChangeActivity writes what of an activity may change, with its audit, where it has
	// the version before and is not frozen: else store.ErrStale.
	ChangeActivity(ctx context.Context, a Activity, by store.Audit) error
	ActivityReader
}

// ActivityReader reads what applications note of their instances.
type ActivityReader interface {
	Activity(ctx context.Context, instanceID, id string) (Activity, error)
	// Activities lists those of an instance, oldest first, in pages by key.
	Activities(ctx context.Context, instanceID, after string, limit int) (Page[Activity], error)
}

// Limits of what applications note.
const (
	MaxActivities    = 1000     // of an instance; on Oracle a few more, when many attach at once
	MaxActivityBytes = 16 << 10 // of the data of one
)

// ErrFull says that an instance has as many activities as it may.
var ErrFull = errors.New("the instance has as many activities as it may")

// Activity is something that an application has noted of an instance: what it is, how
// it stands, and data of its own. A row of WF_ACTIVITIES.
type Activity struct {
	InstanceID string    `db:"INSTANCE_ID" width:"128"`
	ID         string    `db:"ACTIVITY_ID" width:"128"` // the application's, within the instance
	Name       string    `db:"NAME" width:"256"`
	Status     string    `db:"STATUS" width:"64"`
	Version    int64     `db:"ACTIVITY_VERSION"` // from 1; guards every change
	CreatedAt  time.Time `db:"CREATED_ON_UTC"`
	CreatedBy  string    `db:"CREATED_BY" width:"128"`
	UpdatedAt  time.Time `db:"UPDATED_ON_UTC"`
	UpdatedBy  string    `db:"UPDATED_BY" width:"128"`
	FrozenAt   time.Time `db:"FROZEN_ON_UTC"` // zero: it may change
	Data       []byte    `db:"DATA"`          // JSON; nil = none
}

// Weight is what the activity adds to a page.
func (a *Activity) Weight() int { return len(a.Data) }

// ActivityChange is what an application says of an activity that is there.
type ActivityChange struct {
	InstanceID, ID string
	Version        int64           // that it has
	Status         *string         // nil = as it is
	Data           json.RawMessage // nil = as they are; null = none
	Freeze         bool            // nobody changes it any more
	Actor          string
}

// MomentReader tells what has happened to instances: entries of their streams, tasks, and
// what applications have noted.
type MomentReader interface {
	// Moments is a page in order of time, oldest first.
	Moments(ctx context.Context, q MomentQuery) (Page[Moment], error)
}

// MomentQuery selects moments of all instances of a business key, or of one instance: one
// of the two is given. Empty fields do not restrict.
type MomentQuery struct {
	BusinessKey string
	InstanceID  string
	Definition  string
	Kinds       []string
	Scope       Scope
	After       string
	Limit       int
}

// Kinds of moments. What nodes do are commands and tasks.
const (
	MomentEvent    = "event"
	MomentCommand  = "command"
	MomentTask     = "task"
	MomentActivity = "activity" // of an application
)

// Moment is a row of WF_V_MOMENTS.
type Moment struct {
	BusinessKey string    `db:"BUSINESS_KEY"`
	Definition  string    `db:"DEFINITION"`
	InstanceID  string    `db:"INSTANCE_ID"`
	At          time.Time `db:"OCCURRED_ON_UTC"`
	Place       string    `db:"PLACE"` // orders those of an instance and a moment
	Kind        string    `db:"KIND"`
	Direction   string    `db:"DIRECTION"`
	Position    int64     `db:"POSITION"` // in the stream; 0 = it is not there
	Ref         string    `db:"REF_ID"`   // task or activity
	Name        string    `db:"NAME"`
	Status      string    `db:"STATUS"`
	EndedAt     time.Time `db:"ENDED_ON_UTC"`
	Actor       string    `db:"ACTOR"`
	Pointer     string    `db:"POINTER"`
	Hook        string    `db:"HOOK"` // onEnter, onExit or hooks of a transition: the field that has what did it; "" = it is no hook's
	Correlation string    `db:"CORRELATION_ID"`
	Attempts    int       `db:"ATTEMPTS"`
	LastError   string    `db:"LAST_ERROR"`
}
