package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/diagram"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/nearest"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// validated is what validate says of one file.
type validated struct {
	File     string          `json:"file"`
	Valid    bool            `json:"valid"`
	Name     string          `json:"name,omitempty"`
	Version  string          `json:"version,omitempty"`
	Digest   string          `json:"digest,omitempty"`
	Findings []problem.Place `json:"findings"`
	Warnings []problem.Place `json:"warnings,omitempty"`
	// Unchecked are the documents that it refers to, which are read when it is
	// published.
	Unchecked []string `json:"unchecked,omitempty"`
	hint      string
}

func validateCommand(a *app) *cobra.Command {
	var functions []string
	c := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check definitions without a node: every finding at once; - is standard input",
		Long: `Check definitions without a node: every finding at once; - is standard input.

A function that is neither of the language nor of the document has to be
registered by a program that runs it. With --function, for each that yours
registers, a call of any other is a finding; without, it is a warning.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			var all []validated
			digests := map[string]validated{}
			findings, wrong := 0, 0
			for _, file := range files {
				v := a.validate(file, functions)
				id := definition.ID(v.Name, v.Version)
				if first, ok := digests[id]; ok && v.Valid && first.Digest != v.Digest {
					v.Valid = false
					v.Findings = append(v.Findings, problem.Place{
						File: file, Line: 1, Column: 1, Pointer: "/document/version", Code: "definition.conflict",
						Detail: id + " is something else in " + first.File, Hint: "give changed content a new version",
					})
				} else if v.Valid {
					digests[id] = v
				}
				all = append(all, v)
				findings += len(v.Findings)
				if !v.Valid {
					wrong++
				}
			}
			if err := a.showValidated(all); err != nil || wrong == 0 {
				return err
			}
			return problem.New(problem.Invalid, "definition.invalid", "%d of %d files are not valid: %d findings", wrong, len(files), findings)
		},
	}
	c.Flags().StringSliceVar(&functions, "function", nil, "a function that your program registers; may be repeated")
	return c
}

// unregistered are the calls of functions that nobody is known to register.
func unregistered(p definition.Parsed, functions []string) []problem.Place {
	var found []problem.Place
	for _, name := range slices.Sorted(maps.Keys(p.Functions)) {
		if slices.Contains(functions, name) {
			continue
		}
		place := p.Functions[name]
		place.Code, place.Detail = "warning.unknown-function", fmt.Sprintf("function %s is none of the language, and not in use.functions", name)
		place.Hint = "a program has to register it; name it with --function"
		if len(functions) > 0 {
			place.Code = "definition.type"
		}
		if near, ok := nearest.Name(name, slices.Concat(p.Known, functions)); ok {
			place.Hint = "did you mean " + near + "?"
		}
		found = append(found, place)
	}
	return found
}

func (a *app) validate(file string, functions []string) validated {
	v := validated{File: file, Findings: []problem.Place{}}
	source, err := a.given.read(file)
	if err == nil {
		var p definition.Parsed
		if p, err = openworkflow.Parse(file, source); err == nil {
			v.Valid, v.Name, v.Version, v.Digest, v.Warnings = true, p.Ref.Name, p.Ref.Version, p.Ref.Digest, p.Warnings
			for _, n := range p.Needs {
				v.Unchecked = append(v.Unchecked, n.URI)
			}
			if unknown := unregistered(p, functions); len(functions) > 0 && len(unknown) > 0 {
				v.Valid, v.Findings = false, unknown
			} else {
				v.Warnings = append(slices.Clip(v.Warnings), unknown...)
			}
			return v
		}
	}
	var e *problem.Error
	if !errors.As(err, &e) {
		e = problem.Wrap(err, problem.Internal, "internal", "%s cannot be checked", file)
	}
	v.hint = e.Hint
	if v.Findings = e.Where; len(e.Where) == 0 {
		detail := e.Detail
		if e.Cause != nil {
			detail += ": " + e.Cause.Error()
		}
		v.Findings = []problem.Place{{File: file, Code: e.Code, Detail: detail, Hint: e.Hint}}
	}
	return v
}

func (a *app) showValidated(all []validated) error {
	if a.json {
		return a.page.print(map[string]any{"files": all})
	}
	for _, v := range all {
		switch {
		case v.Valid && len(v.Unchecked) > 0:
			fmt.Fprintf(a.page.out, "%s: ok, %s@%s; what it uses of %s is checked when it is published\n", v.File, v.Name, v.Version, strings.Join(v.Unchecked, ", "))
		case v.Valid:
			fmt.Fprintf(a.page.out, "%s: ok, %s@%s (digest %.12s)\n", v.File, v.Name, v.Version, v.Digest)
		}
		for _, w := range v.Warnings {
			fmt.Fprintf(a.err, "warning: %s [%s]\n", oneLine(w.String()), w.Code)
		}
		for _, f := range v.Findings {
			fmt.Fprintf(a.page.out, "%s [%s]\n", oneLine(f.String()), f.Code)
		}
		if v.hint != "" && len(v.Findings) > 1 {
			fmt.Fprintf(a.page.out, "%s: %s\n", v.File, v.hint)
		}
	}
	return nil
}

func evalCommand(a *app) *cobra.Command {
	var input, contextText string
	var vars []string
	c := &cobra.Command{
		Use:   "eval EXPR",
		Short: "Evaluate an expression as a definition does, strict and within the node's limits",
		Long: `Evaluate an expression of a definition: EXPR or '${ EXPR }'.

The data it works on is --input, else JSON from standard input, else null.
$context and $input have values when they are given; every other variable, such
as the item of a loop, is given with --var name=JSON.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			values := map[string]any{}
			set := func(name string, raw json.RawMessage) error {
				v, err := jq.Decode(raw)
				if err != nil {
					return problem.Wrap(err, problem.Invalid, "cli.json", "%s is not JSON that an expression can have", name)
				}
				values[name] = v
				return nil
			}
			if err := a.given.evalInput(input, set); err != nil {
				return err
			}
			ctx, err := a.given.document("context", contextText)
			if err != nil {
				return err
			}
			if ctx != nil {
				if err := set("$context", ctx); err != nil {
					return err
				}
			}
			for _, v := range vars {
				if err := a.given.evalVariable(v, set); err != nil {
					return err
				}
			}
			result, err := evaluate(args[0], values)
			if err != nil {
				return err
			}
			return a.page.print(json.RawMessage(result))
		},
	}
	f := c.Flags()
	f.StringVar(&input, "input", "", "the data: JSON, @FILE, or - for standard input")
	f.StringVar(&contextText, "context", "", "value of $context: JSON, @FILE, or -")
	f.StringArrayVar(&vars, "var", nil, "value of a variable: name=JSON or name=@FILE; may be repeated")
	return c
}

