package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/problem"
)

func diffCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "diff A B",
		Short: "Say how two versions differ, and what a migration would do to live instances",
		Long: `Say which tasks were added, removed, changed or moved from A to B, by JSON
pointer. A and B are two files, or NAME@VERSION and a VERSION of the same name.

Of published versions it also says where live instances of A are, and where
they would go on in B when tasks that moved are mapped. --json has that map
under "pointers", for definitions migrate --map.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if isFile(args[0]) && isFile(args[1]) {
				return a.diffFiles(args[0], args[1])
			}
			name, from, ok := strings.Cut(args[0], "@")
			to := args[1]
			if other, version, both := strings.Cut(to, "@"); both {
				to = version
				ok = ok && other == name
			}
			if !ok || name == "" || from == "" || to == "" {
				return usage("diff compares two files, or NAME@VERSION and a VERSION of the same name")
			}
			return a.with(func(ctx context.Context, c *client.Client, _ []string) error {
				r, err := c.CompareVersions(ctx, name, from, to)
				if err != nil || a.json {
					return a.page.orPrint(r, err)
				}
				return a.page.showReport(r)
			})(cmd, args)
		},
	}
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

func (a *app) diffFiles(old, now string) error {
	var docs [2]any
	var refs [2]client.DefinitionRef
	for i, file := range []string{old, now} {
		source, err := a.given.read(file)
		if err != nil {
			return err
		}
		p, err := openworkflow.Parse(file, source)
		if err != nil {
			return err
		}
		refs[i] = client.DefinitionRef{Name: p.Ref.Name, Version: p.Ref.Version, Digest: p.Ref.Digest}
		if docs[i], err = jq.Decode(p.Document); err != nil {
			return err
		}
	}
	changes := definition.Diff(docs[0], docs[1])
	r := client.MigrationReport{From: refs[0], To: refs[1], Pointers: definition.Moves(changes), Changes: []client.DefinitionChange{}, Positions: []client.LivePosition{}}
	for _, c := range changes {
		r.Changes = append(r.Changes, client.DefinitionChange{Kind: string(c.Kind), Old: c.Old, New: c.New, Task: c.Task, Fields: c.Fields})
	}
	if a.json {
		return a.page.print(r)
	}
	return a.page.showChanges(r)
}

func migrateInstancesCommand(a *app) *cobra.Command {
	var file string
	var dry bool
	c := &cobra.Command{
		Use:   "migrate DEFINITION FROM TO",
		Short: "Move live instances of one version to another",
		Long: `Move the live instances of version FROM of a definition to version TO.

--map is a JSON object of old JSON pointers to new ones, or what definitions
diff --json prints. Equal pointers of the same kind of task need no entry, and a
task takes those inside it along. When any instance is live where the map leads
nowhere, none is moved; those in a hook of a policy stay until they rest in a
state. A migration that was interrupted goes on when it is asked for again.

So many that they cannot be looked at in 30 seconds are moved by bulk plan
migrate.`,
		Args: cobra.ExactArgs(3),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			pointers, err := a.given.pointerMap(file)
			if err != nil {
				return err
			}
			m := client.MigrationRequest{From: args[1], To: args[2], Pointers: pointers, DryRun: dry}
			moved := 0
			for {
				r, err := c.Migrate(ctx, args[0], m)
				if err != nil {
					var p *problem.Error
					if moved > 0 && errors.As(err, &p) {
						p.Detail += fmt.Sprintf("; %d instances were moved before", moved)
					}
					return err
				}
				moved += r.Moved
				if r.Moved > 0 && r.Left > 0 {
					continue
				}
				r.Moved = moved
				if a.json {
					return a.page.print(r)
				}
				if dry {
					return a.page.showReport(r)
				}
				return a.page.showMoved(r)
			}
		}),
	}
	c.Flags().StringVar(&file, "map", "", "FILE with a JSON object of old pointers to new; - is standard input")
	c.Flags().BoolVar(&dry, "dry-run", false, "say what would be done, and do nothing")
	return c
}

// pointerMap reads a map of pointers, alone or in a report.
func (g given) pointerMap(file string) (map[string]string, error) {
	if file == "" {
		return nil, nil
	}
	b, err := g.read(file)
	if err != nil {
		return nil, err
	}
	var report struct {
		Pointers map[string]string `json:"pointers"`
	}
	if jsonv2.Unmarshal(b, &report) == nil && report.Pointers != nil {
		return report.Pointers, nil
	}
	var m map[string]string
	if err := jsonv2.Unmarshal(b, &m); err != nil {
		return nil, problem.Wrap(err, problem.Invalid, "cli.json", "%s is not a map of pointers", file).
			WithHint(`write a JSON object: {"/do/0/old": "/do/1/new"}`)
	}
	return m, nil
}

func (p *page) showReport(r client.MigrationReport) error {
	if err := p.showChanges(r); err != nil {
		return err
	}
	more := ""
	if r.More {
		more = ", and perhaps more that could not be looked at in time"
	}
	fmt.Fprintf(p.out, "\nlive instances of %s: %d%s\n", r.From.Version, r.Live, more)
	if len(r.Positions) == 0 {
		return nil
	}
	t := p.table("  INSTANCES", "AT", "GO ON AT")
	stuck := false
	for _, x := range r.Positions {
		to := x.To
		switch {
		case x.Passing:
			to = "later: " + x.Problem
		case x.Problem != "":
			to, stuck = "nowhere: "+x.Problem, true
		}
		t.row("  "+fmt.Sprint(x.Instances), x.Pointer, to)
	}
	if err := t.end(len(r.Positions), "", ""); err != nil {
		return err
	}
	if stuck || r.More {
		_, err := fmt.Fprintln(p.out, "a migration would be refused")
		return err
	}
	return nil
}

// showMoved says how many instances a migration has moved, and where those are that it
// has passed over.
func (p *page) showMoved(r client.MigrationReport) error {
	_, err := fmt.Fprintf(p.out, "moved %d instances of %s from %s to %s\n", r.Moved, r.From.Name, r.From.Version, r.To.Version)
	if r.Waiting == 0 || err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%d are in hooks of a policy; ask again when they rest in a state:\n", r.Waiting)
	for _, x := range r.Positions {
		if x.Passing {
			fmt.Fprintf(p.out, "  %d at %s\n", x.Instances, x.Pointer)
		}
	}
	return nil
}

func (p *page) showChanges(r client.MigrationReport) error {
	fmt.Fprintf(p.out, "%s %s -> %s\n", r.From.Name, r.From.Version, r.To.Version)
	t := p.table("  CHANGE", "TASK", "IN "+r.From.Version, "IN "+r.To.Version, "FIELDS")
	for _, c := range r.Changes {
		t.row("  "+c.Kind, or(c.Task, "(workflow)"), c.Old, c.New, strings.Join(c.Fields, ", "))
	}
	return t.end(len(r.Changes), "", "  no task differs")
}
