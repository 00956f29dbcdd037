package console

import (
	"fmt"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/api/client"
	h "github.com/aqueduct-engine/aqueduct/console/html"
)

// The page of one instance.

func (w whole) body(s *shell) h.Node {
	return h.Group{
		w.facts(s), w.error(), w.next(s),
		h.If(w.Picture != nil, titled("Path", picture(w.Picture))),
		h.If(len(w.Commands) > 0, w.calls(s)),
		h.If(len(w.Tasks) > 0, titled("Tasks", s.tasks(w.Tasks), h.If(w.MoreTasks, allOf("All its tasks", s.path("tasks").Asking(url.Values{"all": {"1"}, "status": {"all"}, "instance": {w.ID}}))))),
		h.If(len(w.Children) > 0, titled("Children", s.instances(w.Children), h.If(w.MoreChildren, allOf("All its children", s.path("instances").With("parent", w.ID))))),
		h.If(len(w.Dead) > 0, titled("Dead letters", s.dead(w.Dead), h.If(w.MoreDead, allOf("All its dead letters", s.path("dead-letters").With("instance", w.ID))))),
		titled("Timeline", w.timeline(s), s.nextPage("Later entries", w.Entries.Next)),
		w.data(),
	}
}

// calls are those that are not done, also where nothing waits for them.
func (w whole) calls(s *shell) h.Node {
	shown := w.Commands[:min(len(w.Commands), pageItems)]
	return titled("Calls that are not done", table("#|Call|Target|State|Attempts|Next|By|Last error", h.Map(shown, func(c client.Command) h.Node {
		return h.Tr(cell(number(c.Position)), cell(text(c.Name), h.Br(), small(code(c.Pointer))), cell(text(c.Target)), cell(status(c.State)), cell(number(c.Attempts)),
			cell(s.moment(c.NextAt)), cell(text(c.ClaimedBy)), cell(text(c.LastError), ifText(c.WaitsFor, func(on string) h.Node { return small(text(" waits for " + on)) })))
	})), h.If(len(shown) < len(w.Commands), note(number(len(w.Commands)-len(shown)), text(" more are in the timeline"))))
}

// allOf leads to the list of which a page shows the first.
func allOf(says string, to h.Address) h.Node { return paragraph(h.A(to, text(says))) }

func (w whole) facts(s *shell) h.Node {
	return facts(
		fact("Status", status(w.Status), after(" at ", w.State)),
		fact("Definition", s.link("get-definition", w.Definition, s.ofVersion(w.Definition, w.Version), w.Definition+" "+w.Version)),
		factIf(w.BusinessKey != "", "Business key", text(w.BusinessKey)),
		factIf(w.ParentID != "", "Parent", s.toInstance(w.ParentID)),
		factIf(w.CorrelationID != "", "Correlation", text(w.CorrelationID)),
		fact("Started", s.moment(w.StartedAt)),
		fact("Changed", s.moment(w.UpdatedAt), text(" · version "), number(w.StateVersion)),
		factIf(!w.EndedAt.IsZero(), "Ended", s.moment(w.EndedAt)),
		factIf(w.Buffered != 0, "Kept signals", number(w.Buffered)),
		h.If(s.look("list-audit", ""), fact("Audit", h.A(s.path("audit").With("instance", w.ID), text("who has done what to it")))),
	)
}

func (w whole) error() h.Node {
	if w.Status != "faulted" || w.Error == nil {
		return nil
	}
	e := w.Error
	return h.Div(h.Class("problem"),
		paragraph(h.Strong(text(e.Title)), text(" "+e.Detail)),
		paragraph(code(e.Type), h.If(e.Status != 0, h.Group{text(" "), number(e.Status)}), text(" at "), h.A(h.Place(e.Pointer), code(e.Pointer))))
}

// next is what the instance waits for.
func (w whole) next(s *shell) h.Node {
	if !w.Open || len(w.Reasons) == 0 {
		return nil
	}
	toOpen := func(operation, definition, kind, id, says string) h.Node {
		return h.If(id != "" && s.look(operation, definition), h.Group{text(" "), h.A(s.path(kind, id), text(says))})
	}
	return titled("What must happen next", h.Ul(h.Map(w.Reasons, func(r client.Reason) h.Node {
		return h.Li(text(r.Text), ifText(r.Pointer, func(p string) h.Node { return h.Group{text(" "), small(code(p))} }),
			toOpen("get-task", w.Definition, "tasks", r.TaskID, "open the task"), toOpen("get-instance", "", "instances", r.Child, "open it"),
			toOpen("get-dead-letter", w.Definition, "dead-letters", r.DeadLetter, "open it"),
			h.If(!r.Until.IsZero(), h.Group{text(" "), s.moment(r.Until)}),
			h.If(r.RunNow != "" && s.may("operate-instance", w.Definition), h.Post(s.path("instances", w.ID, "operate"), hidden("wait", r.RunNow), hidden("version", fmt.Sprint(w.StateVersion)),
				button("Run now", h.Name("operation"), h.Value("run-now")))),
			ifText(r.Hint, func(hint string) h.Node { return h.Group{h.Br(), small(text(hint))} }))
	})))
}

