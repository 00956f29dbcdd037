package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// prefix begins the name of every environment variable that is a setting.
const prefix = "AQUEDUCT_"

// fileFlag and fileVariable name the file to read.
const (
	fileFlag     = "config"
	fileVariable = prefix + "CONFIG"
)

// ignored are variables with our prefix that are no settings of a node.
var ignored = []string{fileVariable, prefix + "ORACLE_DSN"}

// Origin says where a value came from.
type Origin string

const (
	FromFlag    Origin = "flag"
	FromEnv     Origin = "env"
	FromFile    Origin = "file"
	FromDefault Origin = "default"
)

// Source is what a configuration is read from.
type Source struct {
	Flags *pflag.FlagSet // as made by Flags and parsed; nil = none
	Env   []string       // NAME=value, as os.Environ returns it
}

// Loaded is a configuration with the story of its values.
type Loaded struct {
	Config
	File    string            // that was read; "" = none
	Origins map[string]Origin // by key
}

// Flags defines one flag for every setting, and the one that names the file.
func Flags(f *pflag.FlagSet) {
	f.String(fileFlag, "", "configuration file (YAML)")
	standard := Default()
	for _, s := range settings() {
		f.String(s.flag(), text(s.field(&standard)), s.usage())
		if flag := f.Lookup(s.flag()); isBool(s.field(&standard)) {
			flag.NoOptDefVal = "true"
		}
	}
}

// Load reads, merges and checks. Its error is a problem that lists everything
// that is wrong; its code is that of the first finding: config.unreadable,
// config.not-yaml, config.unknown-key, config.unknown-variable, config.type,
// config.range, config.choice, config.store, config.url, config.address,
// config.not-loopback or config.order. Values of secret settings are not in
// it.
func Load(src Source) (*Loaded, error) {
	env := environment(src.Env)
	l := &Loaded{Config: Default(), Origins: map[string]Origin{}, File: env[fileVariable]}
	if f := changed(src.Flags, fileFlag); f != nil {
		l.File = f.Value.String()
	}
	v := viper.New()
	if err := readFile(v, l.File); err != nil {
		return nil, err
	}
	all := settings()
	keys := v.AllKeys()
	texts, odd := asWritten(l.File)
	found := append(unknownKeys(v, keys, all, l.File), odd...)
	found = append(found, unknownVariables(env, all)...)
	for _, s := range all {
		l.Origins[s.key] = FromDefault
		if slices.Contains(keys, s.key) {
			l.Origins[s.key] = FromFile
			if text, ok := texts[s.key]; ok && isText(s.field(&l.Config)) {
				v.Set(s.key, text)
			}
		}
		if value, ok := env[s.variable()]; ok && value != "" {
			v.Set(s.key, value)
			l.Origins[s.key] = FromEnv
		}
		if f := changed(src.Flags, s.flag()); f != nil {
			v.Set(s.key, f.Value.String())
			l.Origins[s.key] = FromFlag
		}
		if l.Origins[s.key] == FromDefault {
			continue
		}
		if wrong := s.assign(&l.Config, v.Get(s.key)); wrong != nil {
			found = append(found, l.place(s, *wrong))
		}
	}
	if l.Store.Oracle() {
		l.fewerConsumers()
		if l.Store.SchemaOwner() != "" && l.Origins["retention.audit"] == FromDefault {
			l.Retention.Audit = 0 // nodes that are not the owner may not
		}
	}
	if wrong := l.readPassword(); wrong != nil {
		found = append(found, *wrong)
	}
	found = append(found, l.check(all)...)
	if len(found) > 0 {
		return nil, report(found)
	}
	return l, nil
}

// readPassword takes the password from its file.
func (l *Loaded) readPassword() *problem.Place {
	file := l.Store.PasswordFile
	if file == "" {
		return nil
	}
	text, err := passwordOf(file)
	if err != nil {
		return &problem.Place{Code: "config.unreadable", Pointer: pointer("store.password-file"), Detail: err.Error(),
			Hint: "name a file that this user may read"}
	}
	l.Store.Password = text
	return nil
}

