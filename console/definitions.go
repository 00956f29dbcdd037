package console

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"go.yaml.in/yaml/v3"

	"github.com/aqueduct-engine/aqueduct/api/client"
	h "github.com/aqueduct-engine/aqueduct/console/html"
	"github.com/aqueduct-engine/aqueduct/definition/diagram"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/schema"
)

func definitions(v *visit) (content, error) {
	q := v.URL.Query()
	p, err := v.api.Definitions(v.Context(), client.List{After: q.Get("after"), Limit: pageItems})
	var policies client.Page[client.Definition]
	if err == nil {
		policies, err = v.api.Policies(v.Context(), "", client.List{After: q.Get("policies"), Limit: pageItems})
		err = unless(err)
	}
	return content{"Definitions", false, func(s *shell) h.Node { return h.Group{s.definitions(p), policiesOf(s, policies)} }, func(s *shell) h.Node { return publishForm(s, v.form.Get("source")) }}, err
}

func (s *shell) definitions(p client.Page[client.Definition]) h.Node {
	list := nothing(text("Nothing is published yet."))
	if len(p.Items) > 0 {
		list = table("Definition|Version|Title|Kind|Published|", h.Map(p.Items, func(d client.Definition) h.Node {
			return h.Tr(cell(h.A(s.ofVersion(d.Name, d.Version), text(d.Name))), cell(text(d.Version)), cell(text(d.Title)), cell(text(d.Kind)),
				cell(s.moment(d.PublishedAt)), cell(h.A(s.path("instances").With("definition", d.Name), text("instances"))))
		}))
	}
	return h.Group{list, s.nextPage("Next page", p.Next)}
}

// policiesOf are the policies of lifecycles, in pages of their own.
func policiesOf(s *shell, p client.Page[client.Definition]) h.Node {
	if len(p.Items) == 0 {
		return nil
	}
	return titled("Policies of lifecycles", table("Policy|Version|Title|Published", h.Map(p.Items, func(d client.Definition) h.Node {
		return h.Tr(cell(h.A(s.ofVersion(d.Name, d.Version), text(strings.TrimPrefix(d.Name, "policy:")))), cell(text(d.Version)), cell(text(d.Title)), cell(s.moment(d.PublishedAt)))
	})), ifText(p.Next, func(next string) h.Node { return paragraph(h.A(s.at("policies", next), text("More policies"))) }))
}

// publish is the form for a definition, with what was refused.
func publishForm(s *shell, written string) h.Node {
	if !s.may("publish-definition", "") {
		return nil
	}
	return acts("Publish", h.Post(s.path("definitions"), h.Class("fields"),
		label("Definition", small(text("YAML or JSON")), area("source", written, 14, h.Verbatim())), button("Publish")))
}

// definitionPage is one version of a definition.
type definitionPage struct {
	Name, Version string
	Source        string
	Picture       h.Node
	Lifecycle     bool
	Policy        bool // of a lifecycle: nothing runs it
	Versions      []client.Definition
	Input         json.RawMessage // a form made of its schema; nothing: any JSON is an input
	written       url.Values      // into the form that was refused
}

func definition(v *visit) (content, error) {
	name, version := v.PathValue("namespace")+"/"+v.PathValue("name"), v.PathValue("version")
	source, err := v.api.Source(v.Context(), name, version)
	if err != nil {
		return content{}, err
	}
	d := definitionPage{Name: name, Version: version, Source: string(source), written: v.form}
	if document, err := decoded(source); err == nil {
		root, _ := document.(map[string]any)
		d.Policy = strings.HasPrefix(name, "policy:")
		d.Lifecycle = root["states"] != nil && !d.Policy
		d.Picture = h.Drawn(document, diagram.View{})
		d.Input = inputForm(inputSchema(document))
	}
	if d.Versions, err = v.api.Versions(v.Context(), name); unless(err) != nil {
		return content{}, err
	}
	return content{name + "@" + version, false, d.body, d.acts}, nil
}

func (d definitionPage) body(s *shell) h.Node {
	return h.Group{
		h.If(d.Policy, note(text("A policy: the instances of its lifecycle go by the newest version."))),
		paragraph(h.If(!d.Policy, h.A(s.path("instances").With("definition", d.Name), text("Its instances"))),
			h.If(d.Lifecycle, h.Group{text(" · "), h.A(s.ofLifecycle(d.Name), text("Trigger an event"))})),
		d.versions(s),
		h.If(d.Picture != nil, titled("Picture", picture(d.Picture))),
		titled("Source", h.Pre(h.Class("source"), text(d.Source))),
	}
}