// idleAfter is for how long nothing must have happened that the timeline says so.
const idleAfter = time.Minute

func (w whole) timeline(s *shell) h.Node {
	var last time.Time
	row := func(e client.Entry) h.Node {
		rested := e.At.Sub(last)
		idle := !last.IsZero() && rested >= idleAfter
		last = e.At
		return h.Group{h.If(idle, h.Tr(h.Class("idle"), cell(), cell(text(lasts(rested)+" later")), cell(), cell(), cell(), cell())), h.Tr(h.Class(e.Direction), cell(number(e.Position)), cell(s.moment(e.At)),
			cell(text(e.Type), ifText(e.Disposition, aside), ifText(e.LastError, func(err string) h.Node { return h.Group{h.Br(), small(text(err))} })),
			cell(ifText(e.Pointer, func(p string) h.Node { return h.Code(h.ID(p), text(p)) })),
			cell(text(e.Actor), ifText(e.ClaimedBy, aside)), cell(shown(text("data"), e.Data)))}
	}
	return table("#|When|What|Where|Who|Data", h.Map(w.Entries.Items, row), h.Class("timeline"))
}

// aside is a small text beside another.
func aside(s string) h.Node { return h.Group{text(" "), small(text(s))} }

func picture(p h.Node) h.Node { return h.Div(h.Class("scroll picture"), p) }

func (w whole) data() h.Node {
	at := func(what, pointer string) h.Node { return h.Group{text(what + " at "), code(pointer)} }
	return titled("Data", shown(text("context"), w.Context, h.Open()),
		h.Map(w.Branches, func(b client.Branch) h.Node {
			return h.Group{shown(at("data", b.Pointer), b.Data, h.Open()), shown(at("variables", b.Pointer), b.Variables)}
		}),
		shown(text("input"), w.Input), shown(text("output"), w.Output, h.Open()))
}

func (w whole) acts(s *shell) h.Node {
	operates, signals := s.may("operate-instance", w.Definition), s.may("signal-instance", w.Definition)
	if !w.Open || !operates && !signals {
		return nil
	}
	do := func(operation, says string, more ...h.Node) h.Node {
		return button(says, h.Group(more), h.Name("operation"), h.Value(operation))
	}
	pause := h.If(w.Status != "faulted", do("suspend", "Suspend"))
	if w.Status == "suspended" {
		pause = do("resume", "Resume")
	}
	return acts("Do",
		h.If(operates, h.Post(s.path("instances", w.ID, "operate"), hidden("version", fmt.Sprint(w.StateVersion)),
			h.If(w.Status == "faulted", h.Group{
				h.If(w.Why != nil, note(text("It compensates, and is stuck: a retry sends the compensation again, a skip takes it as done."))),
				do("retry", "Retry"),
				unfold(text("Skip the task"), jsonLabel("Its output", area("output", s.asked("output"), 3)), do("skip", "Skip")),
			}),
			pause,
			unfold(text("Cancel"), note(text("What it waits for is withdrawn, its children are cancelled, and it does not go on.")),
				do("cancel", "Cancel the instance", h.Class("danger")), text(" "),
				do("compensate", "Cancel it, and compensate what it has done", h.Class("danger"))))),
		h.If(signals, unfold(text("Signal"), h.Post(s.path("instances", w.ID, "signal"), h.Class("fields"), hidden("request", either(s.asked("request"), uuid.NewString())),
			label("Type", h.Input(h.Name("type"), h.Value(s.asked("type")), h.List("types"), h.Required())), offered("types", w.Events),
			jsonLabel("Data", area("data", s.asked("data"), 3)), button("Send")))),
		h.If(s.may("rewind-instance", ""), unfold(text("Rewind"), note(text("It goes back to the end of an earlier turn, and on from there.")), rewindForm(s, w.ID, "", false))),
	)
}
