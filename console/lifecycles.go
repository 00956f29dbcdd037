package console

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/api/client"
	h "github.com/aqueduct-engine/aqueduct/console/html"
	"github.com/aqueduct-engine/aqueduct/definition/diagram"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// counts is how many instances of each status a lifecycle's page counts: the API
// answers no more at once.
const counts = 500

// lifecycles lists those that are published.
func lifecycles(v *visit) (content, error) {
	p, err := v.api.Definitions(v.Context(), client.List{After: v.URL.Query().Get("after"), Limit: counts})
	var names []string
	for _, d := range p.Items {
		if d.Kind == "lifecycle" && !slices.Contains(names, d.Name) {
			names = append(names, d.Name)
		}
	}
	return content{"Lifecycles", false, func(s *shell) h.Node {
		var list h.Node
		switch {
		case len(names) > 0:
			list = h.Ul(h.Map(names, func(name string) h.Node { return h.Li(h.A(s.ofLifecycle(name), text(name))) }))
		case s.problem == nil && p.Next == "":
			list = nothing(text("No lifecycle is published. A document with "), code("lifecycle: '1.0'"), text(" is one: "), h.A(s.path("definitions"), text("publish it")), text("."))
		}
		return h.Group{list, s.nextPage("More", p.Next)}
	}, nil}, err
}

// machine is the state machine of a lifecycle, with who is in which state.
type machine struct {
	Version string
	Picture h.Node
	Events  []string
	States  []string                  // in which open entities are
	Open    map[string]map[string]int // of them, by status
	Partly  bool                      // there are more than were counted
	Stale   client.Page[client.Instance]
	Where   string // that selects them
}

// open are the statuses of entities that have not ended.
var open = []string{"waiting", "running", "suspended", "faulted"}

// idle is after how many days without a change an entity is stale, and what else
// may be asked for.
var idle = []string{"2", "7", "30", "90"}

func (v *visit) machine(name string) (m machine, err error) {
	versions, err := v.api.Versions(v.Context(), name)
	if err != nil || len(versions) == 0 {
		return m, err
	}
	m.Version = versions[len(versions)-1].Version // which was published last
	source, err := v.api.Source(v.Context(), name, m.Version)
	if err != nil {
		return m, err
	}
	document, _ := decoded(source) // code in Go has none
	root, _ := document.(map[string]any)
	events, _ := root["events"].(map[string]any)
	m.Events, m.Open = slices.Sorted(maps.Keys(events)), map[string]map[string]int{}
	view := diagram.View{Counts: map[string]int{}}
	for _, status := range open {
		p, err := v.api.Instances(v.Context(), client.InstanceQuery{Definition: name, Status: status, List: client.List{Limit: counts}})
		if err != nil {
			return m, err
		}
		for _, i := range p.Items {
			if m.Open[i.State] == nil {
				m.Open[i.State] = map[string]int{}
			}
			m.Open[i.State][status]++
			view.Counts[i.State]++
		}
		m.Partly = m.Partly || p.Next != ""
	}
	m.States = slices.Sorted(maps.Keys(m.Open))
	if root != nil {
		m.Picture = picture(h.Drawn(document, view))
	}
	before := v.Now().UTC().AddDate(0, 0, -days(v.URL.Query().Get("idle")))
	m.Where = "updatedAt < " + before.Format(time.RFC3339)
	m.Stale, err = v.api.Instances(v.Context(), client.InstanceQuery{Definition: name, Status: "waiting", Where: m.Where, List: client.List{Limit: pageItems}})
	return m, err
}

// days is how long nothing may have changed; 7 where nothing that we offer is asked.
func days(asked string) int {
	n := map[string]int{"2": 2, "30": 30, "90": 90}[asked]
	if n == 0 {
		n = 7
	}
	return n
}

