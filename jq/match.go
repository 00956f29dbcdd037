package jq

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"
)

// maxPatterns bounds the compiled patterns that one machine remembers.
const maxPatterns = 16

// pattern is a compiled regular expression. Probe matches it behind one
// character, to find the empty match that jq reports directly behind another
// match and Go does not.
type pattern struct {
	*regexp.Regexp
	probe *regexp.Regexp
	size  int // instructions of the program
}

func (k *kit) pattern(text, flags string) (*pattern, error) {
	key := flags + "/" + text
	if p, ok := k.patterns[key]; ok {
		return p, nil
	}
	if len(text) > MaxPattern {
		return nil, k.m.tooLarge("regular expression of %d bytes exceeds %d", len(text), MaxPattern)
	}
	if strings.Trim(flags, "gim") != "" {
		return nil, fmt.Errorf("unsupported regular expression flag: %q", flags)
	}
	full := text
	if strings.Contains(flags, "i") {
		full = "(?i)" + full
	}
	if strings.Contains(flags, "m") {
		full = "(?s)" + full
	}
	// The size is known before anything large is built: the parser bounds
	// repetition, and the compiled program is what matching time depends on.
	tree, err := syntax.Parse(full, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("invalid regular expression %q: %v", full, err)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, fmt.Errorf("invalid regular expression %q: %v", full, err)
	}
	if err := k.m.charge(len(prog.Inst)); err != nil {
		return nil, err
	}
	if len(prog.Inst) > MaxProgram {
		return nil, k.m.tooLarge("regular expression compiles to %d instructions, more than %d", len(prog.Inst), MaxProgram)
	}
	p := &pattern{size: len(prog.Inst)}
	if p.Regexp, err = regexp.Compile(full); err != nil {
		return nil, fmt.Errorf("invalid regular expression %q: %v", full, err)
	}
	if p.probe, err = regexp.Compile(`\A(?s:.)(?:` + full + `)`); err != nil {
		p.probe = nil
	}
	if len(k.patterns) >= maxPatterns {
		clear(k.patterns)
	}
	k.patterns[key] = p
	return p, nil
}

// match is __match(re; flags; test): all matches with flag g, else at most
// one, as jq's match gives them; or whether there is one.
func (k *kit) match(v any, args []any) any {
	s, ok := v.(string)
	re, ok2 := args[0].(string)
	flags, ok3 := args[1].(string)
	if !ok || !ok2 || !ok3 && args[1] != nil {
		name := "match"
		if args[2] == true {
			name = "test"
		}
		return fmt.Errorf("%s(%s; %s) cannot be applied to: %s", name, gojq.Preview(args[0]), gojq.Preview(args[1]), describe(v))
	}
	p, err := k.pattern(re, flags)
	if err != nil {
		return err
	}
	if err := k.m.charge(int(min(int64(len(s)+1)*int64(p.size)/pairsPerStep, 1<<40))); err != nil {
		return err
	}
	if args[2] == true {
		return p.MatchString(s)
	}
	found, err := k.find(p, s, strings.Contains(flags, "g"))
	if err != nil {
		return err
	}
	return matches(p, s, found)
}

func (k *kit) find(p *pattern, s string, global bool) ([][]int, error) {
	if !global {
		if x := p.FindStringSubmatchIndex(s); x != nil {
			return [][]int{x}, nil
		}
		return nil, nil
	}
	// A match costs what its objects do, and the probe behind it; no more are
	// looked for than can be paid.
	price := 8 + 4*p.NumSubexp() + p.size/pairsPerStep
	xs := p.FindAllStringSubmatchIndex(s, k.m.steps/price+1)
	if err := k.m.charge(len(xs) * price); err != nil {
		return nil, err
	}
	var ys [][]int
	for i, x := range xs {
		ys = append(ys, x)
		if p.probe == nil || x[0] == x[1] || i+1 < len(xs) && xs[i+1][0] == x[1] {
			continue
		}
		y, err := k.emptyAt(p, s, x[1])
		if err != nil {
			return nil, err
		}
		if y != nil {
			ys = append(ys, y)
		}
	}
	return ys, nil
}

