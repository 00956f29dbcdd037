package steps

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Statement is one that the operator has registered: the file NAME.sql.
type Statement struct {
	Name   string
	File   string
	Text   string   // without a semicolon at its end
	Params []string // the names in it that have a colon before them, each once, in their order
	Gives  bool     // it has RETURNING
	Out    []string // what RETURNING puts a row INTO, on Oracle
}

// Out is the value of a parameter that a statement sets: of RETURNING ... INTO.
type Out struct{}

// maxStatement bounds the file of a statement, in bytes.
const maxStatement = 64 << 10

var (
	statementName = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?$`)
	procedureName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_$#]*(\.[a-zA-Z][a-zA-Z0-9_$#]*){0,2}$`)
)

func isProcedure(name string) bool { return procedureName.MatchString(name) }

// Read registers the statements of a folder, one in each file NAME.sql.
func (s *Set) Read(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.sql"))
	if err == nil {
		_, err = os.Stat(dir)
	}
	if err != nil {
		return problem.Wrap(err, problem.Invalid, "config.unreadable", "steps.sql: the folder %s cannot be read", dir)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return problem.Wrap(err, problem.Invalid, "config.unreadable", "steps.sql: %s cannot be read", file)
		}
		if err := s.Add(strings.TrimSuffix(filepath.Base(file), ".sql"), file, string(text)); err != nil {
			return err
		}
	}
	return nil
}

// Add registers one statement; file is where it stands.
func (s *Set) Add(name, file, text string) error {
	st, wrong, hint := parse(text)
	switch {
	case !statementName.MatchString(name):
		wrong, hint = "its name is not one that a document can call", "letters, digits, dots, hyphens"
	case len(text) > maxStatement:
		wrong = "it is longer than 64 KiB"
	case s.statements[name].Name != "":
		wrong = "another has its name"
	}
	if wrong != "" {
		return problem.New(problem.Invalid, "step.statement", "statement %s in %s: %s", name, file, wrong).WithHint("%s", hint)
	}
	st.Name, st.File = name, file
	if s.statements == nil {
		s.statements = map[string]Statement{}
	}
	s.statements[name] = st
	return nil
}

// run runs the statement with the arguments of a document, which are its parameters.
func (st Statement) run(ctx context.Context, tx Session, in request) (any, error) {
	args, err := in.values()
	if err != nil {
		return nil, err
	}
	if err := st.fits(slices.Collect(maps.Keys(args))); err != "" {
		return nil, invalid("statement " + st.Name + " " + err)
	}
	return tx.Run(ctx, st.Text, st.with(args))
}

// with adds what the statement sets to what it is given.
func (st Statement) with(args map[string]any) map[string]any {
	for _, name := range st.Out {
		args[name] = Out{}
	}
	return args
}

// fits says what is wrong with the names of arguments; "" = nothing.
func (st Statement) fits(given []string) string {
	for _, p := range st.Params {
		if !slices.Contains(given, p) {
			return "needs the argument " + p
		}
	}
	slices.Sort(given)
	for _, name := range given {
		if !slices.Contains(st.Params, name) {
			return "has no parameter " + name
		}
	}
	return ""
}