func (m machine) body(s *shell, name string) h.Node {
	if m.Version == "" {
		return nil
	}
	among := func(state, status string) h.Address {
		q := map[string][]string{"definition": {name}, "status": {status}}
		if state != "" {
			quoted, _ := jsontext.AppendQuote(nil, state)
			q["where"] = []string{"state = " + string(quoted)}
		}
		return s.path("instances").Asking(q)
	}
	entities := nothing(text("No entity is open. The first event of a reference begins one: trigger it here."))
	if len(m.States) > 0 {
		entities = table("State|"+strings.Join(open, "|"), h.Map(m.States, func(state string) h.Node {
			return h.Tr(cell(h.Span(h.ID("/states/"+state), text(state))), h.Map(open, func(status string) h.Node {
				return cell(h.If(m.Open[state][status] > 0, h.A(among(state, status), number(m.Open[state][status]))))
			}))
		}))
	}
	asked := days(s.q("idle"))
	stale := nothing(text("None that waits."))
	if len(m.Stale.Items) > 0 {
		stale = h.Group{s.instances(m.Stale.Items), ifText(m.Stale.Next, func(string) h.Node {
			return paragraph(h.A(s.path("instances").Asking(map[string][]string{"definition": {name}, "status": {"waiting"}, "where": {m.Where}}), text("All of them")))
		})}
	}
	return h.Group{
		paragraph(text("As it is in "), h.A(s.ofVersion(name, m.Version), text(m.Version)), text(", which was published last · "),
			h.A(s.path("instances").With("definition", name), text("all its instances")), text(" · "), h.A(among("", "completed"), text("those that have ended"))),
		m.Picture,
		titled("Open entities by state", h.If(m.Partly, note(text("Of each status the newest "), number(counts), text(" are counted; there are more."))), entities),
		titled("Nothing has changed for", h.P(h.Class("filters"), h.Map(idle, func(d string) h.Node {
			return h.Group{s.filter("idle", d, days(d) == asked, text(d+" days")), text("\n")}
		})), stale),
	}
}

// entityPage is a lifecycle, or what it says of one reference.
type entityPage struct {
	Name, Reference string
	*client.Lifecycle
	machine machine
}

func entity(v *visit) (content, error) {
	e := entityPage{Name: v.PathValue("namespace") + "/" + v.PathValue("name"), Reference: v.URL.Query().Get("reference")}
	if v.form != nil {
		e.Reference = v.form.Get("reference")
	}
	c := content{e.Name, false, e.body, e.acts}
	if e.Reference == "" {
		var err error
		if e.machine, err = v.machine(e.Name); err != nil {
			return content{title: e.Name}, err
		}
		return content{e.Name, false, e.body, e.acts}, nil
	}
	l, err := v.api.Lifecycle(v.Context(), e.Name, e.Reference)
	switch {
	case err == nil:
		e.Lifecycle = &l
		c.body, c.acts = e.body, e.acts
	case tell(err).Kind == problem.NotFound:
		err = nil // a first event begins it
	default:
		c.body = func(*shell) h.Node { return nil } // whether it is there is not known
	}
	return c, err
}

func (e entityPage) body(s *shell) h.Node {
	switch {
	case e.Lifecycle != nil:
		return facts(
			fact("Reference", text(e.Reference)), fact("State", text(e.State+" since "), s.moment(e.Since)), fact("Status", status(e.Status)),
			fact("Takes", text(strings.Join(e.Events, ", "))), fact("Instance", s.toInstance(e.InstanceID)))
	case e.Reference != "":
		return nothing(text("There is nothing with the reference " + e.Reference + " yet; its first event begins it."))
	}
	return e.machine.body(s, e.Name)
}

func (e entityPage) acts(s *shell) h.Node {
	reference := label("Reference", input("reference", e.Reference, h.Required()))
	takes := e.machine.Events
	if e.Lifecycle != nil {
		takes = e.Events
	}
	return h.Group{
		acts("Find", h.Find(h.Address{}, reference, button("Find"))),
		h.If(s.may("trigger-event", e.Name), acts("Trigger", h.Post(s.ofLifecycle(e.Name).Below("trigger"), h.Class("fields"), hidden("request", either(s.asked("request"), uuid.NewString())), reference,
			label("Event", h.Input(h.Name("event"), h.Value(s.asked("event")), h.List("takes"), h.Required())), offered("takes", takes),
			jsonLabel("Payload", area("payload", s.asked("payload"), 4)), button("Trigger")))),
	}
}

func trigger(v *visit) (string, h.Address, error) {
	name, reference := v.PathValue("namespace")+"/"+v.PathValue("name"), strings.TrimSpace(v.PostForm.Get("reference"))
	payload, err := data(v.PostForm.Get("payload"), "the payload")
	if err == nil && reference == "" {
		err = problem.New(problem.Invalid, "console.form", "the reference is empty").WithHint("say which object the event is of")
	}
	if err != nil {
		return "", h.Address{}, err
	}
	t, err := v.api.Trigger(v.Context(), name, reference, client.TriggerRequest{
		Event: strings.TrimSpace(v.PostForm.Get("event")), RequestID: v.PostForm.Get("request"), Actor: v.who.User, Payload: payload,
	})
	did := "It was " + t.Disposition
	if t.State != "" { // it could be read
		did += "; the state is " + t.State
	}
	return did + ".", v.path("instances", t.InstanceID), err
}
