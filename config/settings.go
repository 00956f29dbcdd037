package config

import (
	"strings"
	"time"
)

const day = 24 * time.Hour

// setting is one thing that can be set: where it lives in a Config, what it
// means, and what values it takes.
type setting struct {
	key     string            // in the file; sections are separated by dots
	field   func(*Config) any // *string, *int, *float64, *bool, *time.Duration, *Durability or *DeadLetterPolicy
	unit    string            // "" = none
	low     int64             // bounds of a number, inclusive; of a duration in nanoseconds
	high    int64
	choices []string // of a text; nil = any
	secret  bool     // may hold a password
	meaning string
}

// flag and variable are the setting's other names.
func (s setting) flag() string { return strings.ReplaceAll(s.key, ".", "-") }
func (s setting) variable() string {
	return prefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(s.key))
}

// usage is the setting's help text.
func (s setting) usage() string {
	text := s.meaning
	if s.unit != "" {
		text += " (" + s.unit + ")"
	}
	if s.choices != nil {
		text += ": " + strings.Join(s.choices, ", ")
	}
	return text
}

const (
	second = int64(time.Second)
	minute = int64(time.Minute)
	hour   = int64(time.Hour)
	year   = 365 * 24 * hour
)

// settings is the table of everything that can be set, in the order in which
// it is printed.
func settings() []setting {
	all := append(general(), reaching()...)
	all = append(all, queues()...)
	all = append(all, activities()...)
	all = append(all, egress()...)
	all = append(all, stepping()...)
	all = append(all, events()...)
	all = append(all, housekeeping()...)
	return append(all, tracing()...)
}

func general() []setting {
	return []setting{
		{key: "store.url", field: func(c *Config) any { return &c.Store.URL }, secret: true,
			meaning: "where state is kept, sqlite://PATH or oracle://USER:PASSWORD@HOST:PORT/SERVICE"},
		{key: "store.password", field: func(c *Config) any { return &c.Store.Password }, secret: true,
			meaning: "password of the Oracle user, where the address has none; best given as AQUEDUCT_STORE_PASSWORD"},
		{key: "store.password-file", field: func(c *Config) any { return &c.Store.PasswordFile },
			meaning: "file that holds the password of the Oracle user, read again for each connection; empty = none"},
		{key: "store.wallet", field: func(c *Config) any { return &c.Store.Wallet },
			meaning: "folder of an Oracle wallet: an address by host is then reached by TLS, one without a user by the wallet's; empty = none"},
		{key: "store.owner", field: func(c *Config) any { return &c.Store.Schema },
			meaning: "owner of the tables and queues on Oracle; empty = the user's own"},
		{key: "store.connect-timeout", field: func(c *Config) any { return &c.Store.ConnectTimeout }, unit: "duration", low: second, high: 10 * minute,
			meaning: "how long connecting to Oracle may take; half of it for reaching one address"},
		{key: "store.keepalive", field: func(c *Config) any { return &c.Store.Keepalive }, unit: "duration", low: 0, high: 24 * hour,
			meaning: "time between probes of a quiet connection to Oracle, in whole minutes, for firewalls that forget; 0 = none"},
		{key: "store.one-block", field: func(c *Config) any { return &c.Store.OneBlock },
			meaning: "Oracle gets a change, its messages and the commit in one block, one round trip, and gives the snapshot with the message; false = in calls of their own"},
		{key: "store.durability", field: func(c *Config) any { return &c.Store.Durability }, choices: []string{string(Full), string(Normal)},
			meaning: "what a commit on the embedded store survives, a power failure or only the death of the process"},
		{key: "store.group", field: func(c *Config) any { return &c.Store.Group },
			meaning: "group of the host whose members may use the files of the embedded store, too; empty = the node's user alone"},
		{key: "listen", field: func(c *Config) any { return &c.Listen },
			meaning: "address of the API, host:port; loopback only, unless the API asks who sends a request"},
		{key: "node", field: func(c *Config) any { return &c.Node },
			meaning: "name of this node, unique among those of the store; empty = made from the host's name"},
		{key: "drain-timeout", field: func(c *Config) any { return &c.DrainTimeout }, unit: "duration", low: second, high: hour,
			meaning: "how long running commands are waited for at shutdown; then they are performed again elsewhere"},
		{key: "watch", field: func(c *Config) any { return &c.Watch },
			meaning: "folder whose definitions are published as they change; empty = none"},
	}
}

