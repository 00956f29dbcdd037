package tidy

// DO NOT CHANGE THIS DATA TO MAKE A BUILD PASS. An arrow that is missing here
// is a question about the design, and the answer belongs to docs/decisions.

const module = "github.com/aqueduct-engine/aqueduct"

const everything = "..."

// rule says which packages of this module a package sees.
type rule struct {
	floor int
	pkg   string   // "x/..." = x and everything below it
	sees  []string // that it may import
	tests []string // that its tests may import besides
}

// support is what tests of the upper floors may lean on: SQLite is our fake.
var support = []string{"store/...", "sql/...", "definition/...", "humantask", "program", "workflow", "internal/..."}

// law lists every package of the house, from the ground up. Arrows go down
// only; neighbours do not see each other; only cmd wires. The first rule that
// fits counts.
var law = []rule{
	{-1, "appendjson", nil, nil},
	{-1, "nearest", nil, nil},
	{-1, "duration", nil, nil},
	{0, "problem", nil, nil},
	{0, "signal", []string{"problem"}, nil},
	{0, "snapshot", []string{"appendjson", "problem"}, nil},
	{0, "jq", []string{"nearest", "problem"}, nil},
	{0, "schema", []string{"problem"}, nil},
	{0, "aq", []string{"problem"}, []string{"internal/..."}},
	{0, "config", []string{"duration", "nearest", "problem"}, nil},
	{0, "memory", []string{"problem"}, nil},
	{0, "principal", nil, nil},
	{4, "audit", []string{"principal", "store"}, []string{"snapshot"}},
	{5, "access", []string{"audit", "principal", "problem", "store", "store/backend"}, []string{"internal/..."}}, // without it nobody is known, and a node is its host's alone
	{6, "access/provider", []string{"access", "principal", "problem"}, []string{"internal/..."}},                 // without it nodes know the bearers of their own tokens alone
	{5, "settings", []string{"audit", "problem", "store", "store/backend"}, []string{"sql/..."}},                 // without it nodes of one database may do what must be alike each in its own way
	{1, "engine", []string{"problem", "signal", "snapshot"}, []string{"compensate", "operate"}},                  // a definition in Go, with all that one can do
	{1, "attribute", []string{"problem", "snapshot"}, nil},                                                       // what instances are found by
	{2, "ack", []string{"engine", "problem", "snapshot"}, nil},
	{2, "compensate", []string{"engine", "signal", "snapshot"}, nil},
	{2, "humantask", []string{"engine"}, nil},
	{2, "migration", []string{"engine", "snapshot"}, nil},
	{2, "operate", []string{"engine", "problem", "signal", "snapshot"}, nil},
	{2, "schedule", []string{"duration", "engine", "signal", "snapshot"}, nil},
	{3, "program", []string{"ack", "attribute", "compensate", "duration", "engine", "humantask", "jq", "migration", "nearest", "problem", "schedule", "schema", "signal", "snapshot"}, []string{"definition/...", "operate", "projections", "replay"}}, // scenarios are written in the language
	{3, "workflow", []string{"compensate", "engine", "humantask", "problem", "schema", "signal", "snapshot"}, []string{"aqueducttest", "definition/...", "operate"}},                                                                                   // workflows in Go
	{2, "projections", []string{"appendjson", "engine", "problem", "signal", "snapshot"}, nil},
	{3, "definition", []string{"engine", "migration", "problem", "signal", "snapshot"}, []string{"definition/..."}},
	{3, "definition/diagram", nil, []string{"definition/openworkflow"}}, // draws any document
	{4, "definition/...", []string{"attribute", "definition", "duration", "engine", "humantask", "jq", "nearest", "problem", "program", "schedule", "schema", "signal", "snapshot"}, nil},
	{4, "replay", []string{"ack", "definition", "engine", "operate", "problem", "projections", "schedule", "signal", "snapshot"}, []string{"definition/..."}}, // without it nobody can prove that a stream and a snapshot belong together
	{3, "correlation", []string{"engine", "projections", "snapshot"}, nil},
	{3, "store", []string{"problem", "projections", "signal", "snapshot"}, nil},
	{4, "store/backend", []string{"attribute", "engine", "humantask", "problem", "projections", "store"}, nil}, // a store whole: what a turn does not ask
	{5, "store/storetest", []string{"attribute", "correlation", "definition", "engine", "problem", "projections", "signal", "snapshot", "store", "store/backend"}, []string{"internal/..."}},
	{5, "store/survey", []string{"correlation", "engine", "problem", "projections", "signal", "snapshot", "store", "store/backend"}, nil}, // for those who examine a database, which no node does
	{5, "sql/lists", []string{"attribute", "problem", "projections", "sql/rows", "store", "store/backend"}, nil},
	{5, "sql/history", []string{"definition", "problem", "projections", "sql/rows"}, nil}, // instances whole, for those who verify them
	{3, "sql/rows", []string{"problem"}, nil},
	{3, "sql/steps", []string{"nearest", "problem", "snapshot"}, nil}, // what documents may have done in transactions
	{3, "sql/sqlite/conn", []string{"problem"}, nil},
	{4, "sql/sqlite/pieces", []string{"sql/sqlite/conn"}, nil},
	{3, "sql/sqlite/files", []string{"problem"}, []string{"sql/embedded/schema", "sql/sqlite", "store"}},
	{4, "sql/embedded/schema", []string{"problem", "sql/sqlite/conn", "sql/sqlite/files"}, nil},
	{6, "sql/embedded", []string{"definition", "problem", "projections", "snapshot", "sql/history", "sql/lists", "sql/embedded/schema", "sql/rows", "sql/sqlite", "sql/sqlite/conn", "sql/sqlite/files", "sql/steps", "store", "store/backend", "store/survey"}, []string{"signal", "snapshot", "store/storetest", "internal/..."}},
	{6, "sql/oracle", []string{"aq", "definition", "problem", "projections", "signal", "snapshot", "sql/history", "sql/lists", "sql/rows", "sql/steps", "store", "store/backend", "store/survey"}, []string{"store/storetest", "internal/..."}},
	{5, "sql/sqlite", []string{"problem", "projections", "signal", "snapshot", "sql/rows", "sql/sqlite/conn", "sql/sqlite/files", "sql/sqlite/pieces", "store"}, []string{"engine", "sql/embedded/schema", "store/backend", "store/storetest", "internal/..."}},
	{3, "runtime/cache", []string{"snapshot"}, []string{"definition/...", "engine", "signal"}},
	{3, "runtime/admission", []string{"problem"}, nil},
	{3, "runtime/line", []string{"problem"}, nil},
	{4, "runtime/turn", []string{"engine", "memory", "problem", "projections", "signal", "snapshot", "store"}, []string{"definition/..."}},
	{5, "runtime/dispatch", []string{"engine", "memory", "problem", "projections", "runtime/admission", "runtime/turn", "signal", "snapshot", "store"}, nil},
	{5, "runtime/pump", []string{"engine", "memory", "problem", "projections", "runtime/line", "runtime/turn", "signal", "store"}, []string{"runtime/cache", "snapshot"}},
	{5, "runtime/events", []string{"correlation", "engine", "problem", "projections", "runtime/turn", "schedule", "signal", "snapshot", "store", "store/backend"}, nil},
	{5, "runtime/service", []string{"attribute", "audit", "definition", "engine", "humantask", "migration", "operate", "problem", "projections", "runtime/turn", "schedule", "schema", "signal", "snapshot", "store", "store/backend"}, nil},
	{6, "runtime", []string{"ack", "attribute", "audit", "correlation", "definition", "duration", "engine", "memory", "problem", "projections", "runtime/admission", "runtime/cache", "runtime/dispatch", "runtime/events", "runtime/pump", "runtime/service", "runtime/turn", "schedule", "signal", "snapshot", "store", "store/backend"}, append([]string{"activity", "replay"}, support...)},
	{4, "activity", []string{"engine", "memory", "problem", "signal", "snapshot"}, []string{"internal/..."}},
	{3, "api/client", []string{"problem"}, nil},                                                                                                                   // the wire types and a client, for programs that are no node
	{5, "tracing", []string{"activity", "engine", "problem", "runtime/turn", "schedule", "signal", "snapshot", "store"}, append([]string{"runtime"}, support...)}, // without it nobody sees turns as spans
	{6, "tracing/otlp", []string{"tracing"}, []string{"internal/..."}},                                                                                            // who sends spans elsewhere needs none of it
	{6, "api", []string{"access", "ack", "api/client", "attribute", "definition", "duration", "engine", "humantask", "memory", "principal", "problem", "projections", "runtime/admission", "schedule", "signal", "snapshot", "store", "store/backend"}, support},
	{4, "console/html", []string{"definition/diagram"}, nil},                                                                                                                           // what pages are made of
	{5, "console", []string{"api/client", "console/html", "definition/diagram", "problem", "schema"}, []string{"internal/..."}},                                                        // a client of the API that is asked in the process
	{5, "aqueducttest", []string{"activity", "definition/...", "engine", "humantask", "operate", "problem", "projections", "replay", "schema", "signal", "snapshot", "workflow"}, nil}, // no store: a test of a definition needs none
	{7, "bench", []string{"definition/...", "engine", "problem", "projections", "runtime", "signal", "snapshot", "store", "store/backend", "workflow"}, support},
	{7, "cmd/...", []string{everything}, nil},
	{7, "examples/...", []string{everything}, nil},
	{0, "internal/tidy", nil, nil},
	{0, "internal/counts", nil, nil},
	{0, "internal/cluster/history", nil, nil}, // judges the engine, so it shares nothing with it
	{0, "internal/chaos/judge", nil, nil},     // so does this one
	{7, "internal/...", []string{everything}, nil},
}

