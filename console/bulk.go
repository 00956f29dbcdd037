package console

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/aqueduct-engine/aqueduct/api/client"
	h "github.com/aqueduct-engine/aqueduct/console/html"
)

// What is done to many at once: a list with its filter makes a plan, whose page says what
// it is of, and has it run. A run goes on while that page is open, step by step, and
// stands where it was when the page is closed.

// planned is what an operation on many is called in a list, and what it does.
type planned struct{ operation, says string }

var ofInstances = []planned{
	{"retry", "retry"}, {"retry-same", "retry, under the same keys"}, {"retry-new", "retry, with new keys"}, {"suspend", "suspend"}, {"resume", "resume"},
	{"run-now", "run now what waits for a time"}, {"migrate", "migrate to a version"}, {"compensate", "cancel, and compensate"}, {"cancel", "cancel"},
}

var ofDeadLetters = []planned{{"replay", "send to their queues again"}, {"discard", "discard: gone for good"}}

// planForm asks for a plan of all that a list with its filter has.
func planForm(s *shell, list string, choices []planned, more ...h.Node) h.Node {
	if ended := s.q("status"); !s.may("plan-bulk", "") || len(filterOf(s.query)) == 0 || ended == "completed" || ended == "cancelled" || ended == "compensated" {
		return nil // of all, or of what has ended, there is no plan
	}
	asked := s.asked("operation")
	return acts("Do to all of these", h.Post(s.path(list, "plan").Asking(filterOf(s.query)), h.Class("fields"),
		label("What", h.Select(h.Name("operation"), h.Map(choices, func(p planned) h.Node {
			return h.Option(h.Value(p.operation), h.If(p.operation == asked, h.Selected()), text(p.says))
		}))),
		h.Group(more), label("Why", input("why", s.asked("why"))), button("Plan it"),
		note(text("Nothing is done yet: you see first what the plan is of. "), h.A(s.path("bulk"), text("All plans")))))
}

// filterOf is what of an address narrows a list, on all of its pages.
func filterOf(query url.Values) url.Values {
	q := url.Values{}
	for name, values := range query {
		if name != "after" && name != "order" && name != "live" {
			q[name] = values
		}
	}
	return q
}

func planInstances(v *visit) (string, h.Address, error) {
	q := v.URL.Query()
	return v.plan("instances", client.BulkRequest{
		Definition: q.Get("definition"), Version: q.Get("version"), Status: q.Get("status"), BusinessKey: q.Get("key"), Parent: q.Get("parent"), Where: q.Get("where"),
		ErrorCode: q.Get("error"), Text: q.Get("text"), OlderThan: q.Get("older"), To: strings.TrimSpace(v.PostForm.Get("to")),
	})
}

func planDeadLetters(v *visit) (string, h.Address, error) {
	q := v.URL.Query()
	return v.plan("dead-letters", client.BulkRequest{
		Definition: q.Get("definition"), Queue: q.Get("queue"), ErrorCode: q.Get("reason"), Instance: q.Get("instance"), Text: q.Get("text"), OlderThan: q.Get("older"),
	})
}

func (v *visit) plan(list string, r client.BulkRequest) (string, h.Address, error) {
	v.here = v.path(list).Asking(v.URL.Query()) // where the form was, if it is refused
	r.Operation = v.PostForm.Get("operation")
	v.api.Reason = v.why()
	p, err := client.NewBulk(v.api).Plan(v.Context(), r)
	return "The plan was made.", v.path("bulk", p.ID), err
}

func bulkPlans(v *visit) (content, error) {
	p, err := client.NewBulk(v.api).List(v.Context(), client.List{After: v.URL.Query().Get("after"), Limit: pageItems})
	return content{"Plans", true, bulkList(p).body, nil}, err
}

type bulkList client.Page[client.BulkPlan]

