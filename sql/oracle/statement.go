package oracle

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:embed query/*.sql
var queryFiles embed.FS

// statement is a file of query/. Its binds are given by position: no bind
// stands twice in a file, so that a position means the same to every way of
// executing it.
type statement struct {
	text  string
	binds []string // names, in the order of the text
	lock  string   // takes the rows that it changes, or fails at once; "" = it changes none
}

// statements are the files by name. A test reads every one.
var statements = func() map[string]statement {
	m := map[string]statement{}
	names, err := fs.Glob(queryFiles, "query/*.sql")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	for _, name := range names {
		raw, err := queryFiles.ReadFile(name)
		if err != nil {
			panic(err) // what is embedded can be read
		}
		text := strings.TrimSpace(string(raw))
		m[strings.TrimSuffix(path.Base(name), ".sql")] = statement{text: text, binds: bindsOf(text), lock: lockOf(text)}
	}
	for name, lock := range joint {
		st := m[name]
		st.lock = m[lock].text
		m[name] = st
	}
	return m
}()

// text is the text of a statement.
func text(name string) string { return statements[name].text }

// bindsOf lists the binds of a statement. A bind is a colon and a name outside
// of a literal.
func bindsOf(text string) []string {
	var list []string
	eachBind(text, func(name string) string {
		list = append(list, name)
		return ""
	})
	return list
}

// eachBind replaces every bind of a text.
func eachBind(text string, replace func(name string) string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '\'':
			end := strings.IndexByte(text[i+1:], '\'')
			if end < 0 {
				end = len(text) - i - 2
			}
			b.WriteString(text[i : i+end+2])
			i += end + 2
		case c == ':' && i+1 < len(text) && nameByte(text[i+1]):
			j := i + 1
			for j < len(text) && nameByte(text[j]) {
				j++
			}
			b.WriteString(replace(text[i+1 : j]))
			i = j
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String()
}

func nameByte(c byte) bool {
	return c == '_' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
}
