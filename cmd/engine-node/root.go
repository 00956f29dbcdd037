package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// Exit codes.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2 // the command line or the configuration is wrong
	exitNotFound = 3 // what it names does not exist
	exitConflict = 4 // the state does not allow it
)

// Names of what is read from the environment beside the settings of a node.
const (
	serverVariable    = "AQUEDUCT_SERVER"
	tokenVariable     = "AQUEDUCT_TOKEN"
	tokenFileVariable = "AQUEDUCT_TOKEN_FILE"
	caVariable        = "AQUEDUCT_CA_FILE"
	certVariable      = "AQUEDUCT_CERT_FILE"
	keyVariable       = "AQUEDUCT_KEY_FILE"
	defaultServer     = "http://127.0.0.1:8080"
)

// app is one run of the program.
type app struct {
	self   string // how the program was called, for what is printed to be typed
	env    []string
	given  given
	err    io.Writer
	page   *page
	begun  bool // a command runs: what fails now is not its usage
	server string
	store  string
	actor  string
	reason string
	token  string // file that holds it
	tls    client.TLS
	json   bool
}

// Run is the whole program but for the process: it returns the exit code.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// A node has its own log. net/http prints here what a server sends without
	// having been asked, byte for byte: it may quote a secret.
	log.SetOutput(io.Discard)
	out, errs := &terminal{to: stdout}, &terminal{to: stderr}
	defer out.end()
	defer errs.end()
	stdout, stderr = out, errs
	a := &app{self: self(), env: os.Environ(), given: given{stdin}, err: stderr, page: &page{out: stdout, now: time.Now}}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.begun { // what stands behind a wrong flag was not read
		a.json = a.json || asksJSON(args)
	}
	return a.finish(err)
}

// asksJSON reports whether --json stands among the flags.
func asksJSON(args []string) bool {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	return slices.ContainsFunc(args, func(arg string) bool {
		value, given := strings.CutPrefix(arg, "--json=")
		asked, _ := strconv.ParseBool(value) // what is neither is the error, or behind it
		return arg == "--json" || given && asked
	})
}

// self is the program's name as a shell finds it.
func self() string {
	if strings.ContainsRune(os.Args[0], filepath.Separator) && !filepath.IsAbs(os.Args[0]) {
		return os.Args[0]
	}
	return "engine-node"
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "engine-node",
		Short: "Run durable workflows",
		Long: `engine-node runs durable workflows, and speaks to a node that runs them.

Verbs that speak to a node find it at --server, else in AQUEDUCT_SERVER, else at
` + defaultServer + `. With --store sqlite://PATH they work on the database itself,
beside a running node or without one; what needs a node (calls, timers) then
waits for one.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 not found,
4 the state does not allow it.`,
		SilenceErrors: true, SilenceUsage: true,
		Args: wordOf,
	}
	// Not cobra's own: a template for its text would keep every method of the program
	// (docs/decisions/0126).
	asksVersion := root.Flags().BoolP("version", "v", false, "version for engine-node")
	root.RunE = func(c *cobra.Command, _ []string) error {
		if *asksVersion {
			fmt.Fprintln(a.page.out, versionText())
			return nil
		}
		return c.Help()
	}
	root.SetFlagErrorFunc(flagError)
	flags := root.PersistentFlags()
	flags.StringVar(&a.server, "server", "", "address of a node's API (default: "+serverVariable+", else "+defaultServer+")")
	flags.StringVar(&a.store, "store", "", "work on this database instead: sqlite://PATH")
	flags.StringVar(&a.actor, "actor", os.Getenv("USER"), "who does it, for the stream and the audit")
	flags.StringVar(&a.reason, "because", "", "why it is done, for the audit")
	flags.StringVar(&a.token, "token-file", "", "file that holds the token for --server (default: "+tokenFileVariable+", else the token is in "+tokenVariable+")")
	flags.StringVar(&a.tls.CA, "ca-file", "", "file of who signs the certificate of an https --server (default: "+caVariable+", else whom this host believes)")
	flags.StringVar(&a.tls.Certificate, "cert-file", "", "file of the certificate by which you are known to --server (default: "+certVariable+")")
	flags.StringVar(&a.tls.Key, "key-file", "", "file of the key of --cert-file (default: "+keyVariable+")")
	flags.BoolVar(&a.json, "json", false, "print JSON, for programs")
	flags.BoolVar(&a.page.wide, "wide", false, "more columns in lists, and data that are not cut")
	root.MarkFlagsMutuallyExclusive("server", "store")
	root.AddCommand(commands(a)...)
	a.mark(root)
	return root
}

// mark has every command note that it runs: what failed before was its usage, and
// is told with what the usage is. Its arguments are completed.
func (a *app) mark(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return argumentError(c, err)
			}
			return nil
		}
	}
	if !c.HasSubCommands() {
		c.ValidArgsFunction = offer(a, c.Use)
	}
	if do := c.RunE; do != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			a.begun = true
			if err := sound(c, args); err != nil {
				return err
			}
			return do(c, args)
		}
	}
	for _, sub := range c.Commands() {
		a.mark(sub)
	}
}

