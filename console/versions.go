package console

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/api/client"
	h "github.com/aqueduct-engine/aqueduct/console/html"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// versions are those of a definition, each with the way to compare it with the one that
// the page is of.
func (d definitionPage) versions(s *shell) h.Node {
	if len(d.Versions) < 2 {
		return nil
	}
	return titled("Versions", table("Version|Published||", h.Map(d.Versions, func(o client.Definition) h.Node {
		compare, its := h.Node(text("this one")), s.path("instances").Asking(url.Values{"definition": {d.Name}, "version": {o.Version}})
		switch {
		case d.Policy:
			compare, its = nil, h.Address{}
		case o.Version != d.Version:
			compare = h.A(s.ofVersion(d.Name, d.Version).Below("compare").Below(o.Version), text("compare, and migrate from this one"))
		}
		return h.Tr(cell(h.A(s.ofVersion(d.Name, o.Version), text(o.Version))), cell(s.moment(o.PublishedAt)), cell(compare), cell(h.If(!d.Policy, h.A(its, text("instances")))))
	})))
}

// comparison is how two versions of a definition differ, and what becomes of the
// instances that are to go on in the other.
type comparison struct {
	client.MigrationReport
	name, from, to string
	pointers       string // as one would send them, or that were refused
}

func compare(v *visit) (content, error) {
	c := comparison{name: v.PathValue("namespace") + "/" + v.PathValue("name"), from: v.PathValue("version"), to: v.PathValue("to"), pointers: v.form.Get("pointers")}
	var err error
	if c.MigrationReport, err = v.api.CompareVersions(v.Context(), c.name, c.from, c.to); err != nil {
		return content{}, err
	}
	if _, sent := v.form["pointers"]; !sent && len(c.Pointers) > 0 { // what is shown is what the button does
		b, err := json.MarshalIndent(c.Pointers, "", "  ")
		if err != nil {
			return content{}, err
		}
		c.pointers = string(b)
	}
	return content{c.name + " " + c.from + " → " + c.to, false, c.body, c.acts}, nil
}

func (c comparison) body(s *shell) h.Node {
	place := func(p string) h.Node { return cell(ifText(p, code)) }
	live := number(c.Live)
	if c.More {
		live = text(fmt.Sprintf("%d, and perhaps more: they could not all be looked at in time", c.Live))
	}
	return h.Group{
		facts(fact("From", s.version(c.name, c.from)), fact("To", s.version(c.name, c.to)), fact("Live in the old one", live)),
		titled("Where instances are", h.If(len(c.Positions) == 0 && !c.More, nothing(text("None is live in the old version."))),
			h.If(len(c.Positions) > 0, table("Instances|At|Go on at|", h.Map(c.Positions, func(p client.LivePosition) h.Node {
				return h.Tr(cell(number(p.Instances)), place(p.Pointer), place(p.To),
					cell(ifText(p.Problem, text), h.If(p.Passing, small(text(" ends by itself, and holds up no other")))))
			})))),
		titled("What differs", h.If(len(c.Changes) == 0, nothing(text("Nothing."))),
			h.If(len(c.Changes) > 0, table("|Task|Old|New|Fields", h.Map(c.Changes, func(d client.DefinitionChange) h.Node {
				return h.Tr(cell(text(d.Kind)), cell(text(either(d.Task, "the workflow"))), place(d.Old), place(d.New), cell(text(strings.Join(d.Fields, ", "))))
			})))),
	}
}

func (c comparison) acts(s *shell) h.Node {
	if !s.may("migrate-instances", c.name) || c.Live == 0 && !c.More {
		return nil
	}
	if c.More {
		its := s.path("instances").Asking(url.Values{"definition": {c.name}, "version": {c.from}})
		return acts("Migrate", note(text("So many are moved by a plan, each by itself: by "), code("engine-node bulk plan migrate --map"),
			text(", or of "), h.A(its, text("their list")), text(" where no task has moved.")))
	}
	return acts("Migrate", h.Post(s.ofVersion(c.name, c.from).Below("compare").Below(c.to), h.Class("fields"),
		label("Where they go on", small(text("JSON: old pointer to new one; equal ones of the same kind need no entry")), area("pointers", c.pointers, 4, h.Verbatim())),
		button(fmt.Sprintf("Migrate %d", c.Live), h.Class("danger")),
		note(text("All of them or none: who cannot go on is named, and nothing is moved."))))
}

// migrateFor is how long one press of the button migrates.
const migrateFor = 5 * time.Second

func migrate(v *visit) (string, h.Address, error) {
	v.here = h.Here(v.URL)
	m := client.MigrationRequest{From: v.PathValue("version"), To: v.PathValue("to")}
	if written := strings.TrimSpace(v.PostForm.Get("pointers")); written != "" {
		if err := jsonv2.Unmarshal(json.RawMessage(written), &m.Pointers); err != nil {
			return "", v.here, problem.New(problem.Invalid, "console.json", "where they go on is no map of texts in JSON").WithHint(`write {"/do/0/old": "/do/1/new"}`)
		}
	}
	moved := 0
	for until := time.Now().Add(migrateFor); ; {
		r, err := v.api.Migrate(v.Context(), v.PathValue("namespace")+"/"+v.PathValue("name"), m)
		if moved += r.Moved; err != nil {
			return "", v.here, err
		}
		if r.Left <= r.Waiting || time.Now().After(until) {
			return fmt.Sprintf("%d were migrated, %d are left, of which %d are in hooks of a policy.", moved, r.Left, r.Waiting), v.here, nil
		}
	}
}
