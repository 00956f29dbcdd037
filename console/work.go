package console

import (
	"strings"

	"github.com/aqueduct-engine/aqueduct/api/client"
	h "github.com/aqueduct-engine/aqueduct/console/html"
)

// The page of one task.

func (w work) body(s *shell) h.Node {
	names := func(title string, of []string) h.Node {
		return factIf(len(of) > 0, title, text(strings.Join(of, ", ")))
	}
	return h.Group{
		facts(
			fact("Status", status(w.Status), after(" by ", w.Assignee), after(" as ", w.AssignedAs)),
			fact("Instance", named(s, w.Definition, w.InstanceID, w.InstanceID), after(" · ", w.BusinessKey)),
			fact("Definition", text(w.Definition)),
			names("Groups", w.CandidateGroups), names("Users", w.CandidateUsers), names("Not", w.ExcludedUsers),
			fact("Since", s.moment(w.CreatedAt)),
			factIf(!w.DueAt.IsZero(), "Due", s.moment(w.DueAt),
				h.If(!w.EscalatedAt.IsZero(), h.Group{text(", escalated "), s.moment(w.EscalatedAt), text(" to " + strings.Join(w.EscalateTo, ", "))})),
			factIf(!w.EndedAt.IsZero(), "Ended", s.moment(w.EndedAt), after(" by ", w.CompletedBy), after(": ", w.Outcome)),
		),
		h.If(len(w.Payload) > 0, titled("What it is about", source(w.Payload))),
		h.If(len(w.Output) > 0, titled("Answer", source(w.Output))),
		titled("History", h.Ol(h.Class("history"), h.Map(w.Events, func(e client.TaskEvent) h.Node {
			return h.Li(text(e.Event), after(" by ", e.Actor), text(" "), s.moment(e.At), said(e))
		}))),
	}
}

// said is what an event of a task says beside who and when.
func said(e client.TaskEvent) h.Node {
	if comment := e.Said(); comment != "" {
		return h.P(h.Class("comment"), text(comment))
	}
	return h.If(len(e.Data) > 0, h.Group{text(" "), code(pretty(e.Data))})
}

func (w work) acts(s *shell) h.Node {
	switch {
	case !w.Open || !s.may("claim-task", w.Definition) && !s.may("reassign-task", w.Definition) && !s.may("comment-task", w.Definition):
		return nil
	case s.who.User == "":
		return acts("Do it", nothing(text("Say who you are, above, to work on tasks.")))
	}
	at := s.path("tasks", w.ID)
	held := w.Held && s.may("complete-task", w.Definition)
	return acts("Do it",
		h.If(w.Status == "ready" && s.may("claim-task", w.Definition), h.Post(at.Below("claim"), button("Claim"))),
		h.If(held, h.Group{
			w.answer(at),
			unfold(text("Give it away"),
				h.Post(at.Below("release"), button("Give it back")),
				h.Post(at.Below("delegate"), label("To", h.Input(h.Name("to"), h.Value(s.asked("to")), h.Required())), button("Delegate"))),
		}),
		h.If(!held && s.may("reassign-task", w.Definition), unfold(text("Reassign"),
			h.Post(at.Below("reassign"), label("To", h.Input(h.Name("to"), h.Value(s.asked("to")), h.Placeholder("nobody: its candidates"))), button("Reassign")))),
		h.If(s.may("comment-task", w.Definition), h.Post(at.Below("comment"), label("Comment", area("comment", w.Comment, 2, h.Required())), button("Comment"))),
	)
}

// answer is the form by which the task is completed.
func (w work) answer(at h.Address) h.Node {
	outcomes := h.Node(h.Map(w.Outcomes, func(o string) h.Node { return button(o, h.Name("outcome"), h.Value(o)) }))
	if len(w.Outcomes) == 0 {
		outcomes = h.Group{label("Outcome", input("outcome", w.Chosen)), button("Complete")}
	}
	return h.Post(at.Below("complete"), h.Class("fields"),
		h.Map(w.Fields, field.shown),
		h.If(w.Free, jsonLabel("Answer", area("data", w.Data, 4))),
		h.Div(h.Class("buttons"), outcomes))
}

// shown is the field, with what is said of it.
func (f field) shown() h.Node {
	return h.Group{f.filled(), ifText(f.Note, func(s string) h.Node { return note(text(s)) })}
}

// filled is the field as it is written into.
func (f field) filled() h.Node {
	name, title := "field."+f.Name, f.Title
	if f.Required {
		title += " *"
	}
	switch f.Kind {
	case "check":
		return check(f.Title, h.Name(name), h.Value("true"), h.If(f.Value == "true", h.Checked()))
	case "choice":
		return label(title, h.Select(h.Name(name), h.Option(h.Value("")), h.Map(f.Choices, func(c string) h.Node {
			return h.Option(h.Value(c), h.If(c == f.Value, h.Selected()), text(c))
		})))
	case "lines":
		return label(title, area(name, f.Value, 4))
	case "json":
		return label(title, small(text("JSON")), area(name, f.Value, 3))
	}
	return label(title, input(name, f.Value, h.If(f.Kind == "date", h.Type("date")), h.If(f.Kind == "number", h.InputMode("decimal"))))
}
