// Package api is the HTTP face of a node: requests in, problems or documents
// out.
//
// It holds no state and decides nothing: each operation is one call of a
// service that [Config] names, and each error is translated once, by [refuse],
// into an RFC 9457 problem with a stable code. The OpenAPI document is made of
// the handlers, so it cannot disagree with them.
//
// Limits: bodies, nesting, waiting and the connection itself are bounded by
// the constants of this package. Who asks, and whether they may, [Access] says.
// Without one the API asks nobody who they are; it is served on the loopback
// interface then, to programs of the same machine. It refuses what a browser sends
// on behalf of another site.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/attribute"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Limits of a request.
const (
	MaxDefinitionBytes = 1 << 20   // of a definition's source
	MaxBodyBytes       = 256 << 10 // of any other body, but for one:

	// MaxPublicationBytes is of definitions and policies that are published together, as JSON,
	// in which quotes and line breaks of their sources are two bytes each.
	MaxPublicationBytes = 8 << 20

	MaxDepth    = 60               // nesting of a JSON body; an envelope has room for it
	MaxWait     = 60 * time.Second // that a start waits for the instance's end, and a list of dead letters for another
	bodyTimeout = 10 * time.Second // for a body to arrive

	// bodyFactor is how many bytes a request takes for each of its body: as it
	// arrived, decoded, checked and encoded again.
	bodyFactor = 6
	// readBytes is what an operation takes that reads rows: a snapshot, decoded,
	// and a page; writtenFactor what it keeps for each byte of its answer until
	// that is written.
	readBytes     = 3*snapshot.MaxBytes + 2*projections.MaxPageBytes
	writtenFactor = 2
)

// Starter begins instances, or signals those that are there.
type Starter interface {
	// IDOf is the id of the instance that a start asks for, which may leave it to the node.
	IDOf(id string, start signal.Start) string
	// Follow calls told after each turn of an instance that this node commits, until leave.
	Follow(id string, told func(*snapshot.Snapshot, *projections.Rows)) (leave func())
	StartOrSignal(ctx context.Context, id string, start signal.Start, headers map[string]string) (instanceID string, created bool, did engine.Disposition, err error)
}

// Signaller gives signals to instances.
type Signaller interface {
	Signal(ctx context.Context, env signal.Envelope) (engine.Disposition, error)
	PublishEvent(ctx context.Context, event json.RawMessage, headers map[string]string) (reached int, err error)
}

// Tasks works on human tasks.
type Tasks interface {
	ClaimTask(ctx context.Context, id, user string, groups []string) (projections.Task, error)
	ReleaseTask(ctx context.Context, id, user string) (projections.Task, error)
	DelegateTask(ctx context.Context, id, user, to string) (projections.Task, error)
	ReassignTask(ctx context.Context, id, actor, to string) (projections.Task, error)
	ClaimNext(ctx context.Context, user string, groups []string, scope backend.Scope, count int) ([]projections.Task, error)
	CompleteTask(ctx context.Context, id, user string, groups []string, outcome string, data json.RawMessage) (projections.Task, error)
}

// Operator looks into one instance and does what an operator asks of it.
type Operator interface {
	Snapshot(ctx context.Context, id string) (snapshot.Snapshot, error)
	Takes(ctx context.Context, s snapshot.Snapshot) (events []string, err error)
	// SearchAttributes are those that a version of a definition declares; "" = the highest.
	SearchAttributes(ctx context.Context, name, version string) ([]attribute.Declared, error)
	// OperateAt does it to an instance at a version, 0 = whatever it is; so does RunNow,
	// which ends what it waits for the end of, at the pointer of a task.
	OperateAt(ctx context.Context, id string, op engine.Operation, output json.RawMessage, version int64, actor string) (engine.Disposition, error)
	RunNow(ctx context.Context, id, wait string, version int64, actor string) (engine.Disposition, error)
	// Rewind takes an instance back to what it was, or says in a dry run whether it can.
	Rewind(ctx context.Context, s, past *snapshot.Snapshot, newKeys, dryRun bool, actor string) error
}

// Commenter adds to the history of a task what people say of it.
type Commenter interface {
	CommentTask(ctx context.Context, id, user, text string) (projections.Task, error)
}

// Acknowledger takes what consumers, workers outside and operators say of commands.
type Acknowledger interface {
	Acknowledge(ctx context.Context, instanceID string, position int64, a ack.Ack) (engine.Disposition, error)
	ClaimCommand(ctx context.Context, instanceID string, position int64, worker string, lease time.Duration) (projections.Entry, error)
	RetryCommand(ctx context.Context, instanceID string, position int64, actor string) (projections.Entry, error)
	SettleCommand(ctx context.Context, instanceID string, position int64, a ack.Ack) (engine.Disposition, error)
	// Retries say how often the consumer of a command is told again, as it is now.
	Retries(ctx context.Context, row projections.Entry) ack.Retries
}

