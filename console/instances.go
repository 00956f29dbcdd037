package console

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aqueduct-engine/aqueduct/api/client"
	h "github.com/aqueduct-engine/aqueduct/console/html"
	"github.com/aqueduct-engine/aqueduct/definition/diagram"
)

// statuses are those that a list can be narrowed to.
var statuses = []string{"running", "waiting", "faulted", "suspended", "completed", "cancelled", "compensated"}

func instances(v *visit) (content, error) {
	q := v.URL.Query()
	p, err := v.api.Instances(v.Context(), client.InstanceQuery{
		Definition: q.Get("definition"), Version: q.Get("version"), Status: q.Get("status"), BusinessKey: q.Get("key"), Parent: q.Get("parent"),
		ErrorCode: q.Get("error"), Text: q.Get("text"), OlderThan: q.Get("older"), Where: q.Get("where"), OrderBy: q.Get("order"), List: client.List{After: q.Get("after"), Limit: pageItems},
	})
	return content{"Instances", true, func(s *shell) h.Node { return s.instanceList(p) }, findInstances}, err
}

func (s *shell) instanceList(p client.Page[client.Instance]) h.Node {
	var list h.Node
	switch {
	case len(p.Items) > 0:
		list = s.instances(p.Items)
	case s.problem == nil: // else it is not known
		list = nothing(text("No such instance. "), h.A(s.path("definitions"), text("Start one")), text("."))
	}
	return h.Group{
		h.P(h.Class("filters"), s.filter("status", "", s.q("status") == "", text("all")), text("\n"),
			h.Map(statuses, func(st string) h.Node {
				return h.Group{s.filter("status", st, s.q("status") == st, text(st)), text("\n")}
			}),
			s.narrowed("definition", "any definition", text),
			s.narrowed("version", "any version", func(version string) h.Node { return text("version " + version) }), s.narrowed("where", "without this filter", code),
			s.narrowed("key", "any key", func(key string) h.Node { return text("key " + key) }),
			s.narrowed("error", "any error", code), s.narrowed("text", "any text", func(t string) h.Node {
				return text("with the text “" + t + "”, of the newest 20,000 with an error")
			}),
			s.narrowed("older", "of any age", func(d string) h.Node { return text("unchanged for " + d) }),
			s.narrowed("order", "newest start first", func(by string) h.Node { return h.Group{text("in the order "), code(by)} }),
			s.narrowed("parent", "any parent", func(id string) h.Node { return h.Group{text("children of "), s.toInstance(id)} })),
		list, s.nextPage("Next page", p.Next),
	}
}

func findInstances(s *shell) h.Node {
	return h.Group{acts("Find", h.Find(s.path("instances"), h.Class("fields"),
		s.find("Definition", "definition", "definition", "namespace/name"), s.find("Version", "version", "version", "1.0.0"), s.find("Business key", "key", "businessKey", ""),
		s.find("Error", "error", "errorCode", "timeout"), s.find("Text of the error", "text", "text", ""), s.find("Unchanged for", "older", "olderThan", "1h, 30d"),
		s.find("Where", "where", "where", `amount > 1000 and state = "Review"`), s.find("Order by", "order", "orderBy", "newest start first; -amount"),
		note(text("Search attributes are what a definition names under "), code("metadata.searchAttributes"), text(".")),
		s.keeps("status", "parent"), button("Find"))),
		planForm(s, "instances", ofInstances, label("To version", input("to", s.asked("to"), h.Placeholder("of a migration, from the version above"))),
			h.If(s.q("order") != "", note(text("Also to those that the order leaves out, which have no such attribute."))))}
}

// whole is everything of an instance that its page shows.
type whole struct {
	client.InstanceDetail
	Picture  h.Node
	Entries  client.Page[client.Entry]
	Tasks    []client.Task
	Children []client.Instance
	Dead     []client.DeadLetter
	Open     bool

	MoreTasks, MoreChildren, MoreDead bool // than are shown

	Events  []string // that it waits for
	Reasons []client.Reason
}