// neverEmpty are flags that mean something else when they are left out: an empty one is a
// variable of a script that nobody has set.
var neverEmpty = []string{
	"id", "input", "signal", "signal-data", "signal-id", "key", "start-key", "dedupe-key", "definition-version", "data", "user", "instance", "where",
	"definition", "version", "status", "state", "parent", "error-code", "text", "older-than", "queue", "reason", "assignee", "action", "target", "result",
	"type", "output", "outcome", "map", "to", "rate", "store", "server", "config",
	"request-id", "payload", "sender", "consumer", "delay", "lease", "body", "context",
	"group", "role", "kind", "because", "token-file",
}

// sound refuses arguments and flags that are given, and say nothing.
func sound(c *cobra.Command, args []string) (err error) {
	if slices.Contains(args, "") {
		return usage("an argument of %s is empty", c.UseLine())
	}
	c.Flags().Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		switch {
		case f.Name == "status" && c.Parent().Name() == "activities": // one may have none
		case isEmpty(f.Value) && slices.Contains(neverEmpty, f.Name):
			err = usage("--%s is empty: leave it out, or say what it is", f.Name)
		case f.Name == "limit" && (value == "0" || strings.HasPrefix(value, "-")), f.Name == "wait" && strings.HasPrefix(value, "-"):
			err = usage("--%s is %s: it is more than nothing", f.Name, value)
		}
	})
	return err
}

// isEmpty reports whether the value of a flag says nothing: blanks, or no text in a list.
func isEmpty(v pflag.Value) bool {
	if list, ok := v.(pflag.SliceValue); ok {
		return strings.TrimSpace(strings.Join(list.GetSlice(), "")) == ""
	}
	return strings.TrimSpace(v.String()) == ""
}

// commands lists every verb.
func commands(a *app) []*cobra.Command {
	return []*cobra.Command{
		serveCommand(a), migrateCommand(a), restoreCommand(a), doctorCommand(a), verifyCommand(a), configCommand(a), versionCommand(a),
		validateCommand(a), evalCommand(a), diagramCommand(a), publishCommand(a), definitionsCommand(a), policiesCommand(a), schedulesCommand(a),
		startCommand(a), signalCommand(a), eventCommand(a), triggerCommand(a), stateCommand(a), ackCommand(a),
		showCommand(a), whyCommand(a), listCommand(a), tasksCommand(a), deadLettersCommand(a), bulkCommand(a), queuesCommand(a), targetsCommand(a), nodesCommand(a), commandsCommand(a), tokensCommand(a), loginCommand(a), logoutCommand(a), whoamiCommand(a), auditCommand(a), activitiesCommand(a), timelineCommand(a), benchCommand(a),
		operationCommand(a, "suspend", "Stop an instance; its signals are kept"),
		operationCommand(a, "resume", "Go on with a suspended instance"),
		operationCommand(a, "retry", "Run the failed task of a faulted instance again"),
		operationCommand(a, "retry-same", "Retry with the request whose outcome is unknown, under its key"),
		operationCommand(a, "retry-new", "Retry with the new request although the outcome of the one before is unknown"),
		operationCommand(a, "skip", "Take the failed task of a faulted instance as done"),
		operationCommand(a, "run-now", "End a timer, the pause before a retry or before the next attempt at a command"),
		rewindCommand(a),
		operationCommand(a, "cancel", "End an instance; nothing is compensated but with --compensate"),
	}
}

// group is a command that only has commands.
func group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: wordOf,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(verbs...)
	return c
}

// connect returns a client of the node that the flags name, or of the database
// itself, and what ends it.
func (a *app) connect(ctx context.Context) (*client.Client, func(), error) {
	for flag, text := range map[string]string{"actor": a.actor, "because": a.reason} {
		if strings.ContainsFunc(text, unicode.IsControl) {
			return nil, nil, usage("--%s has a control character: %q", flag, text)
		}
	}
	end := func() {}
	var c *client.Client
	var err error
	if a.store != "" {
		var n *node
		if n, err = a.peer(ctx); err != nil {
			return nil, nil, err
		}
		end = n.close
		c, err = client.New("http://localhost", inProcess(n.handler))
	} else {
		if c, err = visitorOf(a).client(); err == nil {
			err = identify(a, c)
		}
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	c.Actor, c.Reason = a.actor, a.reason
	return c, end, nil
}

// identify gives a client what it shows a node: the token that was given, or else that of
// who has logged in, which may expire before the command is done.
func identify(a *app, c *client.Client) (err error) {
	file := a.token
	if file == "" {
		if token := a.variable(tokenVariable); token != "" {
			c.Token, err = tokenIn(tokenVariable, token)
			return err
		}
		if file = a.variable(tokenFileVariable); file == "" {
			c.Bearer = (&session{of: visitorOf(a)}).bearer
			return nil
		}
	}
	b, err := a.given.read(file)
	if err != nil {
		return err
	}
	c.Token, err = tokenIn(file, string(b))
	return err
}

// tokenIn is the token that a file or a variable holds.
func tokenIn(place, text string) (string, error) {
	token := strings.TrimSpace(text)
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", problem.New(problem.Invalid, "cli.token", "%s holds no token: one is a word of ASCII", place)
	}
	return token, nil
}

