// Package config is everything that can be set about a node, read once and
// checked as a whole.
//
// A value comes from a flag, else from an environment variable AQUEDUCT_*,
// else from the file, else it is the default. What nobody knows is refused
// with the name that was probably meant: a misspelt setting never becomes a
// default in silence. The same table makes the flags, the variables, the
// checks and what `engine-node config` prints.
//
// Beside the named file the package reads nothing: flags and environment are
// arguments. It is the only one that knows viper.
package config

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Config is what is in force. Each field's setting, unit, bounds and meaning
// stand in the table of settings.go.
type Config struct {
	Store        Store
	Listen       string // host:port of the API
	TLS          TLS
	Access       Access
	Node         string // name of this node, unique among those of a store; "" = made from the host's name
	Watch        string // folder whose definitions are published as they change; "" = none
	Queue        Queue
	Retry        Retry
	OrderGrace   time.Duration // how long an event from the queue that a state refuses waits for one that should have come before it
	CrashMax     int           // times a message may kill its process before it is a dead letter
	Ack          Ack
	DeadLetter   DeadLetterPolicy // what happens to an instance whose message is a dead letter
	Activity     Activity
	Events       Events
	Secrets      Secrets
	Steps        Steps
	Egress       Egress
	MemoryLimit  int // bytes of the node; 0 = as its control group, or half of the machine
	Limits       Limits
	Rates        Rates
	Retention    Retention
	Reconcile    Reconcile
	Log          Log
	Tracing      Tracing
	DrainTimeout time.Duration // how long running commands are waited for at shutdown
}

// Store says where state is kept.
type Store struct {
	URL          string // sqlite://PATH or oracle://USER:PASSWORD@HOST:PORT/SERVICE
	Password     string // of the Oracle user, where the address has none
	PasswordFile string // that holds the password; its last line break is not part of it
	Wallet       string // folder of an Oracle wallet; "" = none
	Schema       string // owner of the tables and queues on Oracle; "" = the user's own
	Durability   Durability
	Group        string // of the host, whose members may use the files of the embedded store; "" = the node's user alone
	// Of connections to Oracle by HOST:PORT/SERVICE; an alias of tnsnames.ora
	// has its own.
	ConnectTimeout time.Duration // until the database has answered
	Keepalive      time.Duration // between probes of a quiet connection, rounded up to minutes; 0 = none
	OneBlock       bool          // Oracle gets a change, its messages and the commit in one block
}

// TLS says by which certificate the API is known to those who connect. Its files are read
// again when they change.
type TLS struct {
	Certificate string // file of PEM: the node's own first, then those that signed it; "" = the API speaks HTTP
	Key         string // file of PEM
}

// On says whether the API speaks TLS.
func (t TLS) On() bool { return t.Certificate != "" }

// Access says whether the API asks who sends a request.
type Access struct {
	Tokens   bool   // it asks for a token
	Anybody  bool   // the API may be reached from other machines although it asks nobody
	CA       string // file of who signs certificates of programs
	Holders  string // what those may do; see Holding
	Types    string // of events, and who may publish them; see Publishing
	Issuer   string
	Audience string        // a list; see List
	User     string        // claim
	Groups   string        // claim
	Roles    string        // see Members
	Client   string        // by which engine-node login and the console are known to the provider
	Secret   string        // file of the client's secret; "" = it has none
	Origins  string        // a list, of addresses of the console behind a proxy
	Idle     time.Duration // after which a session ends that nobody uses
	Life     time.Duration // of a session, at most
	Scopes   string        // that it asks for, separated by blanks
}

// Asks says whether the API asks who sends a request.
func (a Access) Asks() bool { return a.Tokens || a.Issuer != "" || a.CA != "" }

// Members says what the members of a group may do, by group. The setting is a list,
// separated by semicolons, of ROLE=GROUP: names of groups have commas and equals signs
// in directories.
func (a Access) Members() (map[string][]string, error) { return roles(a.Roles) }

// Holding says what who holds a certificate may do, by what is in it. The setting is as
// that of groups.
func (a Access) Holding() (map[string][]string, error) { return roles(a.Holders) }