// pure packages decide; they do no I/O and read no clock.
var pure = []string{"ack", "appendjson", "attribute", "nearest", "compensate", "correlation", "duration", "engine", "humantask", "migration", "operate", "schedule", "program", "signal", "snapshot", "projections", "jq", "schema", "workflow", "replay", "definition/..."}

// impure is what a pure package must not import.
var impure = []string{
	"database/sql/...", "net", "net/...", "os", "os/...", "log", "log/...", "syscall", "math/rand/...", "crypto/rand",
	"github.com/prometheus/...",
}

// clock is what a pure package must not use of package time.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// only says which packages may import what: no driver's type, and no
// framework's, spreads through the house.
var only = []struct {
	imports []string
	by      []string
	why     string
}{
	{[]string{"github.com/mattn/go-sqlite3"}, []string{"sql/sqlite/conn"}, "the driver stays in its store"},
	{[]string{"github.com/godror/..."}, []string{"sql/oracle", "aq", "internal/..."}, "the driver stays in its store"},
	{[]string{"github.com/jmoiron/sqlx/..."}, []string{"sql/..."}, "SQL is run by stores"},
	{[]string{"database/sql/..."}, []string{"sql/...", "aq", "store/storetest", "internal/...", "examples/...", "cmd/..."}, "SQL is run by stores"},
	{[]string{"github.com/spf13/viper/..."}, []string{"config"}, "settings are read once"},
	{[]string{"github.com/spf13/cobra/..."}, []string{"cmd/..."}, "verbs are wired by cmd"},
	{[]string{"github.com/danielgtaylor/huma/..."}, []string{"api"}, "HTTP is api's"},
	{[]string{"github.com/itchyny/gojq/..."}, []string{"jq"}, "expressions are bounded by jq"},
	{[]string{"github.com/santhosh-tekuri/jsonschema/..."}, []string{"schema", "internal/..."}, "schemas are bounded by schema"},
	{[]string{"github.com/robfig/cron/..."}, []string{"schedule"}, "cron expressions are read where ticks are made"},
	{[]string{"maragu.dev/gomponents/..."}, []string{"console/html"}, "pages are made of what cannot harm their reader"},
	{[]string{"html/template", "text/template"}, nil, "a template calls methods by name, so that the linker keeps every exported one"},
	{[]string{"github.com/prometheus/..."}, []string{"runtime/...", "activity", "api", "cmd/..."}, "metrics live where things happen"},
}

