package console

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aqueduct-engine/aqueduct/api/client"
	h "github.com/aqueduct-engine/aqueduct/console/html"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// An instance is taken back to an earlier turn in two steps: what that would do is shown,
// and done when its reader says so, unless the instance has changed meanwhile.

// rewindForm asks to which entry of the timeline.
func rewindForm(s *shell, id, to string, newKeys bool) h.Node {
	return h.Find(s.path("instances", id, "rewind"), h.Class("fields"),
		label("To the turn of entry", input("to", to, h.InputMode("numeric"), h.Required())),
		check("under new keys: the outside does it again", h.Name("keys"), h.Value("new"), h.If(newKeys, h.Checked())),
		button("See what it would do"))
}

// rewindPage is what a rewind would do; nothing, when it is refused.
type rewindPage struct {
	client.Rewind
	id, to  string
	newKeys bool
}

func rewind(v *visit) (content, error) {
	q := v.URL.Query()
	p := rewindPage{id: v.PathValue("id"), to: strings.TrimSpace(q.Get("to")), newKeys: q.Get("keys") == "new"}
	to, err := strconv.ParseInt(p.to, 10, 64)
	if err != nil {
		err = problem.New(problem.Invalid, "console.entry", "%q is the number of no entry", p.to).WithHint("the timeline of the instance has the numbers")
	} else {
		p.Rewind, err = v.api.Rewind(v.Context(), p.id, client.RewindRequest{To: to, NewKeys: p.newKeys, DryRun: true})
	}
	return content{"Rewind", false, p.body, p.acts}, err
}

func (p rewindPage) body(s *shell) h.Node {
	r := p.Rewind
	if r.InstanceID == "" {
		return facts(fact("Instance", s.toInstance(p.id)))
	}
	return h.Group{
		facts(fact("Instance", s.toInstance(p.id)), fact("Back to", text("the turn that ends with entry "), number(r.To)), fact("It is then", status(r.Status))),
		titled("What it waits for, which is withdrawn", h.If(len(r.Waits) == 0, nothing(text("Nothing."))),
			h.Ul(h.Map(r.Waits, func(w client.Wait) h.Node { return h.Li(text(waitsFor(w)+" "), small(code(w.Pointer))) }))),
		titled("What the outside was asked for since", h.If(len(r.Effects) == 0, nothing(text("Nothing."))), h.If(len(r.Effects) > 0, h.Group{
			table("#|Where|What|Key", h.Map(r.Effects, func(e client.Effect) h.Node {
				return h.Tr(cell(number(e.Position)), cell(code(e.Pointer)), cell(text(e.Target)), cell(code(e.Key), h.If(e.OwnKey, small(text(" its author's")))))
			})),
			h.If(r.More > 0, note(text("and "), number(r.More), text(" more"))),
			h.If(r.NewKeys, note(text("It is asked for again under new keys, but where its author gives the key: it is done again."))),
			h.If(!r.NewKeys, note(text("It is asked for again under the same keys: a receiver that knows them does it once."))),
		})),
		h.If(r.Signals > 0, note(number(r.Signals), text(" signals were taken since, and are not taken again."))),
	}
}

func (p rewindPage) acts(s *shell) h.Node {
	if !s.may("rewind-instance", "") {
		return nil
	}
	return acts("Do", h.If(p.InstanceID != "" && s.problem == nil, h.Post(s.here, hidden("version", fmt.Sprint(p.StateVersion)), button("Take it back", h.Class("danger")))),
		rewindForm(s, p.id, p.to, p.newKeys))
}

func takeBack(v *visit) (string, h.Address, error) {
	v.here = h.Here(v.URL)
	to, err := strconv.ParseInt(v.URL.Query().Get("to"), 10, 64)
	version, unread := strconv.ParseInt(v.PostForm.Get("version"), 10, 64)
	if err != nil || unread != nil {
		return "", h.Address{}, problem.New(problem.Invalid, "console.form", "the form does not say what was seen")
	}
	r, err := v.api.Rewind(v.Context(), v.PathValue("id"), client.RewindRequest{To: to, StateVersion: version, NewKeys: v.URL.Query().Get("keys") == "new"})
	return "It was taken back: it is " + r.Status + ".", h.Address{}, err
}