// Publishing says who may publish which events, by their types; nil = who may publish may
// publish any. The setting is as that of groups.
func (a Access) Publishing() (map[string][]string, error) {
	if a.Types == "" {
		return nil, nil
	}
	return roles(a.Types)
}

func roles(list string) (map[string][]string, error) {
	members := map[string][]string{}
	for pair := range strings.SplitSeq(list, ";") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		role, group, ok := strings.Cut(pair, "=")
		if role, group = strings.TrimSpace(role), strings.TrimSpace(group); !ok || role == "" || group == "" {
			return nil, fmt.Errorf("%q is not ROLE=GROUP", pair)
		}
		members[group] = append(members[group], role)
	}
	return members, nil
}

// Durability says what a commit on the embedded store survives.
type Durability string

const (
	Full   Durability = "full"   // a power failure
	Normal Durability = "normal" // the death of the process, not always a power failure
)

const (
	schemeSQLite = "sqlite://"
	schemeOracle = "oracle://"
)

// SQLite returns the path of the embedded store; ok is false for another one.
func (s Store) SQLite() (path string, ok bool) { return strings.CutPrefix(s.URL, schemeSQLite) }

// Oracle reports whether the store is an Oracle database.
func (s Store) Oracle() bool { return strings.HasPrefix(s.URL, schemeOracle) }

// Queue bounds the pump.
type Queue struct {
	SignalConsumers   int           // that receive from the signal queue
	ScheduleConsumers int           // that receive from the schedule queue
	CommandConsumers  int           // that receive from the command queue
	Wait              time.Duration // of one blocking dequeue; the embedded store blocks in memory and needs none
	Handlers          int           // messages handled at once on this node
	Notices           time.Duration // that the notice of a dead letter waits in WF_DLQ_Q, and any other for a sink; 0 = none waits
}

// Ack is what happens to a command that is not acknowledged.
type Ack struct {
	Age   time.Duration // how long it is delivered again, before it is given up
	Pause time.Duration // between two deliveries, at most
}

// Retry is what happens to a message whose turn fails.
type Retry struct {
	Max      int           // retries before it is a dead letter
	Delay    time.Duration // before the first one; it doubles with each
	DelayMax time.Duration
	Patience time.Duration // with a message that fails by a fault of the engine's own; 0 = without end
}

// DeadLetterPolicy says what becomes of an instance whose message was taken
// out of circulation.
type DeadLetterPolicy string

const (
	DeadLetterKeep    DeadLetterPolicy = "keep"    // it stays as it is and waits for an operator's replay
	DeadLetterSuspend DeadLetterPolicy = "suspend" // it is suspended, and so stands among what operators look at
)

// Activity bounds the performing of commands.
type Activity struct {
	Concurrency   int           // attempts at once on this node
	Timeout       time.Duration // of one attempt that names none
	ResponseBytes int           // of an HTTP answer
	ResultBytes   int           // of a result, as JSON
	PerHost       int           // HTTP requests to one host at once
	BreakAfter    int           // failures in a row that open a circuit breaker
	BreakFor      time.Duration // that it stays open
	Waiting       int           // commands for one destination that wait on this node
	WaitingBytes  int           // of all that wait
	GiveUpAfter   time.Duration // how long a command waits for its place on a node before an attempt
	Attempts      int           // at one command, with the first
	Delay         time.Duration // before the second attempt; it doubles with each
	DelayMax      time.Duration
}

// Events says what becomes of CloudEvents beside the instances that listen.
type Events struct {
	Sink        string        // http(s) URL that gets every emitted event; "" = none
	SinkMode    string        // structured or binary
	SinkSecret  string        // file of what requests to it have in Authorization; "" = nothing
	DeadLetters bool          // it is told of dead letters
	Lifecycle   bool          // it gets the lifecycle events of workflows and tasks too
	TTL         time.Duration // how long an event that nobody waited for is kept; 0 = not at all
}

// ShownSink is the sink without what is secret of it.
func (e Events) ShownSink() string { return mask(e.Sink) }

// Tracing says who gets spans of what the node does.
type Tracing struct {
	Endpoint     string  // http(s) URL of a receiver of OTLP; "" = nobody
	HeadersFile  string  // with the headers of each request to it; "" = none
	Ratio        float64 // of the instances that nobody traced has started, from 0 to 1
	Service      string  // service.name
	OracleAction bool    // the ACTION of a session is the traceparent, not the trace alone
}

