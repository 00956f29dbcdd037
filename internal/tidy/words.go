package tidy

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
)

// vocabulary gathers the names, of Go code and of files, in which a banned word
// stands.
type vocabulary struct {
	names map[string]map[string]bool // by word
	at    map[string]finding         // of a name that a word was found in first
}

func newVocabulary() *vocabulary {
	return &vocabulary{names: map[string]map[string]bool{}, at: map[string]finding{}}
}

// file notes the name of a file of Go or SQL.
func (v *vocabulary) file(p string) {
	name, _, _ := strings.Cut(path.Base(p), ".")
	if ext := path.Ext(p); ext != ".go" && ext != ".sql" {
		return
	}
	v.name(name, finding{Path: p})
}

// source notes the names in a Go file.
func (v *vocabulary) source(s source) {
	if word := s.ast.Name.Name; bannedPackages[word] != "" {
		v.note(word, "package "+word, s.find(s.ast.Name.Pos(), "", ""))
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if x, ok := n.(*ast.Ident); ok {
			v.name(x.Name, s.find(x.Pos(), "", ""))
		}
		return true
	})
}

func (v *vocabulary) name(name string, at finding) {
	parts := words(name)
	for i, word := range parts {
		if bannedWords[word] == "" || i > 0 && slices.Contains(allowedAfter[word], parts[i-1]) {
			continue
		}
		v.note(word, name, at)
	}
}

func (v *vocabulary) note(word, name string, at finding) {
	if v.names[word] == nil {
		v.names[word] = map[string]bool{}
	}
	if !v.names[word][name] {
		v.names[word][name], v.at[word+" "+name] = true, at
	}
}

// words are the parts of a name, in small letters: of URLOfNode url, of and node.
func words(name string) []string {
	var parts []string
	text := []rune(name)
	begin := 0
	end := func(i int) {
		if i > begin {
			parts = append(parts, strings.ToLower(string(text[begin:i])))
		}
		begin = i
	}
	for i, r := range text {
		switch {
		case r == '_' || r == '-':
			end(i)
			begin = i + 1
		case i > begin && unicode.IsUpper(r) && (!unicode.IsUpper(text[i-1]) || i+1 < len(text) && unicode.IsLower(text[i+1])):
			end(i)
		}
	}
	end(len(text))
	return parts
}

// check finds each name with a banned word.
func (v *vocabulary) check() []finding {
	var found []finding
	for _, word := range slices.Sorted(maps.Keys(v.names)) {
		for _, name := range slices.Sorted(maps.Keys(v.names[word])) {
			f := v.at[word+" "+name]
			f.Rule = "vocabulary"
			f.Text = fmt.Sprintf("%s: the word for %s is %s", name, word, bannedWords[word]+bannedPackages[word])
			found = append(found, f)
		}
	}
	return found
}