// evalInput sets the data, which are $input as well.
func (g given) evalInput(input string, set func(string, json.RawMessage) error) error {
	if input == "" && !interactive(g.in) {
		b, err := g.read("-")
		if err != nil {
			return err
		}
		if strings.TrimSpace(string(b)) != "" {
			input = string(b)
		}
	}
	raw, err := g.document("input", input)
	if err != nil {
		return err
	}
	if raw == nil {
		raw = json.RawMessage("null")
	}
	return set("$input", raw)
}

// interactive says whether somebody would have to type what is read.
func interactive(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&fs.ModeCharDevice != 0
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (g given) evalVariable(text string, set func(string, json.RawMessage) error) error {
	name, value, ok := strings.Cut(text, "=")
	name = strings.TrimPrefix(name, "$")
	if !ok || !variableName.MatchString(name) {
		return usage("--var %q is not name=JSON", text)
	}
	raw, err := g.document("var", value)
	if err != nil {
		return err
	}
	if raw == nil {
		return usage("--var %s has no value", name).WithHint("write JSON: --var %s=null", name)
	}
	return set("$"+name, raw)
}

// evaluate is what a node does with an expression, within the default limits.
func evaluate(expression string, values map[string]any) (json.RawMessage, error) {
	var names []string
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	t, err := jq.Expression(expression, names)
	if err != nil {
		var p *problem.Error
		if errors.As(err, &p) && len(p.Where) > 0 {
			p.Where[0].File = "expression"
		}
		return nil, err
	}
	v, err := t.Eval(values["$input"], func(name string) (any, error) { return values[name], nil }, jq.Limits{})
	if err != nil {
		return nil, err
	}
	return jq.Encode(v, jq.DefaultBytes)
}

func diagramCommand(a *app) *cobra.Command {
	var instance string
	var picture bool
	c := &cobra.Command{
		Use:   "diagram [FILE]",
		Short: "Draw a definition as a Mermaid flowchart or as SVG, with an instance on it",
		Long: `Draw a definition as a Mermaid flowchart, or with --svg as a picture; - is
standard input.

With --instance the tasks at which the instance rests or failed are marked. The
node is asked for it, and without FILE for the definition as well.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if instance == "" && len(args) == 0 {
				return usage("diagram needs a FILE or an --instance")
			}
			if instance == "" {
				return a.draw(args[0], nil, picture)
			}
			return a.with(func(ctx context.Context, c *client.Client, args []string) error {
				i, err := c.Instance(ctx, instance)
				if err != nil {
					return err
				}
				if len(args) > 0 {
					return a.draw(args[0], &i, picture)
				}
				source, err := c.Source(ctx, i.Definition, i.Version)
				if err != nil {
					return err
				}
				return a.drawSource(definition.ID(i.Definition, i.Version), source, &i, picture)
			})(cmd, args)
		},
	}
	c.Flags().StringVar(&instance, "instance", "", "mark where this instance is")
	c.Flags().BoolVar(&picture, "svg", false, "draw SVG, with a style of its own")
	return c
}

func (a *app) draw(file string, i *client.InstanceDetail, picture bool) error {
	source, err := a.given.read(file)
	if err != nil {
		return err
	}
	return a.drawSource(file, source, i, picture)
}

func (a *app) drawSource(file string, source []byte, i *client.InstanceDetail, picture bool) error {
	p, err := openworkflow.Parse(file, source)
	if err != nil {
		return err
	}
	if i != nil && len(p.Needs) == 0 && i.Digest != p.Ref.Digest {
		return problem.New(problem.Invalid, "cli.file", "instance %s runs %s@%s with digest %.12s, and %s has %.12s",
			i.ID, i.Definition, i.Version, i.Digest, file, p.Ref.Digest).WithHint("leave FILE out: the node has what the instance runs")
	}
	document, err := jq.Decode(p.Document)
	if err != nil {
		return err
	}
	ended, form := i != nil && i.Status == "completed", "mermaid"
	text := diagram.Mermaid(document, marks(i), ended)
	if picture {
		form, text = "svg", diagram.Alone(diagram.SVG(document, diagram.View{Marks: marks(i), Ended: ended}))
	}
	if a.json {
		return a.page.print(map[string]string{"name": p.Ref.Name, "version": p.Ref.Version, form: text})
	}
	_, err = io.WriteString(a.page.out, text)
	return err
}

// marks say where an instance is.
func marks(i *client.InstanceDetail) []diagram.Mark {
	if i == nil {
		return nil
	}
	var all []diagram.Mark
	counts := map[diagram.Mark]int{}
	for _, w := range i.Waits {
		m := diagram.Mark{Pointer: w.Pointer, Text: waiting(w)}
		if counts[m]++; counts[m] == 1 {
			all = append(all, m)
		}
	}
	for n, m := range all {
		if c := counts[m]; c > 1 {
			all[n].Text += fmt.Sprintf(" (%d times)", c)
		}
	}
	if e := i.Error; e != nil && (i.Status == "faulted" || i.Status == "compensated") {
		all = append(all, diagram.Mark{Pointer: e.Pointer, Fault: true, Text: "faulted: " + or(e.Title, e.Type)})
	}
	return all
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// waiting says in few words what a wait waits for.
func waiting(w client.Wait) string {
	switch {
	case w.TaskID != "":
		return "waits for a person"
	case w.Event != "":
		return "waits for event " + w.Event
	case w.Kind == "Command":
		return "waits for a result"
	case w.Kind == "Continue":
		return "goes on"
	case !w.Until.IsZero():
		return strings.ToLower(w.Kind) + " at " + w.Until.UTC().Format("2006-01-02 15:04:05Z")
	}
	return "waits: " + w.Kind
}