func passwordOf(file string) (string, error) {
	raw, err := os.ReadFile(file)
	return strings.TrimRight(string(raw), "\r\n"), err
}

// Rotating reads the password of the Oracle user anew, as it is now; nil = it stays what
// DataSource says.
func (s Store) Rotating() func() (string, error) {
	u, err := url.Parse(s.URL)
	if err != nil || s.PasswordFile == "" {
		return nil
	}
	if written, _ := u.User.Password(); written != "" {
		return nil
	}
	return func() (string, error) { return passwordOf(s.PasswordFile) }
}

// fewerConsumers sets the consumers that nobody has set to what a database
// server is asked for: there, each is a session that blocks.
func (l *Loaded) fewerConsumers() {
	for key, c := range map[string]struct {
		field *int
		value int
	}{
		"queue.signal-consumers":   {&l.Queue.SignalConsumers, OracleSignalConsumers},
		"queue.schedule-consumers": {&l.Queue.ScheduleConsumers, OracleScheduleConsumers},
		"queue.command-consumers":  {&l.Queue.CommandConsumers, OracleCommandConsumers},
	} {
		if l.Origins[key] == FromDefault {
			*c.field = c.value
		}
	}
}

func report(found []problem.Place) error {
	detail := "one setting is wrong"
	if len(found) > 1 {
		detail = fmt.Sprintf("%d settings are wrong", len(found))
	}
	p := problem.New(problem.Invalid, found[0].Code, "%s", detail)
	p.Where = found
	return p
}

func environment(env []string) map[string]string {
	m := map[string]string{}
	for _, e := range env {
		if name, value, ok := strings.Cut(e, "="); ok && strings.HasPrefix(name, prefix) {
			m[name] = value
		}
	}
	return m
}

// changed returns the flag with a name if the command line has it.
func changed(flags *pflag.FlagSet, name string) *pflag.Flag {
	if flags == nil {
		return nil
	}
	if f := flags.Lookup(name); f != nil && f.Changed {
		return f
	}
	return nil
}

func readFile(v *viper.Viper, file string) error {
	if file == "" {
		return nil
	}
	v.SetConfigFile(file)
	v.SetConfigType("yaml")
	err := v.ReadInConfig()
	var malformed viper.ConfigParseError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &malformed):
		return problem.Wrap(err, problem.Invalid, "config.not-yaml", "configuration file %s is not a YAML object", file)
	}
	return problem.Wrap(err, problem.Invalid, "config.unreadable", "configuration file %s cannot be read", file)
}

// asWritten finds what viper does not show of the file: keys that are settings only in lower
// case, which it folds, so that of store and STORE one would win; and documents behind the first.
// Texts are values as they stand there, by setting, of which YAML makes something else: a password
// of digits that begins with 0 is a number to it.
func asWritten(file string) (texts map[string]string, found []problem.Place) {
	raw, err := os.ReadFile(file)
	d := yaml.NewDecoder(bytes.NewReader(raw))
	var doc, second yaml.Node
	if err != nil || d.Decode(&doc) != nil || len(doc.Content) == 0 {
		return nil, nil // readFile has read it: there is no file, or it is empty
	}
	texts = map[string]string{}
	var look func(n *yaml.Node, at string)
	look = func(n *yaml.Node, at string) {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if n.Kind == yaml.ScalarNode && slices.Contains([]string{"!!int", "!!float", "!!bool", "!!timestamp"}, n.ShortTag()) {
			texts[strings.ReplaceAll(strings.TrimPrefix(at, "/"), "/", ".")] = n.Value
		}
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if lower := strings.ToLower(key); lower != key {
				found = append(found, problem.Place{
					File: file, Line: n.Content[i].Line, Column: n.Content[i].Column, Pointer: at + "/" + key, Code: "config.unknown-key",
					Detail: fmt.Sprintf("unknown setting %q", key), Hint: "settings are in lower case: " + lower,
				})
			}
			look(n.Content[i+1], at+"/"+key)
		}
	}
	look(doc.Content[0], "")
	if err := d.Decode(&second); !errors.Is(err, io.EOF) && (err != nil || second.Content[0].ShortTag() != "!!null") {
		found = append(found, problem.Place{
			File: file, Line: second.Line, Column: second.Column, Code: "config.not-yaml",
			Detail: "has a second document, which is not read", Hint: "write all settings into the first: without --- between them",
		})
	}
	return texts, found
}