// reaching is who may reach the API, and how they are known.
func reaching() []setting {
	return []setting{
		{key: "tls.certificate", field: func(c *Config) any { return &c.TLS.Certificate },
			meaning: "file of the certificate by which the API speaks TLS, in PEM, with those that signed it behind it, read again when it changes; empty = the API speaks HTTP"},
		{key: "tls.key", field: func(c *Config) any { return &c.TLS.Key },
			meaning: "file of the key of tls.certificate, in PEM, without a password, read again when it changes"},
		{key: "access.tokens", field: func(c *Config) any { return &c.Access.Tokens },
			meaning: "the API asks for a token, which engine-node tokens create makes, and lets do what its roles say; false = it asks nobody"},
		{key: "access.certificate-ca", field: func(c *Config) any { return &c.Access.CA },
			meaning: "file of who signs certificates by which programs are known to the API, in PEM, read again when it changes; empty = nobody is known by one"},
		{key: "access.certificate-roles", field: func(c *Config) any { return &c.Access.Holders },
			meaning: "what who holds such a certificate may do, a list of ROLE=CN=NAME, ROLE=OU=UNIT or ROLE=URI=URI, separated by semicolons"},
		{key: "access.event-types", field: func(c *Config) any { return &c.Access.Types },
			meaning: "which events who may publish by the API, or send as signals, a list of ROLE=TYPE, ROLE=PREFIX* or group:NAME=TYPE, separated by semicolons; empty = who may publish may publish any"},
		{key: "access.oidc-issuer", field: func(c *Config) any { return &c.Access.Issuer },
			meaning: "URL of the OpenID Connect provider whose tokens the API takes, as they name it; empty = none's"},
		{key: "access.oidc-audience", field: func(c *Config) any { return &c.Access.Audience },
			meaning: "whom a token of the provider must be for, a list separated by commas, of which one is enough"},
		{key: "access.oidc-user", field: func(c *Config) any { return &c.Access.User },
			meaning: "claim that is the name of who bears a token of the provider; take one that nobody can change for themselves"},
		{key: "access.oidc-groups", field: func(c *Config) any { return &c.Access.Groups },
			meaning: "claim of their groups, as tasks and access.oidc-roles name them; a claim inside another is written with a dot"},
		{key: "access.oidc-roles", field: func(c *Config) any { return &c.Access.Roles },
			meaning: "what members of groups may do, a list of ROLE=GROUP, separated by semicolons"},
		{key: "access.oidc-client", field: func(c *Config) any { return &c.Access.Client },
			meaning: "client by which engine-node login and the console are known to the provider, one of access.oidc-audience; empty = nobody can log in so"},
		{key: "access.oidc-secret-file", field: func(c *Config) any { return &c.Access.Secret },
			meaning: "file of the secret by which the console proves to the provider that it is the client, read at each login; empty = the client is a public one"},
		{key: "access.public-origins", field: func(c *Config) any { return &c.Access.Origins },
			meaning: "https addresses by which browsers reach the console through a proxy that ends TLS, a list separated by commas; empty = there is none"},
		{key: "access.session-idle", field: func(c *Config) any { return &c.Access.Idle }, unit: "duration", low: 5 * minute, high: 24 * hour,
			meaning: "how long a session of the console lasts that nobody uses"},
		{key: "access.session-life", field: func(c *Config) any { return &c.Access.Life }, unit: "duration", low: 10 * minute, high: 7 * 24 * hour,
			meaning: "how long a session of the console lasts at most"},
		{key: "access.oidc-scopes", field: func(c *Config) any { return &c.Access.Scopes },
			meaning: "what a login asks the provider for, separated by blanks"},
		{key: "access.anybody-from-anywhere", field: func(c *Config) any { return &c.Access.Anybody },
			meaning: "the API listens beyond loopback although it asks nobody who they are: whoever reaches it may do everything"},
	}
}