// maxSleeps is how many calls of time.Sleep tests may have together: those that
// play something slow, and those that internal/await has not replaced yet. A
// test that waits for something waits with internal/await. It only goes down.
const maxSleeps = 54

// bannedNames are packages that could hold anything.
var bannedNames = []string{"util", "utils", "common", "impl", "types", "manager", "helper", "helpers", "misc", "base", "shared"}

// neverAsserted are types that no code finds out about: what only some of their
// kind can do is an interface, which others may have too.
var neverAsserted = []string{"program.Program"}

// exactKeys: encoding/json takes USER and uſer for user, and the last of two
// keys. What comes from outside is decoded by json/v2, whose keys are exact and
// stand once. A file that decodes with encoding/json is here, with the reason
// why no key of a stranger is matched.
var exactKeys = map[string]string{
	"activity/call.go":                "single values, and lists of them",
	"activity/scrub.go":               "into any, whose keys are exact",
	"activity/secrets.go":             "into maps, whose keys are exact",
	"activity/sink.go":                "into a map, whose keys are exact",
	"api/rows.go":                     "rows that nodes have written",
	"api/strict.go":                   "tokens only",
	"aqueducttest/asserts.go":         "into the types of a test's author",
	"aqueducttest/calls.go":           "what the engine has written",
	"definition/openworkflow/auth.go": "a text",
	"definition/resources.go":         "what the parser has written",
	"jq/decode.go":                    "into any, whose keys are exact",
	"store/backend/parts.go":          "rows that nodes have written",
	"runtime/dispatch/command.go":     "rows that nodes have written",
	"runtime/lifecycle.go":            "rows that nodes have written",
	"replay/compare.go":               "into any, whose keys are exact",
	"replay/replay.go":                "rows that nodes have written",
	"schema/schema.go":                "into any, whose keys are exact",
	"snapshot/codec.go":               "what nodes have written, with a checksum",
}

