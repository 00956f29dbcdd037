package console

import (
	"html/template"
	"net/http"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/definition/diagram"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// definitionList is what is published, and what a refused form had.
type definitionList struct {
	Items  client.Page[client.Definition]
	Source string
}

func definitions(v *visit) (content, error) {
	q := v.URL.Query()
	p, err := v.api.Definitions(v.Context(), client.List{After: q.Get("after"), Limit: pageItems})
	return content{"definitions", "Definitions", false, definitionList{p, v.form.Get("source")}}, err
}

// definitionPage is one version of a definition.
type definitionPage struct {
	client.Definition
	Namespace string
	Source    string
	Picture   template.HTML
	Lifecycle bool
	Written   map[string]string
}

func definition(v *visit) (content, error) {
	name, version := v.PathValue("namespace")+"/"+v.PathValue("name"), v.PathValue("version")
	source, err := v.api.Source(v.Context(), name, version)
	if err != nil {
		return content{}, err
	}
	d := definitionPage{Namespace: v.PathValue("namespace"), Source: string(source), Written: map[string]string{}}
	d.Name, d.Version = name, version
	for k := range v.form {
		d.Written[k] = v.form.Get(k)
	}
	if document, err := decoded(source); err == nil {
		root, _ := document.(map[string]any)
		d.Lifecycle = root["states"] != nil
		d.Picture = template.HTML(diagram.SVG(document, diagram.View{})) // diagram escapes what is in it
	}
	return content{"definition", name + "@" + version, false, d}, nil
}

func publish(v *visit) (string, string, error) {
	source := v.PostForm.Get("source")
	if strings.TrimSpace(source) == "" {
		return "", "", problem.New(problem.Invalid, "console.source", "there is nothing to publish").WithHint("write a definition as YAML or JSON")
	}
	d, created, err := v.api.Publish(v.Context(), "source", []byte(source))
	if err != nil {
		return "", "", err
	}
	did := "It is published."
	if !created {
		did = "It was published before."
	}
	for _, w := range d.Warnings {
		did += " Warning: " + w.Detail + "."
	}
	return did, v.console.ofVersion(d.Name, d.Version), nil
}

func start(v *visit) (string, string, error) {
	input, err := data(v.PostForm.Get("input"), "the input")
	if err != nil {
		return "", "", err
	}
	i, created, err := v.api.Start(v.Context(), client.StartRequest{
		Definition: v.PathValue("namespace") + "/" + v.PathValue("name"), Version: v.PathValue("version"), Input: input,
		InstanceID: strings.TrimSpace(v.PostForm.Get("id")), BusinessKey: strings.TrimSpace(v.PostForm.Get("key")),
	}, 0)
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
	return content{"welcome", "Overview", true, o}, unless(err)
}

// unless is an error, but for that of a person who is known and may not.
func unless(err error) error {
	if err != nil && tell(err).Status == http.StatusForbidden && problem.CodeOf(err) != "request.host" {
		return nil
	}
	return err
}