func queues() []setting {
	return []setting{
		{key: "queue.signal-consumers", field: func(c *Config) any { return &c.Queue.SignalConsumers }, low: 1, high: 256,
			meaning: "consumers of the signal queue"},
		{key: "queue.schedule-consumers", field: func(c *Config) any { return &c.Queue.ScheduleConsumers }, low: 1, high: 256,
			meaning: "consumers of the schedule queue"},
		{key: "queue.command-consumers", field: func(c *Config) any { return &c.Queue.CommandConsumers }, low: 1, high: 256,
			meaning: "consumers of the command queue"},
		{key: "queue.wait", field: func(c *Config) any { return &c.Queue.Wait }, unit: "duration", low: second, high: 30 * second,
			meaning: "how long one dequeue blocks (Oracle; the embedded store needs none)"},
		{key: "queue.handlers", field: func(c *Config) any { return &c.Queue.Handlers }, low: 1, high: 4096,
			meaning: "messages handled at once on this node"},
		{key: "queue.notices", field: func(c *Config) any { return &c.Queue.Notices }, unit: "duration", low: 0, high: 365 * 24 * hour,
			meaning: "how long the notice of a dead letter waits in WF_DLQ_Q for each subscriber (Oracle), and any other notice for a node with events.sink; 0 = none waits"},
		{key: "retry.max", field: func(c *Config) any { return &c.Retry.Max }, low: 0, high: 1000,
			meaning: "retries of a message that names what is not there, or not so, before it is a dead letter"},
		{key: "retry.delay", field: func(c *Config) any { return &c.Retry.Delay }, unit: "duration", low: int64(time.Millisecond), high: hour,
			meaning: "delay before the first retry; it doubles with each"},
		{key: "retry.delay-max", field: func(c *Config) any { return &c.Retry.DelayMax }, unit: "duration", low: int64(time.Millisecond), high: 24 * hour,
			meaning: "longest delay before a retry"},
		{key: "retry.patience", field: func(c *Config) any { return &c.Retry.Patience }, unit: "duration", low: 0, high: 90 * 24 * hour,
			meaning: "how long a message that fails by a fault of the engine's own is tried again before it is a dead letter; 0 = without end"},
		{key: "order.grace", field: func(c *Config) any { return &c.OrderGrace }, unit: "duration", low: 0, high: hour,
			meaning: "how long an event from the queue that a state refuses waits for one that should have come before it"},
		{key: "crash.max", field: func(c *Config) any { return &c.CrashMax }, low: 1, high: 100,
			meaning: "times a message may kill its process before it is a dead letter"},
		{key: "ack.age", field: func(c *Config) any { return &c.Ack.Age }, unit: "duration", low: second, high: 365 * 24 * hour,
			meaning: "how long a command is delivered again that is not acknowledged, before it is given up"},
		{key: "ack.pause", field: func(c *Config) any { return &c.Ack.Pause }, unit: "duration", low: int64(time.Millisecond), high: 24 * hour,
			meaning: "longest pause between two deliveries of a command, unless its author says a longer one"},
		{key: "dead-letter.policy", field: func(c *Config) any { return &c.DeadLetter },
			choices: []string{string(DeadLetterKeep), string(DeadLetterSuspend)},
			meaning: "what happens to an instance whose message is a dead letter"},
	}
}