func (d definitionPage) acts(s *shell) h.Node {
	if !s.may("start-instance", d.Name) || d.Lifecycle || d.Policy {
		return nil
	}
	fields, free := formOf(d.Input, d.written)
	return acts("Start", h.Post(s.ofVersion(d.Name, d.Version).Below("start"), h.Class("fields"),
		h.Map(fields, field.shown), h.If(free, jsonLabel("Input", area("data", d.written.Get("data"), 6, h.Verbatim()))),
		hidden("request", either(d.written.Get("request"), uuid.NewString())),
		h.If(s.everywhere("start-instance"), label("Instance id", input("id", d.written.Get("id"), h.Placeholder("one is made")))), // others choose none
		label("Business key", input("key", d.written.Get("key"))),
		button("Start")))
}

func publish(v *visit) (string, h.Address, error) {
	v.here = v.path("definitions")
	source := v.PostForm.Get("source")
	if strings.TrimSpace(source) == "" {
		return "", h.Address{}, problem.New(problem.Invalid, "console.source", "there is nothing to publish").WithHint("write a definition as YAML or JSON")
	}
	d, created, err := v.api.Publish(v.Context(), "source", []byte(source))
	if err != nil {
		return "", h.Address{}, err
	}
	did := "It is published."
	if !created {
		did = "It was published before."
	}
	for _, w := range d.Warnings {
		did += " Warning: " + w.Detail + "."
	}
	return did, v.ofVersion(d.Name, d.Version), nil
}

// inputSchema is what a definition says of its input; nothing: any JSON is one.
func inputSchema(document any) json.RawMessage {
	of := func(v any, name string) any {
		m, _ := v.(map[string]any)
		return m[name]
	}
	form := of(of(of(document, "input"), "schema"), "document")
	if form == nil {
		return nil
	}
	raw, err := jsonv2.Marshal(form, jsonv2.Deterministic(true))
	if err != nil {
		return nil // what JSON cannot say is no schema
	}
	return raw
}

// inputForm is a form that asks for what a schema has.
func inputForm(schema json.RawMessage) json.RawMessage {
	if schema == nil {
		return nil
	}
	return json.RawMessage(`{"schema":` + string(schema) + `}`)
}

// fits says where an input does not fit its schema: an instance would begin and fault.
func fits(of, input json.RawMessage) error {
	s, err := schema.Compile(of)
	if of == nil || err != nil {
		return nil // the engine says so
	}
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	places := s.Check(input)
	if len(places) == 0 {
		return nil
	}
	p := problem.New(problem.Invalid, "console.input", "the input does not fit the schema of the definition")
	p.Where = places
	return p
}

func start(v *visit) (string, h.Address, error) {
	name := v.PathValue("namespace") + "/" + v.PathValue("name")
	document, _ := v.document(name, v.PathValue("version")) // of what cannot be read the start says so
	of := inputSchema(document)
	input, err := answerOf(inputForm(of), v.PostForm, "the input")
	if err == nil {
		err = fits(of, input)
	}
	if err != nil {
		return "", h.Address{}, err
	}
	r := client.StartRequest{
		Definition: name, Version: v.PathValue("version"), Input: input,
		InstanceID: strings.TrimSpace(v.PostForm.Get("id")), BusinessKey: strings.TrimSpace(v.PostForm.Get("key")),
	}
	if r.InstanceID == "" { // a second press is the same start
		r.StartKey = v.PostForm.Get("request")
	}
	i, created, err := v.api.Start(v.Context(), r, 0)
	did := "It has begun."
	if err == nil && !created {
		did = "It was begun before."
	}
	return did, v.path("instances", i.ID), err
}

// decoded is a definition's source as a tree. YAML's own kinds of keys and numbers
// are those of JSON in what was published.
func decoded(source []byte) (any, error) {
	var v any
	err := yaml.Unmarshal(source, &v)
	return v, err
}

// overview is the first page: what needs a person now.
type overview struct {
	Recent, Faulted []client.Instance
	Tasks           []client.Task
	Dead            []client.DeadLetter
	Queues          []client.Queue
	Definitions     int
	MoreFaulted     bool
	MoreDead        bool
}