// Secrets says where the secrets that definitions name are found.
type Secrets struct {
	Prefix string // of environment variables; "" = none is looked at
	Dir    string // folder of files; "" = none
	Hosts  string // where a secret may be sent: NAME=HOST, ...; see Bound
}

// Steps says what documents may have done in the transactions of turns.
type Steps struct {
	SQL    string        // folder of files NAME.sql, the statements of call: sql; "" = none
	Tables string        // script that makes the application's tables in the embedded store; "" = none
	PLSQL  string        // procedures of call: plsql, a list; see List
	Limit  time.Duration // of one step
}

// Bound returns the hosts to which a secret may be sent, by its name; a secret
// that has none may be sent to the hosts that definitions write out. The setting
// is a list, separated by commas, of NAME=HOST or NAME=HOST:PORT, where HOST may
// begin with "*." for every host below it.
func (s Secrets) Bound() (map[string][]string, error) {
	bound := map[string][]string{}
	for _, pair := range List(s.Hosts) {
		name, host, ok := strings.Cut(pair, "=")
		if !ok || name == "" || !isSecretHost(host) {
			return nil, fmt.Errorf("%q is not NAME=HOST or NAME=HOST:PORT", pair)
		}
		bound[name] = append(bound[name], host)
	}
	return bound, nil
}

// Egress says where the requests of a node may go, as lists of addresses, ranges,
// hosts and *.DOMAINs, separated by commas; see List.
type Egress struct {
	Allow      string // "" = everywhere but where Deny says, and link-local addresses
	Deny       string
	FetchAllow string // the same for what is fetched when a definition is published
	FetchDeny  string
}