// DeadLetters works on dead letters.
type DeadLetters interface {
	// Edit puts other bytes in the place of what died.
	Edit(ctx context.Context, id string, e backend.DeadLetterChange) (backend.DeadLetterEdit, error)
	// ReplayAfter returns the number of the edit that it has sent; 0 = what died.
	ReplayAfter(ctx context.Context, id string, after int64) (int64, error)
	// DiscardAfter also gives up the command that nobody performs or waits for then.
	DiscardAfter(ctx context.Context, id string, after int64) error
}

// Publisher publishes definitions and policies; file names the source in findings.
type Publisher interface {
	PublishAll(ctx context.Context, documents []definition.Document) ([]definition.Published, error)
	Publish(ctx context.Context, file string, source []byte) (r definition.Record, created bool, err error)
}

// Definitions reads what is published; definition.Repository is one.
type Definitions interface {
	Definition(ctx context.Context, name, version string) (definition.Record, error)
	Versions(ctx context.Context, name string, after int) ([]definition.Record, error)
	Definitions(ctx context.Context, after string, limit int) ([]definition.Record, error)
}

// Migrator compares versions of a definition and moves instances between them.
type Migrator interface {
	CompareVersions(ctx context.Context, name, from, to string) (definition.MigrationReport, error)
	Migrate(ctx context.Context, m definition.Migration) (definition.MigrationReport, error)
}

// Access says who asks for an operation, by what a request shows, and whether they
// may. Who is known and may not is returned beside the error.
type Access interface {
	Admit(ctx context.Context, s access.Shown, operation string) (principal.Principal, error)
}

// Tokens are by which programs and people are known, where the API asks who they are.
type Tokens interface {
	Create(ctx context.Context, w access.Wanted) (k backend.Token, secret string, err error)
	Tokens(ctx context.Context, after string, limit int) (backend.Page[backend.Token], error)
	Revoke(ctx context.Context, id string) error
}

// Activities keeps what applications note of instances.
type Activities interface {
	Attach(ctx context.Context, a backend.Activity) (made backend.Activity, isNew bool, err error)
	Change(ctx context.Context, c backend.ActivityChange) (backend.Activity, error)
}

// Past says what instances were.
type Past interface {
	// At is the state after the turn of a position of the stream.
	At(ctx context.Context, id string, position int64) (snapshot.Snapshot, error)
}

// Auditor writes what somebody has done that no other commit is of, or with a code what
// they were refused.
type Auditor interface {
	Note(ctx context.Context, action, target, instance, code string) error
}

// Reader reads the rows that the API shows.
type Reader struct {
	Instances   backend.InstanceReader
	Streams     backend.StreamReader
	Tasks       backend.TaskReader
	DeadLetters backend.DeadLetterReader
	Backlog     backend.BacklogReader
	Members     backend.NodeReader
	Audit       backend.AuditReader
	Activities  backend.ActivityReader
	Moments     backend.MomentReader
	Plans       backend.BulkReader
}

// Config wires the API. Everything but Access, Log, Registerer, Metrics and Version
// is required.
type Config struct {
	Starter      Starter
	Signaller    Signaller
	Tasks        Tasks
	Commenter    Commenter
	Operator     Operator
	Acknowledger Acknowledger
	DeadLetters  DeadLetters
	Dispatcher   Dispatcher
	Publisher    Publisher
	Migrator     Migrator
	Definitions  Definitions
	Tokens       Tokens
	Auditor      Auditor
	Activities   Activities
	Past         Past
	Bulk         Bulk
	Reader       Reader
	Ready        func(context.Context) error // nil error = the store answers
	Now          func() time.Time

	Access     Access                // nil = nobody is asked who they are
	Secret     []byte                // of the database, with Access: it hides where pages end from who sees a part of a list
	Login      *client.Login         // how a person gets a token of an identity provider; nil = in no way that the API knows
	AnyHost    bool                  // requests for other hosts than loopback are served, too, although nobody is asked
	Version    string                // of the program
	Log        *slog.Logger          // nil = discard
	Registerer prometheus.Registerer // of the request metrics; nil = not registered
	Metrics    http.Handler          // what /metrics answers; nil = there is none
	Memory     *memory.Budget        // for bodies of requests, and what they read; nil = as much as there is
}

// service is what every part of the API has; the parts hold the handlers.
type service struct {
	Config
	operations map[string]string // their ids, by their patterns in the multiplexer
}

type (
	definitionAPI struct{ *service } // definitions, their migrations and schedules
	instanceAPI   struct{ *service } // instances, what is said to them and of their commands
	taskAPI       struct{ *service } // human tasks
	operatorAPI   struct{ *service } // dead letters, queues, targets
	adminAPI      struct{ *service } // who may do what, and who has done what
)