// kernel is what a newcomer reads in an afternoon. The packages that decide,
// store and turn are in it; the language, Oracle, the API and what people ask
// are extras.
var kernel = []string{
	"problem", "signal", "snapshot", "engine", "projections", "store", "runtime/turn", "runtime/dispatch", "runtime/pump",
	"sql/sqlite", "sql/sqlite/query",
}

// apart are packages that know nothing of the house but its errors, as a library
// does: the kernel may use them, and a newcomer need not read them.
var apart = []string{"appendjson", "jq", "memory", "nearest", "runtime/admission", "runtime/line", "sql/rows", "sql/sqlite/conn", "sql/sqlite/files", "sql/sqlite/pieces"}

// kernelSees lists what the kernel's packages still see of the extras. It only
// shrinks.
var kernelSees = map[string][]string{}

// support packages serve tests and examples; their types may be wide.
var supporting = []string{"internal/...", "examples/...", "bench"}

// library is documented for those who build on the house: what it exports needs
// no user here.
var library = []string{"api/client", "aqueducttest", "cmd/...", "examples/...", "workflow"}

// maxKernel bounds the kernel: lines of Go and SQL, without tests. It is to be
// 10,000, and only goes down.
const maxKernel = 10_000

// The ratchets. Lists say what is over a limit today, and only shrink.
var (
	fileLines = ratchet{rule: "file-lines", unit: "lines", limit: 500, over: map[string]int{}}

	// Of a type that is no test's.
	typeMethods = ratchet{rule: "type-methods", unit: "methods", limit: 25, over: map[string]int{
		"aqueducttest.Workflow":            28,  // what authors call
		"definition/openworkflow.compiler": 133, // reads a document
		"jq.meter":                         40,  // reads a program
	}}

	// Of an interface, with those of what it embeds; of a struct, those that it is
	// promoted by the interfaces in it.
	interfaceMethods = ratchet{rule: "interface-methods", unit: "methods", limit: 6, over: map[string]int{}}
)

// maxUnused is how many exported names have no user outside their package, are no
// part of what it exports, and do not stand in the docs. Constants that are
// declared together count as one, and what a struct embeds is used.
const maxUnused = 0

// One word per concept, the field's own: bannedWords are words that this house
// had for itself, each with the one that everybody knows. A name of Go code and
// of a file has none of them. docs/reference/words.md lists the words we have.
var bannedWords = map[string]string{
	"bed": "test cluster, or fixture", "bell": "wake-up file", "buried": "dead letter", "bury": "dead letter",
	"disown": "onCancel", "disowned": "onCancel", "doubt": "resolve an unknown outcome", "doubted": "unresolved",
	"examine": "check", "examiner": "checker", "grade": "severity", "hear": "deliverEvent",
	"heard": "delivered", "hears": "deliverEvent", "insist": "retry commit", "kase": "test case", "letter": "dead letter", "letters": "dead letters",
	"mend": "fix", "mourn": "peer failure", "mourner": "peer failure", "deaths": "peer failures", "powers": "capabilities, parts",
	"ring": "notify", "rings": "notify", "stash": "prefetch", "stashed": "prefetched", "teller": "publisher", "tellers": "publishers",
	"turnstile": "process lock", "undo": "compensate", "undone": "compensated", "unstash": "return what was prefetched", "untold": "unpublished",
}

// bannedPackages are words that are good for anything but a package.
var bannedPackages = map[string]string{"places": "testdb", "bed": "test cluster", "floor": "baseline"}

// allowedAfter are words that make a banned one what it should be.
var allowedAfter = map[string][]string{"letter": {"dead"}, "letters": {"dead"}}