func (a *app) variable(name string) string {
	for _, e := range a.env {
		if n, value, ok := strings.Cut(e, "="); ok && n == name {
			return value
		}
	}
	return ""
}

// with runs a verb on a client.
//
//go:noinline
func (a *app) with(do func(ctx context.Context, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, end, err := a.connect(cmd.Context())
		if err != nil {
			return err
		}
		defer end()
		return do(cmd.Context(), c, args)
	}
}

// wrongUsage begins the codes of what the command line says wrong, of whatever kind and
// whoever found it: the program, or the node that was asked.
var wrongUsage = []string{"cli.", "config.", "request.", "filter."}

// elsewhere begins the codes of what is invalid, and not in the command line: in what a
// document defines, in what an instance came to, in a database.
var elsewhere = []string{"definition.", "expression.", "schema.", "policy.", "workflow.", "step.", "instance.", "store."}

// finish reports an error, and chooses the exit code.
func (a *app) finish(err error) int {
	if err == nil {
		return exitOK
	}
	var p *problem.Error
	if !errors.As(err, &p) {
		p = problem.New(problem.Internal, "failed", "%s", err)
		if !a.begun {
			p = problem.New(problem.Invalid, "cli.usage", "%s", err).WithHint("see %s --help", a.self)
		}
	}
	a.report(p)
	begins := func(prefix string) bool { return strings.HasPrefix(p.Code, prefix) }
	switch {
	case slices.ContainsFunc(wrongUsage, begins), p.Kind == problem.Invalid && !slices.ContainsFunc(elsewhere, begins):
		return exitUsage
	case p.Kind == problem.NotFound:
		return exitNotFound
	case p.Kind == problem.Conflict:
		return exitConflict
	}
	return exitFailed
}

// report writes a problem for people, or for programs.
func (a *app) report(p *problem.Error) {
	detail := p.Detail
	if p.Cause != nil {
		detail += ": " + p.Cause.Error()
	}
	if a.json {
		doc := struct {
			Code   string         `json:"code"`
			Detail string         `json:"detail"`
			Hint   string         `json:"hint,omitempty"`
			Where  []client.Place `json:"where,omitempty"`
		}{Code: p.Code, Detail: detail, Hint: p.Hint}
		for _, w := range p.Where {
			doc.Where = append(doc.Where, client.Place(w))
		}
		b, _ := json.Marshal(doc) // plain data
		fmt.Fprintf(a.err, "%s\n", b)
		return
	}
	fmt.Fprintf(a.err, "error: %s [%s]\n", ownLines(detail), p.Code)
	for _, w := range p.Where {
		fmt.Fprintf(a.err, "  %s\n", ownLines(w.String()))
	}
	if p.Hint != "" {
		fmt.Fprintf(a.err, "hint: %s\n", ownLines(p.Hint))
	}
}

// usage is an error in how the program was called.
//
//go:noinline
func usage(detail string, args ...any) *problem.Error {
	return problem.New(problem.Invalid, "cli.usage", detail, args...)
}

// given is what a run of the program may read.
type given struct{ in io.Reader }

// maxInputBytes bounds what is read of a file or of standard input.
const maxInputBytes = 2 << 20

// read returns the content of a file; "-" is standard input.
func (g given) read(file string) ([]byte, error) {
	in := g.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, problem.Wrap(errors.Unwrap(err), problem.Invalid, "cli.file", "%s cannot be read", file)
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxInputBytes+1))
	if err != nil {
		return nil, problem.Wrap(err, problem.Invalid, "cli.file", "%s cannot be read", file)
	}
	if len(b) > maxInputBytes {
		return nil, problem.New(problem.TooLarge, "cli.file", "%s exceeds %d bytes", file, maxInputBytes)
	}
	return b, nil
}

// document reads a flag that takes JSON, @FILE or -.
func (g given) document(flag, text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	b, where := []byte(text), "--"+flag
	if name, isFile := strings.CutPrefix(text, "@"); isFile || text == "-" {
		if !isFile {
			name = "-"
		}
		var err error
		if b, err = g.read(name); err != nil {
			return nil, err
		}
		where = name
	}
	var v json.RawMessage
	// Where a key stands twice, the API says it.
	if err := jsonv2.Unmarshal(b, &v, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, problem.Wrap(err, problem.Invalid, "cli.json", "%s is not JSON", where).
			WithHint("write JSON, @FILE, or - for standard input; a text needs quotes of its own: '\"text\"'")
	}
	return v, nil
}