// emptyAt looks for an empty match at offset. It may have to read to the end
// of s, so it is paid for as a match is.
func (k *kit) emptyAt(p *pattern, s string, offset int) ([]int, error) {
	rest := int64(len(s) - offset)
	if err := k.m.charge(int(min(rest*int64(p.size)/(pairsPerStep*16), 1<<40))); err != nil {
		return nil, err
	}
	_, w := utf8.DecodeLastRuneInString(s[:offset])
	x := p.probe.FindStringSubmatchIndex(s[offset-w:])
	if x == nil || x[1] != w {
		return nil, nil
	}
	y := make([]int, len(x))
	for i := range x {
		y[i] = -1
		if x[i] >= 0 {
			y[i] = x[i] + offset - w
		}
	}
	y[0], y[1] = offset, offset
	return y, nil
}

// matches makes jq's objects; offsets count characters, and each match goes on
// counting where the last one began.
func matches(p *pattern, s string, found [][]int) []any {
	names := p.SubexpNames()
	res := make([]any, len(found))
	at, chars := 0, 0
	for i, x := range found {
		chars += utf8.RuneCountInString(s[at:x[0]])
		at = x[0]
		captures := make([]any, len(x)/2-1)
		for j := range captures {
			var name any
			if n := names[j+1]; n != "" {
				name = n
			}
			b, e := x[2*j+2], x[2*j+3]
			if b < 0 {
				captures[j] = map[string]any{"name": name, "offset": -1, "length": 0, "string": nil}
				continue
			}
			captures[j] = map[string]any{
				"name": name, "offset": chars + utf8.RuneCountInString(s[at:b]),
				"length": utf8.RuneCountInString(s[b:e]), "string": s[b:e],
			}
		}
		res[i] = map[string]any{
			"offset": chars, "length": utf8.RuneCountInString(s[x[0]:x[1]]),
			"string": s[x[0]:x[1]], "captures": captures,
		}
	}
	return res
}

// pieces is __pieces(matches): what of the input lies between the matches, one
// more than there are matches.
func (k *kit) pieces(v any, args []any) any {
	s, ok := v.(string)
	ms, ok2 := args[0].([]any)
	if !ok || !ok2 {
		return errors.New("split cannot be applied to: " + describe(v))
	}
	if err := k.m.charge(len(s)/bytesPerStep + len(ms)/2); err != nil {
		return err
	}
	res := make([]any, 0, len(ms)+1)
	chars := 0
	for _, x := range ms {
		hit, _ := x.(map[string]any)
		begin, _ := hit["offset"].(int)
		text, _ := hit["string"].(string)
		at := 0
		for ; chars < begin && at < len(s); chars++ {
			_, n := utf8.DecodeRuneInString(s[at:])
			at += n
		}
		res = append(res, s[:at])
		s = s[at+len(text):]
		chars += utf8.RuneCountInString(text)
	}
	return append(res, s)
}

// weave is __weave(pieces; replacements): the pieces with the replacements of
// each match of the input between them. A match may have several replacements: the n-th of
// each makes the n-th result.
func (k *kit) weave(v any, args []any) any {
	pieces, _ := args[0].([]any)
	perMatch, _ := args[1].([]any)
	var texts []*strings.Builder
	for i, x := range perMatch {
		replacements, _ := x.([]any)
		for n, r := range replacements {
			text, ok := r.(string)
			if !ok && r != nil {
				return fmt.Errorf("cannot add: %s and %s", describe(pieces[i]), describe(r))
			}
			if n == len(texts) {
				texts = append(texts, new(strings.Builder))
			}
			piece := pieces[i].(string)
			part := len(piece) + len(text)
			if n := texts[n].Len() + part; n > k.m.lim.Bytes {
				return k.m.text(n)
			}
			if err := k.m.charge(part/bytesPerStep + 1); err != nil {
				return err
			}
			texts[n].WriteString(piece)
			texts[n].WriteString(text)
		}
	}
	last := pieces[len(pieces)-1].(string)
	if len(texts) == 0 {
		return []any{v}
	}
	res := make([]any, len(texts))
	for n, t := range texts {
		if err := k.m.text(t.Len() + len(last)); err != nil {
			return err
		}
		res[n] = t.String() + last
	}
	return res
}