// unknownKeys finds what the file says and nobody knows. A section of which
// only the heading is left is fine.
func unknownKeys(v *viper.Viper, keys []string, all []setting, file string) []problem.Place {
	slices.Sort(keys)
	var found []problem.Place
	for _, key := range keys {
		known := func(s setting) bool { return s.key == key || v.Get(key) == nil && strings.HasPrefix(s.key, key+".") }
		if !slices.ContainsFunc(all, known) {
			found = append(found, problem.Place{
				File: file, Pointer: pointer(key), Code: "config.unknown-key", Detail: fmt.Sprintf("unknown setting %q", key),
				Hint: suggest(key, all, func(s setting) string { return s.key }),
			})
		}
	}
	return found
}

func unknownVariables(env map[string]string, all []setting) []problem.Place {
	var found []problem.Place
	for name := range env {
		known := func(s setting) bool { return s.variable() == name }
		if !slices.ContainsFunc(all, known) && !slices.Contains(ignored, name) {
			found = append(found, problem.Place{
				Code: "config.unknown-variable", Detail: "unknown environment variable " + name,
				Hint: suggest(name, all, setting.variable),
			})
		}
	}
	sort.Slice(found, func(a, b int) bool { return found[a].Detail < found[b].Detail })
	return found
}

// place completes a finding about a setting with where its value came from.
func (l *Loaded) place(s setting, wrong problem.Place) problem.Place {
	switch l.Origins[s.key] {
	case FromFile:
		wrong.File, wrong.Pointer = l.File, pointer(s.key)
	case FromEnv:
		wrong.Detail = s.variable() + ": " + wrong.Detail
	default:
		wrong.Detail = "--" + s.flag() + ": " + wrong.Detail
	}
	return wrong
}

func pointer(key string) string { return "/" + strings.ReplaceAll(key, ".", "/") }