func activities() []setting {
	return []setting{
		{key: "activity.concurrency", field: func(c *Config) any { return &c.Activity.Concurrency }, low: 1, high: 4096,
			meaning: "commands performed at once on this node"},
		{key: "activity.timeout", field: func(c *Config) any { return &c.Activity.Timeout }, unit: "duration", low: int64(time.Millisecond), high: 24 * hour,
			meaning: "timeout of one attempt at a command that names none"},
		{key: "activity.response-bytes", field: func(c *Config) any { return &c.Activity.ResponseBytes }, unit: "bytes", low: 1 << 10, high: 64 << 20,
			meaning: "largest HTTP answer"},
		{key: "activity.result-bytes", field: func(c *Config) any { return &c.Activity.ResultBytes }, unit: "bytes", low: 1 << 10, high: 64 << 20,
			meaning: "largest result of a command, as JSON"},
		{key: "activity.per-host", field: func(c *Config) any { return &c.Activity.PerHost }, low: 1, high: 4096,
			meaning: "HTTP requests to one host at once"},
		{key: "activity.break-after", field: func(c *Config) any { return &c.Activity.BreakAfter }, low: 1, high: 1000,
			meaning: "failures in a row that open the circuit breaker of a function, or of one method and path of a host"},
		{key: "activity.break-for", field: func(c *Config) any { return &c.Activity.BreakFor }, unit: "duration", low: int64(time.Millisecond), high: hour,
			meaning: "longest time that a circuit breaker stays open; a second at first, doubled while what it keeps from does not work"},
		{key: "activity.waiting", field: func(c *Config) any { return &c.Activity.Waiting }, low: 1, high: 100_000,
			meaning: "commands for one destination that wait on this node; what is beyond is left to all nodes"},
		{key: "activity.waiting-bytes", field: func(c *Config) any { return &c.Activity.WaitingBytes }, unit: "bytes", low: 1 << 20, high: 1 << 30,
			meaning: "memory for the commands that wait on this node"},
		{key: "activity.give-up-after", field: func(c *Config) any { return &c.Activity.GiveUpAfter }, unit: "duration", low: second, high: 365 * 24 * hour,
			meaning: "how long a command waits for its place on a node before an attempt, where its definition does not say; then it is given up"},
		{key: "activity.attempts", field: func(c *Config) any { return &c.Activity.Attempts }, low: 1, high: 1000,
			meaning: "attempts at one command, with the first"},
		{key: "activity.delay", field: func(c *Config) any { return &c.Activity.Delay }, unit: "duration", low: int64(time.Millisecond), high: hour,
			meaning: "delay before the second attempt; it doubles with each"},
		{key: "activity.delay-max", field: func(c *Config) any { return &c.Activity.DelayMax }, unit: "duration", low: int64(time.Millisecond), high: 24 * hour,
			meaning: "longest delay before an attempt"},
		{key: "secrets.prefix", field: func(c *Config) any { return &c.Secrets.Prefix },
			meaning: "what the names of environment variables with secrets begin with, not AQUEDUCT_; empty = none is a secret"},
		{key: "secrets.dir", field: func(c *Config) any { return &c.Secrets.Dir },
			meaning: "folder with a file, or a folder of files, for each secret; empty = none"},
		{key: "secrets.hosts", field: func(c *Config) any { return &c.Secrets.Hosts },
			meaning: "where secrets may be sent, a list of NAME=HOST, NAME=HOST:PORT or NAME=*.DOMAIN, separated by commas; a secret that it does not name goes to the hosts that definitions write out"},
	}
}

// stepping says what is done in the transactions of turns.
func stepping() []setting {
	return []setting{
		{key: "steps.sql", field: func(c *Config) any { return &c.Steps.SQL },
			meaning: "folder of files NAME.sql, each a statement that call: sql may name, the same on every node; empty = none"},
		{key: "steps.tables", field: func(c *Config) any { return &c.Steps.Tables },
			meaning: "script that makes the application's own tables in the embedded store, run at every start; empty = none"},
		{key: "steps.plsql", field: func(c *Config) any { return &c.Steps.PLSQL },
			meaning: "procedures that call: plsql may name on Oracle, a list of PACKAGE.PROCEDURE or PACKAGE.*, separated by commas; empty = none"},
		{key: "steps.limit", field: func(c *Config) any { return &c.Steps.Limit }, unit: "duration", low: int64(10 * time.Millisecond), high: minute,
			meaning: "longest time of one step in a transaction, whose locks others wait for"},
	}
}