func (p bulkList) body(s *shell) h.Node {
	if s.problem != nil {
		return nil
	}
	if len(p.Items) == 0 {
		return nothing(text("No plan. A list of "), h.A(s.path("instances"), text("instances")), text(" or "), h.A(s.path("dead-letters"), text("dead letters")),
			text(" makes one of all that its filter has."))
	}
	return h.Group{table("Plan|What|Status|Of|Done|Skipped|Failed|Open|Made|Why", h.Map(p.Items, func(b client.BulkPlan) h.Node {
		return h.Tr(cell(h.A(s.path("bulk", b.ID), text(b.ID))), cell(text(b.Operation)), cell(status(b.Status)), cell(number(b.Planned)), cell(number(b.Done)),
			cell(number(b.Skipped)), cell(number(b.Failed)), cell(number(b.Open)), cell(s.moment(b.CreatedAt), after(" by ", b.CreatedBy)), cell(text(b.Reason)))
	})), s.nextPage("Next page", p.Next)}
}

// bulkPage is one plan, with some of its items.
type bulkPage struct {
	client.BulkPlan
	Items client.Page[client.BulkItem]
	Going bool // the page has it run
}

func bulkPlan(v *visit) (content, error) {
	q, bulk := v.URL.Query(), client.NewBulk(v.api)
	var b bulkPage
	var err error
	if b.BulkPlan, err = bulk.Get(v.Context(), v.PathValue("id")); err != nil {
		return content{}, err
	}
	b.Going = b.Status == "running" && q.Get("go") == "on" && !v.ReadOnly
	b.Items, err = bulk.Items(v.Context(), b.ID, q.Get("outcome"), client.List{After: q.Get("after"), Limit: pageItems})
	return content{"Plan to " + b.Operation + " " + fmt.Sprint(b.Planned), b.Status == "running" && !b.Going, b.body, b.acts}, err
}

func (b bulkPage) body(s *shell) h.Node {
	ended := b.Planned - b.Open
	return h.Group{
		h.If(b.Going && s.problem == nil, h.GoingOn(s.path("bulk", b.ID, "run"), fmt.Sprint("at-", ended, "-", s.Now().UnixNano()), "page")),
		h.If(b.Status == "running" || b.Status == "stopped", paragraph(h.Progress(ended, b.Planned), text(fmt.Sprintf(" %d of %d", ended, b.Planned)))),
		facts(
			fact("Status", status(b.Status), h.If(b.Going, text(" while this page is open"))), fact("Of", b.filter(s)),
			factIf(b.Reason != "", "Why", text(b.Reason)), fact("Made", s.moment(b.CreatedAt), after(" by ", b.CreatedBy)), factIf(b.RunBy != "", "Run by", text(b.RunBy)),
			factIf(!b.EndedAt.IsZero(), "Ended", s.moment(b.EndedAt)),
			fact("Items", number(b.Planned), h.If(b.More, h.Strong(text(" and more were found, which are in no plan")))),
			fact("Become", b.outcomes(s))),
		h.If(len(b.Kinds) > 0, titled("What they were", table("Items|That were", h.Map(b.Kinds, func(k client.BulkKind) h.Node {
			return h.Tr(cell(number(k.Items)), cell(code(k.Kind)))
		})))),
		h.If(len(b.Why) > 0, titled("Why not, or not at once", table("Items|Outcome|Code", h.Map(b.Why, func(w client.BulkCount) h.Node {
			return h.Tr(cell(number(w.Items)), cell(outcome(w.Outcome)), cell(code(w.Code)))
		})))),
		titled("Items", h.If(len(b.Items.Items) == 0, nothing(text("None of the kind."))), h.If(len(b.Items.Items) > 0, b.table(s)), s.nextPage("Next items", b.Items.Next)),
	}
}

// outcomes are how many items have become what, each of which narrows the list of them.
func (b bulkPage) outcomes(s *shell) h.Node {
	of := func(outcome string, n int) h.Node {
		return h.Group{s.filter("outcome", outcome, s.q("outcome") == outcome, number(n), text(" "+either(outcome, "in all"))), text("\n")}
	}
	return h.Span(h.Class("filters"), of("", b.Planned), of("done", b.Done), of("skipped", b.Skipped), of("failed", b.Failed), of("open", b.Open))
}