// check finds what is wrong beside single values.
func (l *Loaded) check(all []setting) []problem.Place {
	var found []problem.Place
	add := func(key, code, detail, hint string) {
		i := slices.IndexFunc(all, func(s setting) bool { return s.key == key })
		found = append(found, l.place(all[i], problem.Place{Code: code, Detail: detail, Hint: hint}))
	}
	path, embedded := l.Store.SQLite()
	switch {
	case embedded && path == "":
		add("store.url", "config.store", "names no file", "write sqlite://PATH")
	case !embedded && !l.Store.Oracle():
		add("store.url", "config.store", "is the address of no store", "write sqlite://PATH or oracle://USER:PASSWORD@HOST:PORT/SERVICE")
	case l.Store.Oracle() && len(l.Store.URL) == len(schemeOracle):
		add("store.url", "config.store", "names no database", "write oracle://USER:PASSWORD@HOST:PORT/SERVICE")
	}
	if code, detail, hint := checkListen(l.Listen, l.Access); code != "" {
		add("listen", code, detail, hint)
	}
	for key, detail := range checkTLS(l.TLS, l.Access) {
		add(key, "config.needs", detail, "see docs/operating.md, TLS")
	}
	for key, detail := range checkProvider(l.Access) {
		add(key, "config.needs", detail, "see docs/operating.md, Who may do what")
	}
	if u, err := url.Parse(l.Events.Sink); l.Events.Sink != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "") {
		add("events.sink", "config.url", "is not an http or https URL", "write https://HOST/PATH")
	}
	if l.Events.SinkSecret != "" && l.Events.Sink == "" {
		add("events.sink-authorization-file", "config.needs", "is for a sink, and there is none", "set events.sink")
	}
	if key, code, detail, hint := checkTracing(l.Tracing); code != "" {
		add(key, code, detail, hint)
	}
	if l.Events.Lifecycle && l.Events.Sink == "" {
		add("events.lifecycle", "config.needs", "needs a place to publish to", "set events.sink, or turn it off")
	}
	if l.Events.DeadLetters && l.Events.Sink == "" {
		add("events.dead-letters", "config.needs", "needs a place to publish to", "set events.sink, or turn it off")
	}
	if l.Store.Oracle() && l.Store.SchemaOwner() != "" && l.Retention.Audit > 0 {
		add("retention.audit", "config.needs", "needs the rights of "+l.Store.SchemaOwner()+": nodes that are not the owner may not delete from the audit",
			"set it to 0, and have the owner call AQUEDUCT_ADMIN.PURGE_AUDIT")
	}
	if strings.HasPrefix(l.Secrets.Prefix, prefix) {
		add("secrets.prefix", "config.prefix", "is what settings begin with", "choose another prefix, such as SECRET_")
	}
	for key, text := range map[string]string{
		"egress.allow": l.Egress.Allow, "egress.deny": l.Egress.Deny, "egress.fetch-allow": l.Egress.FetchAllow, "egress.fetch-deny": l.Egress.FetchDeny,
	} {
		for _, rule := range List(text) {
			if !isEgressRule(rule) {
				add(key, "config.type", strconv.Quote(rule)+" is no address, range or host", "write 10.0.0.0/8, 192.0.2.7, bank.example or *.bank.example")
			}
		}
	}
	if _, err := l.Secrets.Bound(); err != nil {
		add("secrets.hosts", "config.type", err.Error(), "write bank=api.bank.example,mail=*.mail.example:465")
	}
	if l.Retry.Delay > l.Retry.DelayMax {
		add("retry.delay-max", "config.order", "is shorter than retry.delay", "make it at least "+text(&l.Retry.Delay))
	}
	if l.Activity.Delay > l.Activity.DelayMax {
		add("activity.delay-max", "config.order", "is shorter than activity.delay", "make it at least "+text(&l.Activity.Delay))
	}
	return found
}

var hostName = regexp.MustCompile(`^[a-zA-Z0-9_]([a-zA-Z0-9_.-]*[a-zA-Z0-9_])?$`)

// isHost reports whether a text is the name of a host. One that ends in a number
// is an address that went wrong: taken for a name, it would fit nothing.
func isHost(name string) bool {
	_, numeric := strconv.ParseUint(name[strings.LastIndexByte(name, '.')+1:], 0, 64)
	return numeric != nil && hostName.MatchString(name)
}

// isEgressRule reports whether a text is a rule of egress.
func isEgressRule(rule string) bool {
	_, notRange := netip.ParsePrefix(rule)
	_, notAddress := netip.ParseAddr(rule)
	return notRange == nil || notAddress == nil || isHost(strings.TrimPrefix(rule, "*."))
}

// isSecretHost reports whether a text is HOST or HOST:PORT, with "*." before a
// name for all below it. A star elsewhere would fit more than it says.
func isSecretHost(text string) bool {
	name, below := strings.CutPrefix(text, "*.")
	u, err := url.Parse("https://" + name)
	if err != nil || u.Host != name {
		return false
	}
	if port := u.Port(); port != "" || strings.HasSuffix(name, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return false
		}
	}
	_, notAddress := netip.ParseAddr(u.Hostname())
	return isHost(u.Hostname()) || notAddress == nil && !below
}