// egress says where requests may go.
func egress() []setting {
	const list = ", a list of addresses, ranges such as 10.0.0.0/8, hosts and *.DOMAINs, separated by commas"
	return []setting{
		{key: "egress.allow", field: func(c *Config) any { return &c.Egress.Allow },
			meaning: "where calls, events and requests for tokens may go" + list + "; empty = everywhere but to link-local addresses"},
		{key: "egress.deny", field: func(c *Config) any { return &c.Egress.Deny },
			meaning: "where they may not go, whatever egress.allow says" + list},
		{key: "egress.fetch-allow", field: func(c *Config) any { return &c.Egress.FetchAllow },
			meaning: "where documents that definitions refer to may be" + list + "; empty = everywhere but at link-local addresses"},
		{key: "egress.fetch-deny", field: func(c *Config) any { return &c.Egress.FetchDeny },
			meaning: "where they may not be, whatever egress.fetch-allow says" + list},
	}
}

func events() []setting {
	return []setting{
		{key: "events.sink", field: func(c *Config) any { return &c.Events.Sink }, secret: true,
			meaning: "http or https URL that gets every emitted event, the same on every node; empty = none"},
		{key: "events.sink-mode", field: func(c *Config) any { return &c.Events.SinkMode }, choices: []string{"structured", "binary"},
			meaning: "form in which the sink gets an event, as a body or with its attributes as headers"},
		{key: "events.sink-authorization-file", field: func(c *Config) any { return &c.Events.SinkSecret },
			meaning: "file of what requests to the sink have in the header Authorization, as Bearer TOKEN, read at each; empty = they have none"},
		{key: "events.lifecycle", field: func(c *Config) any { return &c.Events.Lifecycle },
			meaning: "whether the sink gets an event for each change in the life of a workflow or task, the same on every node"},
		{key: "events.dead-letters", field: func(c *Config) any { return &c.Events.DeadLetters },
			meaning: "whether the sink gets an event for each dead letter, the same on every node"},
		{key: "events.ttl", field: func(c *Config) any { return &c.Events.TTL }, unit: "duration", low: 0, high: 30 * 24 * hour,
			meaning: "how long an event that nobody waited for is kept for a listen that begins, the same on every node; 0 = not at all"},
	}
}