// verbs are the first words that a statement may have. Others define data, end
// transactions, or run blocks, in which anything could be.
var verbs = []string{"SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "WITH"}

// Asks reports whether a statement has rows for an answer, whatever comments stand before
// its first word.
func Asks(text string) bool {
	for s := (scanner{text: text}); s.next(); {
		if s.kind == wordToken {
			return strings.EqualFold(s.token, "SELECT") || strings.EqualFold(s.token, "WITH")
		}
	}
	return false
}

// parse finds the parameters of a statement.
func parse(text string) (st Statement, wrong, hint string) {
	s := scanner{text: text}
	end, c := 0, clause{}
	for s.next() {
		c.depth += strings.Count(s.token, "(") - strings.Count(s.token, ")")
		switch {
		case s.kind == wordToken && s.words == 1 && !slices.Contains(verbs, strings.ToUpper(s.token)):
			return st, "it begins with " + s.token, "a step selects, inserts, updates, deletes or merges; what is to do more is a procedure, called by plsql"
		case s.ended && s.kind != endToken:
			return st, "it has more than one statement", "give each a file of its own"
		case s.kind == endToken:
			s.ended = true
			continue
		case s.kind == wordToken:
			c.word(s.token, &st)
		case s.kind == bindToken && c.into:
			st.Out = append(st.Out, s.token)
		case s.kind == bindToken && !slices.Contains(st.Params, s.token):
			st.Params = append(st.Params, s.token)
		case s.kind == otherBind:
			return st, "its parameter " + s.token + " has no name", "write :name"
		}
		end = s.at
	}
	switch {
	case s.open != "":
		return st, "its " + s.open + " has no end", ""
	case s.words == 0:
		return st, "it is empty", "write one statement"
	}
	for i, name := range st.Out {
		if slices.ContainsFunc(slices.Concat(st.Params, st.Out[:i]), func(o string) bool { return strings.EqualFold(o, name) }) {
			return st, "its parameter " + name + " comes out of it and stands in it once more", "give what RETURNING sets a name of its own"
		}
	}
	st.Text = strings.TrimSpace(text[:end])
	return st, "", ""
}

// clause finds the RETURNING of a statement, and what is after its INTO. That of a
// function stands between brackets.
type clause struct {
	writes, returns, into bool
	depth                 int
}

func (c *clause) word(w string, st *Statement) {
	if c.depth > 0 {
		return
	}
	switch w = strings.ToUpper(w); w {
	case "INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE":
		c.writes = true
	case "RETURNING", "RETURN":
		c.returns = c.writes
		st.Gives = st.Gives || c.writes && w == "RETURNING"
	}
	c.into = c.returns && w == "INTO"
}

// tokens that are told apart
type token int

const (
	otherToken token = iota
	wordToken
	bindToken
	otherBind
	endToken // a semicolon
)

// scanner reads a statement of either database as far as is needed to know its
// parameters: words, binds and semicolons, but for those in texts, names and comments.
type scanner struct {
	text  string
	at    int
	kind  token
	token string
	words int
	ended bool
	open  string // what has no end
}

// skipped are what has a beginning and an end, in which nothing is read.
var skipped = []struct{ begin, end, what string }{
	{"--", "\n", ""}, {"/*", "*/", "comment"}, {"'", "'", "text"}, {`"`, `"`, "name"}, {"`", "`", "name"}, {"[", "]", "name"},
}

func (s *scanner) next() bool {
	for s.at < len(s.text) {
		rest := s.text[s.at:]
		if strings.ContainsRune(" \t\r\n", rune(rest[0])) {
			s.at++
			continue
		}
		if n, quoted := alternative(rest); quoted {
			s.skip(n, "text")
			return s.open == ""
		}
		over := false
		for _, k := range skipped {
			if !strings.HasPrefix(rest, k.begin) {
				continue
			}
			n := strings.Index(rest[len(k.begin):], k.end)
			if n < 0 && k.what == "" {
				n = len(rest) - len(k.begin) - len(k.end)
			}
			s.skip(n+len(k.begin)+len(k.end), k.what)
			if n < 0 && k.what != "" {
				s.open = k.what
				return false
			}
			if over = true; k.begin != "--" && k.begin != "/*" {
				s.kind = otherToken
				return true
			}
			break
		}
		if over {
			continue
		}
		s.read(rest)
		return true
	}
	return false
}

func (s *scanner) skip(n int, what string) {
	if n < 0 {
		s.open, n = what, len(s.text)-s.at
	}
	s.kind, s.token, s.at = otherToken, "", s.at+n
}

var (
	word = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$#]*`)
	bind = regexp.MustCompile(`^:([A-Za-z_][A-Za-z0-9_]*)`)
	bare = regexp.MustCompile(`^(\?[0-9]*|:[0-9]+|[@$][A-Za-z_][A-Za-z0-9_]*)`)
)

// read reads one token that nothing hides.
func (s *scanner) read(rest string) {
	s.kind, s.token = otherToken, rest[:1]
	switch {
	case rest[0] == ';':
		s.kind = endToken
	case word.MatchString(rest):
		s.kind, s.token = wordToken, word.FindString(rest)
		s.words++
	case bind.MatchString(rest):
		s.kind, s.token = bindToken, bind.FindString(rest)
		s.at += len(s.token)
		s.token = s.token[1:]
		return
	case bare.MatchString(rest):
		s.kind, s.token = otherBind, bare.FindString(rest)
	}
	s.at += len(s.token)
}

// alternative is the length of a text in Oracle's other quotes, q'[…]'; -1 = it has no
// end.
func alternative(rest string) (int, bool) {
	if len(rest) < 4 || rest[0]|0x20 != 'q' || rest[1] != '\'' {
		return 0, false
	}
	closing := string(rest[2])
	if i := strings.Index("([{<", closing); i >= 0 {
		closing = ")]}>"[i : i+1]
	}
	n := strings.Index(rest[3:], closing+"'")
	if n < 0 {
		return -1, true
	}
	return 3 + n + 2, true
}