func welcome(v *visit) (content, error) {
	const few = 8
	var o overview
	l := client.List{Limit: few}
	// Whoever may not see a part sees the others.
	recent, err := v.api.Instances(v.Context(), client.InstanceQuery{List: l})
	if err = unless(err); err != nil {
		return content{}, err
	}
	faulted, err := v.api.Instances(v.Context(), client.InstanceQuery{Status: "faulted", List: l})
	if err = unless(err); err != nil {
		return content{}, err
	}
	tasks, err := v.api.Tasks(v.Context(), client.TaskQuery{User: v.who.User, Groups: v.who.Groups, List: l})
	if err = unless(err); err != nil {
		return content{}, err
	}
	dead, err := v.api.DeadLetters(v.Context(), client.DeadLetterQuery{List: l})
	if err = unless(err); err != nil {
		return content{}, err
	}
	published, err := v.api.Definitions(v.Context(), client.List{Limit: 1})
	if err != nil && unless(err) == nil {
		published.Items = make([]client.Definition, 1) // whether there are any is not theirs to know
	} else if err != nil {
		return content{}, err
	}
	o.Recent, o.Faulted, o.Tasks, o.Dead, o.Definitions = recent.Items, faulted.Items, tasks.Items, dead.Items, len(published.Items)
	o.MoreFaulted, o.MoreDead = faulted.Next != "", dead.Next != ""
	o.Queues, err = v.api.Queues(v.Context())
	return content{"Overview", true, o.body, o.acts}, unless(err)
}

func (o overview) acts(s *shell) h.Node {
	if !s.may("publish-definition", "") || !s.everywhere("start-instance") || len(o.Recent) > 0 {
		return nil
	}
	return acts("See one run", h.Post(s.path("try"), button("Run a small workflow"),
		note(text("It is published as "), code("welcome/first-look"), text(", waits for a moment, and then asks a person: you."))))
}

//go:embed first-look.yaml
var firstLook []byte

// try publishes a small workflow, and starts it.
func try(v *visit) (string, h.Address, error) {
	v.here = v.path("")
	d, _, err := v.api.Publish(v.Context(), "first-look.yaml", firstLook)
	if err != nil {
		return "", v.here, err
	}
	input, err := jsonv2.Marshal(map[string]string{"name": either(v.who.User, "you")})
	if err != nil {
		return "", v.here, err
	}
	i, _, err := v.api.Start(v.Context(), client.StartRequest{Definition: d.Name, Version: d.Version, InstanceID: uuid.NewString(), Input: input}, 0)
	return "It runs: below is the path that it takes, and what it waits for.", v.path("instances", i.ID), err
}

func (o overview) body(s *shell) h.Node {
	tasks := nothing(text("No open task. A definition asks a person with "), code("call: humanTask"), text("."))
	if len(o.Tasks) > 0 {
		tasks = h.Group{s.tasks(o.Tasks), allOf("All tasks", s.path("tasks"))}
	}
	faulted := nothing(text("Nothing is faulted."))
	if len(o.Faulted) > 0 {
		faulted = h.Group{s.instances(o.Faulted), h.If(o.MoreFaulted, allOf("All that are faulted", s.path("instances").With("status", "faulted")))}
	}
	dead := nothing(text("There are none."))
	if len(o.Dead) > 0 {
		dead = h.Group{s.dead(o.Dead), h.If(o.MoreDead, allOf("All dead letters", s.path("dead-letters")))}
	}
	recent := nothing(text("No instance yet. "), h.A(s.path("definitions"), text("Choose a definition")), text(" and start one."))
	if len(o.Recent) > 0 {
		recent = h.Group{s.instances(o.Recent), allOf("All instances", s.path("instances"))}
	}
	return h.Group{
		h.If(o.Definitions == 0 && s.look("list-definitions", ""), nothing(text("Nothing is published yet. "), h.A(s.path("definitions"), text("Publish a definition")),
			text(", or start the node with "), code("--watch FOLDER"), text("."))),
		h.If(s.look("list-tasks", ""), h.Section(h.H2(text("Tasks"), after(" for ", s.who.User)), tasks)),
		h.If(s.look("list-instances", ""), titled("Faulted", faulted)), h.If(s.look("list-dead-letters", ""), titled("Dead letters", dead)),
		h.If(len(o.Queues) > 0, titled("Queues", s.queues(o.Queues))), h.If(s.look("list-instances", ""), titled("Begun last", recent)),
	}
}

// unless is an error, but for that of a person who is known and may not.
func unless(err error) error {
	if err != nil && tell(err).Status == http.StatusForbidden && problem.CodeOf(err) != "request.host" {
		return nil
	}
	return err
}