func housekeeping() []setting {
	return []setting{
		{key: "limits.steps", field: func(c *Config) any { return &c.Limits.Steps }, low: 1, high: 1_000_000,
			meaning: "pure tasks in one turn before it continues in another"},
		{key: "limits.fan-out", field: func(c *Config) any { return &c.Limits.FanOut }, low: 1, high: 100_000,
			meaning: "branches of one fork"},
		{key: "limits.items", field: func(c *Config) any { return &c.Limits.Items }, low: 1, high: 10_000_000,
			meaning: "items of one loop's collection"},
		{key: "limits.expression-steps", field: func(c *Config) any { return &c.Limits.ExpressionSteps }, low: 1_000, high: 1_000_000_000,
			meaning: "operations of one expression's evaluation"},
		{key: "limits.expression-bytes", field: func(c *Config) any { return &c.Limits.ExpressionBytes }, unit: "bytes", low: 1 << 10, high: 64 << 20,
			meaning: "largest result of an expression, as JSON"},
		{key: "memory.limit", field: func(c *Config) any { return &c.MemoryLimit }, unit: "bytes", low: 0, high: 1 << 44,
			meaning: "memory of the node, which it shares out; 0 = the limit of its control group, or half of the machine's"},
		{key: "rates.self-starts", field: func(c *Config) any { return &c.Rates.Starts }, low: 1, high: 1_000_000,
			meaning: "instances in a second that instances of their own definition start, also by way of others; more are delayed"},
		{key: "rates.self-events", field: func(c *Config) any { return &c.Rates.Events }, low: 1, high: 1_000_000,
			meaning: "events in a second that instances of a definition take from instances of it; more are delayed"},
		{key: "rates.self-loops", field: func(c *Config) any { return &c.Rates.Loops }, low: 1, high: 1_000_000,
			meaning: "turns in a second, of limits.steps tasks each, of instances of a definition that loop without waiting; more are delayed"},
		{key: "rates.burst", field: func(c *Config) any { return &c.Rates.Burst }, low: 1, high: 1_000_000,
			meaning: "how many of each of these go at once before the rate holds"},
		{key: "retention.enabled", field: func(c *Config) any { return &c.Retention.Enabled },
			meaning: "whether what is over is deleted in time"},
		{key: "retention.keep", field: func(c *Config) any { return &c.Retention.Keep }, unit: "duration", low: minute, high: 100 * year,
			meaning: "how long a closed instance is kept after its end"},
		{key: "retention.faulted", field: func(c *Config) any { return &c.Retention.Faulted }, unit: "duration", low: 0, high: 100 * year,
			meaning: "how long a faulted instance that nobody touches is kept; then it is cancelled, and retention.keep is its window; 0 = for ever"},
		{key: "retention.dead-letters", field: func(c *Config) any { return &c.Retention.DeadLetters }, unit: "duration", low: 0, high: 100 * year,
			meaning: "how long a dead letter is kept after it died, where its instance has ended or is gone; 0 = for ever"},
		{key: "retention.audit", field: func(c *Config) any { return &c.Retention.Audit }, unit: "duration", low: 0, high: 100 * year,
			meaning: "how long a row of the audit is kept; 0 = for ever. On Oracle with store.owner nodes may not delete any, and it is 0"},
		{key: "retention.tokens", field: func(c *Config) any { return &c.Retention.Tokens }, unit: "duration", low: 0, high: 100 * year,
			meaning: "how long a token is kept after it expired or was revoked; 0 = for ever"},
		{key: "retention.policies", field: func(c *Config) any { return &c.Retention.Policies }, unit: "duration", low: 0, high: 100 * year,
			meaning: "how long a version of a policy is kept after a newer one was published, where no instance is left that may have gone by it; 0 = for ever"},
		{key: "retention.bulk", field: func(c *Config) any { return &c.Retention.Bulk }, unit: "duration", low: 0, high: 100 * year,
			meaning: "how long a plan of what is done to many is kept, with its items, after it was made, run, stopped or done last; 0 = for ever"},
		{key: "retention.interval", field: func(c *Config) any { return &c.Retention.Interval }, unit: "duration", low: minute, high: 7 * 24 * hour,
			meaning: "time between two runs of the retention job"},
		{key: "reconcile.interval", field: func(c *Config) any { return &c.Reconcile.Interval }, unit: "duration", low: 0, high: 24 * hour,
			meaning: "time between two looks for waits that are overdue and whose message is gone; 0 = never"},
		{key: "reconcile.grace", field: func(c *Config) any { return &c.Reconcile.Grace }, unit: "duration", low: second, high: 24 * hour,
			meaning: "how long a wait is overdue before its message is looked for"},
		{key: "log.level", field: func(c *Config) any { return &c.Log.Level }, choices: []string{"debug", "info", "warn", "error"},
			meaning: "least important message that is logged"},
		{key: "log.format", field: func(c *Config) any { return &c.Log.Format }, choices: []string{"text", "json"},
			meaning: "form of the log"},
	}
}

// tracing says who gets spans.
func tracing() []setting {
	return []setting{
		{key: "tracing.endpoint", field: func(c *Config) any { return &c.Tracing.Endpoint },
			meaning: "http or https URL of a receiver of OpenTelemetry, which gets spans of turns and of attempts at /v1/traces as OTLP in JSON; empty = nobody"},
		{key: "tracing.headers-file", field: func(c *Config) any { return &c.Tracing.HeadersFile },
			meaning: "file with the headers of each request to tracing.endpoint, a line NAME: VALUE for each, read again when it changes; empty = none"},
		{key: "tracing.ratio", field: func(c *Config) any { return &c.Tracing.Ratio }, low: 0, high: 1,
			meaning: "how many of the instances that nobody traced has started are sampled, from 0 to 1, chosen by the id of the trace; who is traced says so themselves"},
		{key: "tracing.service", field: func(c *Config) any { return &c.Tracing.Service },
			meaning: "service.name of the spans"},
		{key: "tracing.oracle-action", field: func(c *Config) any { return &c.Tracing.OracleAction },
			meaning: "V$SESSION.ACTION is the traceparent of the instance (Oracle); false = the id of its trace"},
	}
}