// List takes a setting that is a list apart.
func List(text string) []string {
	var list []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// Limits bounds what one turn may do.
type Limits struct {
	Steps           int // pure tasks in one turn
	FanOut          int // branches of one fork
	Items           int // of one loop's collection
	ExpressionSteps int // of one expression's evaluation
	ExpressionBytes int // of one expression's result
}

// Rates bounds what a definition causes to itself on this node, in a second.
type Rates struct {
	Starts int // of its instances by its instances
	Events int // that its instances take from its instances
	Loops  int // turns of instances that never wait
	Burst  int // of each, that go at once
}

// Retention says when what is over is deleted; 0 = never, but for Keep.
type Retention struct {
	Enabled     bool
	Keep        time.Duration // closed instances, after their end
	Faulted     time.Duration // faulted instances, since they were touched; then they are cancelled
	DeadLetters time.Duration // after they died
	Audit       time.Duration // its rows; on Oracle the owner's nodes alone may
	Tokens      time.Duration // after they expired or were revoked
	Policies    time.Duration // versions, after a newer one was published
	Bulk        time.Duration // plans of what is done to many, after they were made or run last
	Interval    time.Duration // between two runs of the job
}

// Reconcile says when messages are looked for that instances wait for and that are gone.
type Reconcile struct {
	Interval time.Duration // between two looks; 0 = never
	Grace    time.Duration // how long a wait is overdue before its message is looked for
}

// Log says what is logged and how.
type Log struct {
	Level  string // debug, info, warn or error
	Format string // text or json
}

// Consumers on Oracle, where nothing else is said: one session each.
const (
	OracleSignalConsumers   = 8
	OracleScheduleConsumers = 4
	OracleCommandConsumers  = 2
)

// DataSource returns the address of an Oracle database as godror reads it; ok
// is false for another store. Parameters of the address are godror's own.
func (s Store) DataSource() (dsn string, ok bool) {
	u, err := url.Parse(s.URL)
	if err != nil || !s.Oracle() {
		return "", false
	}
	password, _ := u.User.Password()
	if password == "" {
		password = s.Password
	}
	dsn = fmt.Sprintf("user=%q password=%q connectString=%q timezone=UTC standaloneConnection=1", u.User.Username(), password, s.protocol(u)+u.Host+u.Path+s.network(u))
	query := u.Query()
	query.Del("schema") // ours: see SchemaOwner
	if s.Wallet != "" && !query.Has("configDir") {
		query.Set("configDir", s.Wallet) // tnsnames.ora and sqlnet.ora come with a wallet
	}
	if s.Wallet != "" && u.User.Username() == "" {
		query.Set("externalAuth", "1") // the wallet knows who we are
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		dsn += fmt.Sprintf(" %s=%q", name, query.Get(name))
	}
	return dsn, true
}

// protocol is TLS where a wallet has the certificates for it.
func (s Store) protocol(u *url.URL) string {
	if s.Wallet == "" || strings.Trim(u.Path, "/") == "" {
		return ""
	}
	return "tcps://"
}

// network is what Easy Connect Plus is told about a connection. Half of the time
// to connect is for reaching one address, so that another can still be tried.
func (s Store) network(u *url.URL) string {
	if strings.Trim(u.Path, "/") == "" {
		return "" // an alias, which has its own
	}
	var list []string
	if seconds := wholeUp(s.ConnectTimeout, time.Second); seconds > 0 {
		list = append(list, fmt.Sprintf("connect_timeout=%d&transport_connect_timeout=%d", seconds, (seconds+1)/2))
	}
	if minutes := wholeUp(s.Keepalive, time.Minute); minutes > 0 {
		list = append(list, fmt.Sprintf("expire_time=%d", minutes))
	}
	if s.Wallet != "" {
		list = append(list, "wallet_location="+s.Wallet)
	}
	if len(list) == 0 {
		return ""
	}
	return "?" + strings.Join(list, "&")
}

func wholeUp(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }

// SchemaOwner is the owner of the tables and queues on Oracle: the setting, or
// the address's parameter schema.
func (s Store) SchemaOwner() string {
	if u, err := url.Parse(s.URL); err == nil && s.Schema == "" {
		return u.Query().Get("schema")
	}
	return s.Schema
}

// Default returns the configuration of a node about which nothing is said.
func Default() Config {
	return Config{
		Store: Store{
			URL: schemeSQLite + "./aqueduct-data/aqueduct.db", Durability: Full,
			ConnectTimeout: 10 * time.Second, Keepalive: 2 * time.Minute, OneBlock: true,
		},
		Listen:     "127.0.0.1:8080",
		Access:     Access{User: "sub", Groups: "groups", Scopes: "openid profile", Idle: time.Hour, Life: 12 * time.Hour},
		Queue:      Queue{SignalConsumers: 64, ScheduleConsumers: 64, CommandConsumers: 8, Wait: 5 * time.Second, Handlers: 128, Notices: 7 * 24 * time.Hour},
		Retry:      Retry{Max: 5, Delay: time.Second, DelayMax: 5 * time.Minute, Patience: 24 * time.Hour},
		OrderGrace: 10 * time.Second,
		CrashMax:   3,
		Ack:        Ack{Age: 24 * time.Hour, Pause: 15 * time.Minute},
		DeadLetter: DeadLetterKeep,
		Activity: Activity{
			Concurrency: 256, Timeout: 30 * time.Second, ResponseBytes: 1 << 20, ResultBytes: 1 << 20,
			PerHost: 64, BreakAfter: 5, BreakFor: 30 * time.Second,
			Waiting: 8_192, WaitingBytes: 64 << 20, GiveUpAfter: time.Hour,
			Attempts: 5, Delay: time.Second, DelayMax: time.Minute,
		},
		Events: Events{SinkMode: "structured", TTL: time.Hour},
		Rates:  Rates{Starts: 50, Events: 100, Loops: 20, Burst: 1_000},
		Limits: Limits{
			Steps: 1_000, FanOut: 1_000, Items: 100_000,
			ExpressionSteps: 1_000_000, ExpressionBytes: 1 << 20,
		},
		Steps:        Steps{Limit: 2 * time.Second},
		Retention:    Retention{Enabled: true, Keep: 30 * day, Audit: 730 * day, Tokens: 90 * day, Policies: 90 * day, Bulk: 30 * day, Interval: time.Hour},
		Reconcile:    Reconcile{Interval: time.Minute, Grace: time.Minute},
		Log:          Log{Level: "info", Format: "text"},
		Tracing:      Tracing{Ratio: 1, Service: "aqueduct"},
		DrainTimeout: 30 * time.Second,
	}
}