func instance(v *visit) (content, error) {
	id := v.PathValue("id")
	i, err := v.api.Instance(v.Context(), id)
	if err != nil {
		return content{}, err
	}
	w := whole{InstanceDetail: i, Open: i.Status != "completed" && i.Status != "cancelled" && i.Status != "compensated"}
	after, _ := strconv.ParseInt(v.URL.Query().Get("after"), 10, 64) // anything else is the begin
	if w.Entries, err = v.api.Stream(v.Context(), id, after, streamItems); err != nil {
		return content{}, err
	}
	// Whoever may not see a part sees the others.
	tasks, err := v.api.Tasks(v.Context(), client.TaskQuery{Status: "all", InstanceID: id, List: client.List{Limit: pageItems}})
	if err = unless(err); err != nil {
		return content{}, err
	}
	children, err := v.api.Instances(v.Context(), client.InstanceQuery{Parent: id, List: client.List{Limit: pageItems}})
	if err = unless(err); err != nil {
		return content{}, err
	}
	dead, err := v.api.DeadLetters(v.Context(), client.DeadLetterQuery{InstanceID: id, List: client.List{Limit: pageItems}})
	if err = unless(err); err != nil {
		return content{}, err
	}
	w.Tasks, w.Children, w.Dead = tasks.Items, children.Items, dead.Items
	w.MoreTasks, w.MoreChildren, w.MoreDead = tasks.Next != "", children.Next != "", dead.Next != ""
	for _, wait := range i.Waits {
		if wait.Event != "" {
			w.Events = append(w.Events, wait.Event)
		}
	}
	why, err := v.api.Why(v.Context(), id)
	if err != nil {
		return content{}, err
	}
	w.Reasons, w.Picture = why.Reasons, v.pictureOf(w)
	return content{id, true, w.body, w.acts}, nil
}

// pictureOf draws the definition of an instance with the path that it took, as
// far as the page's part of the stream tells.
func (v *visit) pictureOf(w whole) h.Node {
	document, err := v.document(w.Definition, w.Version)
	if err != nil {
		return nil // code in Go has no document; the rest of the page is there
	}
	view := diagram.View{Path: map[string]bool{}, Ended: w.Status == "completed"}
	for _, e := range w.Entries.Items {
		for _, step := range e.Steps {
			view.Path[step] = true
		}
		if e.Pointer != "" {
			view.Path[e.Pointer] = true
		}
	}
	counts := map[diagram.Mark]int{}
	for _, wait := range w.Waits {
		m := diagram.Mark{Pointer: wait.Pointer, Text: waitsFor(wait)}
		if counts[m]++; counts[m] == 1 {
			view.Marks = append(view.Marks, m)
		}
	}
	for i, m := range view.Marks {
		if n := counts[m]; n > 1 {
			view.Marks[i].Text += fmt.Sprintf(" (%d times)", n)
		}
	}
	if w.Error != nil && (w.Status == "faulted" || w.Status == "compensated") {
		view.Marks = append(view.Marks, diagram.Mark{Pointer: w.Error.Pointer, Fault: true, Text: "failed: " + w.Error.Title})
	}
	return h.Drawn(document, view)
}

// waitsFor says in words what an instance waits for.
func waitsFor(w client.Wait) string {
	until := w.Until.UTC().Format(" 2006-01-02 15:04:05Z")
	switch {
	case w.Kind == "Due":
		return "its person is reminded" + until
	case w.Kind == "Timeout":
		return "its time is over" + until
	case w.Event != "":
		return "waits for the event " + w.Event
	case w.TaskID != "":
		return "waits for a person"
	case w.Child != "":
		return "waits for " + w.Child
	case !w.Until.IsZero():
		return "waits until" + until
	}
	return "waits: " + strings.ToLower(w.Kind)
}

func operate(v *visit) (string, h.Address, error) {
	output, err := data(v.PostForm.Get("output"), "the output")
	if err != nil {
		return "", h.Address{}, err
	}
	op := v.PostForm.Get("operation")
	r := client.OperationRequest{Operation: op, Output: output, Wait: v.PostForm.Get("wait")}
	if op != "suspend" && op != "resume" { // it is done to what somebody has seen, and by a second press not again
		r.StateVersion, _ = strconv.ParseInt(v.PostForm.Get("version"), 10, 64) // of a form of ours
	}
	i, err := v.api.Operate(v.Context(), v.PathValue("id"), r)
	if i.Disposition == "queued" {
		return op + " was handed on: a node with the Go code of " + i.Definition + " does it.", h.Address{}, err
	}
	return op + " was done: the instance is " + i.Status + ".", h.Address{}, err
}

func signal(v *visit) (string, h.Address, error) {
	payload, err := data(v.PostForm.Get("data"), "the data")
	if err != nil {
		return "", h.Address{}, err
	}
	a, err := v.api.Signal(v.Context(), v.PathValue("id"), client.SignalRequest{Type: strings.TrimSpace(v.PostForm.Get("type")), Data: payload, SignalID: v.PostForm.Get("request")})
	return "The signal was " + a.Disposition + ".", h.Address{}, err
}

// document is a definition as its author wrote it, decoded.
func (v *visit) document(definition, version string) (any, error) {
	source, err := v.api.Source(v.Context(), definition, version)
	if err != nil {
		return nil, err
	}
	return decoded(source)
}