// New makes the handler of the whole API.
func New(c Config) (http.Handler, error) {
	v := reflect.ValueOf(c)
	for _, name := range []string{"Starter", "Signaller", "Tasks", "Commenter", "Operator", "Acknowledger", "DeadLetters", "Dispatcher", "Publisher", "Migrator", "Definitions", "Tokens", "Auditor", "Activities", "Past", "Bulk", "Ready", "Now"} {
		if v.FieldByName(name).IsNil() {
			return nil, fmt.Errorf("api: %s is required", name)
		}
	}
	for part, reader := range reflect.ValueOf(c.Reader).Fields() {
		if reader.IsNil() {
			return nil, fmt.Errorf("api: Reader.%s is required", part.Name)
		}
	}
	if c.Access != nil && len(c.Secret) == 0 {
		return nil, errors.New("api: Secret is required with Access")
	}
	hidden, err := newSeal(c.Secret)
	if err != nil {
		return nil, err
	}
	c.Reader, c.Definitions = c.Reader.scoped(hidden), &scopedDefinitions{c.Definitions}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Memory == nil {
		c.Memory = &memory.Budget{}
	}
	s := &service{c, map[string]string{"GET /metrics": "get-metrics", "GET /openapi.json": "get-openapi", "GET /openapi.yaml": "get-openapi",
		"GET /openapi-3.0.json": "get-openapi", "GET /openapi-3.0.yaml": "get-openapi"}}
	mux := http.NewServeMux()
	h := humago.New(mux, s.humaConfig())
	s.healthOperations(h)
	definitionAPI{s}.definitionOperations(h)
	definitionAPI{s}.migrationOperations(h)
	definitionAPI{s}.policyOperations(h)
	instanceAPI{s}.instanceOperations(h)
	whyAPI{instanceAPI{s}}.whyOperations(h)
	pastAPI{instanceAPI{s}}.pastOperations(h)
	pastAPI{instanceAPI{s}}.rewindOperations(h)
	instanceAPI{s}.lifecycleOperations(h)
	instanceAPI{s}.ackOperations(h)
	instanceAPI{s}.eventOperations(h)
	activityAPI{instanceAPI{s}}.activityOperations(h)
	taskAPI{s}.taskOperations(h)
	operatorAPI{s}.deadLetterOperations(h)
	operatorAPI{s}.targetOperations(h)
	operatorAPI{s}.commandOperations(h)
	bulkAPI{instanceAPI{s}, &counts{kept: map[planVersion][]backend.BulkCount{}}}.bulkOperations(h)
	adminAPI{s}.tokenOperations(h)
	adminAPI{s}.auditOperations(h)
	tidySchemas(h.OpenAPI())
	if c.Metrics != nil {
		mux.Handle("GET /metrics", c.Metrics)
	}
	return s.edge(mux)
}

// The framework's validation finds keys as they are written. It is a setting of
// the whole process.
func init() { huma.ValidateStrictCasing = true }

func (s *service) humaConfig() huma.Config {
	version := s.Version
	if version == "" {
		version = "devel"
	}
	c := huma.DefaultConfig("Aqueduct", version)
	c.Info.Description = "A durable execution runtime. Errors are RFC 9457 problems with a stable `code`. " +
		"Lists page by key: pass the `next` of a page as `after`."
	c.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	c.DocsPath, c.SchemasPath, c.CreateHooks = "", "", nil
	strict := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: unmarshal}
	c.Formats = map[string]huma.Format{"application/json": strict, "json": strict}
	c.Transformers = []huma.Transformer{s.translate}
	return c
}

// tidySchemas removes the schemas of errors that never leave.
func tidySchemas(doc *huma.OpenAPI) {
	schemas := doc.Components.Schemas.Map()
	delete(schemas, "ErrorModel")
	delete(schemas, "ErrorDetail")
}

// Paging is the part of a list that a request asks for.
type Paging struct {
	After string `query:"after" maxLength:"512" doc:"The next of the page before."`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Items at most."`
}

// Caller says who asks, and what for.
type Caller struct {
	Traceparent string `header:"traceparent" maxLength:"512" doc:"W3C trace context; a malformed one is ignored."`
	Correlation string `header:"X-Correlation-Id" maxLength:"256" doc:"Follows everything that the request causes."`
	Actor       string `header:"X-Aqueduct-Actor" maxLength:"256" doc:"Who does it, for the stream. Where the node asks who sends a request, it is who that is, unless they may speak for others."`
}

// headers are those of the signal that the request becomes.
func (c Caller) headers() map[string]string {
	h := map[string]string{}
	if isTraceparent(c.Traceparent) {
		h[signal.HeaderTraceparent] = c.Traceparent
	}
	if c.Correlation != "" {
		h[signal.HeaderCorrelation] = c.Correlation
	}
	if c.Actor != "" {
		h[signal.HeaderActor] = c.Actor
	}
	if len(h) == 0 {
		return nil
	}
	return h
}

// isTraceparent checks the form of version 00 of W3C trace context, and that
// no id is all zeros.
func isTraceparent(s string) bool {
	if len(s) != 55 || s[:3] != "00-" || s[35] != '-' || s[52] != '-' {
		return false
	}
	hex := s[3:35] + s[36:52] + s[53:]
	for _, c := range hex {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return s[3:35] != "00000000000000000000000000000000" && s[36:52] != "0000000000000000"
}