func (b bulkPage) table(s *shell) h.Node {
	list := "instances"
	if ofDead(b.Operation) {
		list = "dead-letters"
	}
	return table("No|Item|Was|Become|", h.Map(b.Items.Items, func(i client.BulkItem) h.Node {
		return h.Tr(cell(number(i.No)), cell(h.A(s.path(list, i.ID), text(i.ID))), cell(code(i.Kind)), cell(outcome(i.Outcome)),
			cell(ifText(i.Code, code), after(" ", i.Detail)))
	}))
}

// outcome is what an item has become, in the colours of what is well and what is not.
func outcome(o string) h.Node {
	class := map[string]string{"done": "completed", "failed": "faulted", "skipped": "suspended"}[o]
	return h.Span(h.Class("status "+class), text(o))
}

func ofDead(operation string) bool { return operation == "replay" || operation == "discard" }

// filter is what a plan is of, in words, with the list of those that fit it now.
func (b bulkPage) filter(s *shell) h.Node {
	r, list, q := b.Asked, "instances", url.Values{}
	says := h.Group{}
	narrow := func(name, title, value string) {
		if value != "" {
			q.Set(name, value)
			says = append(says, text(title+" "), code(value), text(" · "))
		}
	}
	narrow("definition", "definition", r.Definition)
	narrow("version", "version", r.Version)
	narrow("status", "status", r.Status)
	narrow("state", "at", r.State)
	narrow("key", "key", r.BusinessKey)
	narrow("parent", "children of", r.Parent)
	narrow("where", "where", r.Where)
	narrow("queue", "queue", r.Queue)
	narrow("instance", "instance", r.Instance)
	if ofDead(b.Operation) {
		list = "dead-letters"
		narrow("reason", "reason", r.ErrorCode)
	} else {
		narrow("error", "error", r.ErrorCode)
	}
	narrow("text", "with the text", r.Text)
	if !b.Before.IsZero() {
		says = append(says, text("before "), s.moment(b.Before), text(" · "))
	}
	if r.To != "" {
		says = append(says, text("to version "), code(r.To), text(" · "))
	}
	return h.Group{says, h.A(s.path(list).Asking(q), text("those that fit now"))}
}

func (b bulkPage) acts(s *shell) h.Node {
	if !s.may("run-bulk", "") {
		return nil
	}
	at, says, class := s.path("bulk", b.ID), fmt.Sprintf("%s %d", b.Operation, b.Open), h.Node(nil)
	switch b.Operation {
	case "discard", "cancel", "compensate":
		class = h.Class("danger")
	}
	run := func(says string) h.Node {
		return h.Post(at.Below("run"), hidden("begin", "yes"), button(says, class))
	}
	stop := h.Post(at.Below("stop"), button("Stop"))
	switch {
	case b.Status == "planned" && b.Open > 0:
		return acts("Do it", run(says), note(text("What has changed since the plan was made is skipped. What is not in it is not touched.")))
	case b.Status == "running" && b.Going:
		return acts("It runs", stop, note(text("It goes on while this page is open, and does nothing twice. Where the page runs no script, go on by hand:")),
			h.Post(at.Below("run"), button("Go on")))
	case b.Status == "running":
		return acts("It was begun", run("Go on: "+says), stop)
	case b.Status == "stopped" && b.Open > 0:
		return acts("It was stopped", run("Go on: "+says))
	}
	return nil
}

func runBulk(v *visit) (string, h.Address, error) {
	at := v.path("bulk", v.PathValue("id"))
	v.here = at
	p, err := client.NewBulk(v.api).Run(v.Context(), v.PathValue("id"), client.BulkRunRequest{Begin: v.PostForm.Get("begin") != ""})
	if p.Status == "running" {
		return "", at.With("go", "on"), err
	}
	return fmt.Sprintf("%d done, %d skipped, %d failed.", p.Done, p.Skipped, p.Failed), at, err
}

func stopBulk(v *visit) (string, h.Address, error) {
	v.here = v.path("bulk", v.PathValue("id"))
	_, err := client.NewBulk(v.api).Stop(v.Context(), v.PathValue("id"))
	return "It stands. What is done stays done.", v.here, err
}
