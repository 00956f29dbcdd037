package console

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/aqueduct-engine/aqueduct/api/client"
	h "github.com/aqueduct-engine/aqueduct/console/html"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// deadList is a page of dead letters, and how many of all pages have each reason.
type deadList struct {
	Items   client.Page[client.DeadLetter]
	Reasons client.DeadLetterReasons
}

func deadLetters(v *visit) (content, error) {
	q := v.URL.Query()
	of := client.DeadLetterQuery{
		Queue: q.Get("queue"), InstanceID: q.Get("instance"), Definition: q.Get("definition"), Text: q.Get("text"), OlderThan: q.Get("older"),
	}
	var d deadList
	var err error
	if d.Reasons, err = v.api.DeadLetterReasons(v.Context(), of); err == nil {
		of.Reason, of.List = q.Get("reason"), client.List{After: q.Get("after"), Limit: pageItems}
		d.Items, err = v.api.DeadLetters(v.Context(), of)
	}
	return content{"Dead letters", true, d.body, findDeadLetters}, err
}

func (d deadList) body(s *shell) h.Node {
	list := h.If(s.problem == nil, nothing(text("No dead letter of the kind. A message becomes one when nobody can handle it.")))
	if len(d.Items.Items) > 0 {
		list = s.dead(d.Items.Items)
	}
	return h.Group{
		h.P(h.Class("filters"), s.filter("reason", "", s.q("reason") == "", text("any reason")),
			s.narrowed("text", "any text", func(t string) h.Node { return text("with the text “" + t + "”") }), s.narrowed("definition", "any definition", text),
			s.narrowed("queue", "any queue", text), s.narrowed("instance", "any instance", s.toInstance),
			s.narrowed("older", "of any age", func(d string) h.Node { return text("died longer ago than " + d) })),
		h.P(h.Class("filters"), h.Map(d.Reasons.Items, func(r client.ReasonCount) h.Node {
			return h.Group{s.filter("reason", r.Reason, s.q("reason") == r.Reason, code(r.Reason), text(" "), number(r.DeadLetters)), text(" ")}
		}), h.If(d.Reasons.More, small(text("of the newest; there are more")))),
		list, s.nextPage("Next page", d.Items.Next)}
}

func findDeadLetters(s *shell) h.Node {
	return h.Group{acts("Find", h.Find(s.path("dead-letters"), h.Class("fields"),
		s.find("Reason", "reason", "reason", "definition.unknown"), s.find("Text of the reason", "text", "text", ""),
		s.find("Definition", "definition", "definition", "namespace/name"), s.find("Instance", "instance", "instance", ""),
		s.find("Queue", "queue", "queue", "signal, schedule, command"), s.find("Died longer ago than", "older", "olderThan", "1h, 30d"), button("Find"))),
		planForm(s, "dead-letters", ofDeadLetters)}
}

func deadLetter(v *visit) (content, error) {
	var d deadPage
	var err error
	if d.DeadLetterDetail, err = v.api.DeadLetter(v.Context(), v.PathValue("id")); err == nil {
		d.foreign, err = v.foreign(d.InstanceID)
	}
	return content{"Dead letter", false, d.body, d.acts}, err
}

// foreign says that an instance, "" = none, is in none of the namespaces in which who looks may
// do something about its dead letters. Only the definition of the instance says it.
func (v *visit) foreign(instance string) (bool, error) {
	if v.rights.of["replay-dead-letter"] == nil || instance == "" {
		return v.rights.of["replay-dead-letter"] != nil, nil
	}
	i, err := v.api.Instance(v.Context(), instance)
	if err != nil && tell(err).Kind == problem.NotFound {
		return true, nil
	}
	return !v.rights.look("replay-dead-letter", i.Definition), err
}

// deadPage is what is known of one dead letter; nothing, of one that could not be
// read.
type deadPage struct {
	client.DeadLetterDetail
	foreign bool
}

func (d deadPage) body(s *shell) h.Node {
	if d.ID == "" {
		return nil
	}
	sent := d.Text
	if sent == "" {
		sent = fmt.Sprintf("%d bytes that are no text", len(d.Envelope))
	}
	return h.Group{
		facts(
			fact("Reason", code(d.Reason), text(" "+d.Detail)),
			factIf(d.InstanceID != "", "Instance", s.toInstance(d.InstanceID)),
			fact("Queue", text(d.Queue)), fact("Attempts", number(d.Attempts)), fact("Node", text(d.Node)),
			fact("Sent", s.moment(d.EnqueuedAt)), fact("Dead since", s.moment(d.DiedAt))),
		titled("What was sent", source(sent)),
		d.command(s),
		d.edited(s),
	}
}

// command is what is known of the command that a letter is about.
func (d deadPage) command(s *shell) h.Node {
	c := d.Command
	if c == nil {
		return nil
	}
	return titled("The command that it is about", facts(
		fact("Of", s.toInstance(c.InstanceID), text(" at "), number(int(c.Position))), fact("State", status(c.State)), fact("Target", code(c.Target)),
		factIf(c.Pointer != "", "Task", code(c.Pointer)), factIf(c.Key != "", "Key", code(c.Key)), factIf(c.Outcome != "", "Outcome", text(c.Outcome)),
		fact("Attempts", number(c.Attempts)), factIf(c.LastError != "", "Last error", text(c.LastError))), source(string(c.Input)))
}

// edited is what is sent instead.
func (d deadPage) edited(s *shell) h.Node {
	e := d.Edit
	if e == nil {
		return nil
	}
	return titled("What a replay sends", paragraph(text("Edit "), number(int(e.No)), text(", "+e.What), after(", by ", e.By), text(", "), s.moment(e.At), after(": ", e.Reason)),
		h.If(e.What != "original", h.Group{source(e.Text), d.differs(e.Text)}))
}

// differs is what an edit has changed, where it is JSON.
func (d deadPage) differs(now string) h.Node {
	old, differences := d.Text, client.EnvelopeDifferences
	if d.Edit.What != "envelope" && d.Command != nil {
		old, differences = string(d.Command.Input), client.Differences
	}
	if !json.Valid([]byte(old)) || !json.Valid([]byte(now)) {
		return nil
	}
	return h.Group{paragraph(text("What it changes:")), h.Pre(text(either(strings.Join(differences(json.RawMessage(old), json.RawMessage(now)), "\n"), "nothing")))}
}

func (d deadPage) acts(s *shell) h.Node {
	if d.ID == "" || d.foreign || !s.may("replay-dead-letter", "") {
		return nil
	}
	at, seen, now := s.path("dead-letters", d.ID), "0", d.Text
	if d.Command != nil {
		now = string(d.Command.Input)
	}
	if e := d.Edit; e != nil {
		seen = fmt.Sprint(e.No)
		if e.What != "original" {
			now = e.Text
		}
	}
	if s.asked("body") != "" { // what was refused
		now = s.asked("body")
	}
	why := func() h.Node { return label("Why", input("why", s.asked("why"))) }
	to := func(action string) h.Address { return at.Below(action).Asking(s.query) } // the list, as it was filtered
	return acts("Do", h.Post(to("replay"), hidden("after", seen), button("Send it to its queue again")),
		h.If(s.may("edit-dead-letter", ""), h.Post(to("edit"), hidden("after", seen), h.If(d.Command != nil, hidden("input", "yes")), label("Sent instead", area("body", now, 8)), why(),
			h.If(d.Command != nil, check("It may be done beside the former: under a new key", h.Name("key"), h.Value("new"), h.If(s.asked("key") != "", h.Checked()))),
			button("Edit"), button("Undo the edits", h.Name("original"), h.Value("yes")))),
		h.Post(to("discard"), hidden("after", seen), why(), check("I am sure: it is gone for good", h.Name("sure"), h.Value("yes")), button("Discard", h.Class("danger"))))
}

func replay(v *visit) (string, h.Address, error) {
	seen, err := strconv.ParseInt(v.PostForm.Get("after"), 10, 64)
	if err != nil {
		return "", h.Address{}, problem.New(problem.Invalid, "console.form", "the form does not say which edit it has seen")
	}
	r, err := v.api.ReplayAfter(v.Context(), v.PathValue("id"), seen)
	says := "It was sent to its queue again."
	if r.Edit > 0 {
		says = fmt.Sprintf("It was sent to its queue again, as edit %d has it.", r.Edit)
	}
	return says, v.path("dead-letters").Asking(v.URL.Query()), err
}

func editDeadLetter(v *visit) (string, h.Address, error) {
	at := v.path("dead-letters", v.PathValue("id")).Asking(v.URL.Query())
	seen, err := strconv.ParseInt(v.PostForm.Get("after"), 10, 64)
	if err != nil {
		return "", at, problem.New(problem.Invalid, "console.form", "the form does not say which edit it has seen")
	}
	r := client.EditDeadLetterRequest{After: seen, Original: v.PostForm.Get("original") != ""}
	if !r.Original {
		body, err := data(v.PostForm.Get("body"), "what is sent instead")
		if err != nil {
			return "", at, err
		}
		if r.Key = v.PostForm.Get("key"); v.PostForm.Get("input") != "" {
			r.Input = body
		} else {
			r.Envelope = body
		}
	}
	v.api.Reason = v.why()
	e, err := v.api.EditDeadLetter(v.Context(), v.PathValue("id"), r)
	return fmt.Sprintf("It is edit %d now.", e.No), at, err
}

// why is the reason that somebody has written; blanks alone are none.
func (v *visit) why() string {
	if why := v.PostForm.Get("why"); strings.TrimSpace(why) != "" {
		return why
	}
	return ""
}

func discard(v *visit) (string, h.Address, error) {
	if v.PostForm.Get("sure") == "" {
		return "", h.Address{}, problem.New(problem.Invalid, "console.sure", "a dead letter that is discarded is gone for good").WithHint("say that you are sure")
	}
	v.api.Reason = v.why()
	seen, err := strconv.ParseInt(v.PostForm.Get("after"), 10, 64)
	if err != nil {
		return "", h.Address{}, problem.New(problem.Invalid, "console.form", "the form does not say which edit it has seen")
	}
	err = v.api.DiscardAfter(v.Context(), v.PathValue("id"), seen)
	return "It was discarded.", v.path("dead-letters").Asking(v.URL.Query()), err
}

func schedules(v *visit) (content, error) {
	q := v.URL.Query()
	p, err := v.api.Schedules(v.Context(), q.Get("definition"), client.List{After: q.Get("after"), Limit: pageItems})
	return content{"Schedules", true, func(s *shell) h.Node { return s.schedules(p) }, nil}, err
}

func (s *shell) schedules(p client.Page[client.Schedule]) h.Node {
	list := nothing(text("No schedule. A definition has one when it says "), code("schedule:"), text("."))
	if len(p.Items) > 0 {
		list = table("Definition|Kind|Status|Next|Ticks|Missed|Kept by", h.Map(p.Items, func(i client.Schedule) h.Node {
			return h.Tr(cell(s.version(i.Definition, i.Version)), cell(text(i.Kind)), cell(status(i.Status)), cell(s.moment(i.Next)),
				cell(number(i.Ticks)), cell(number(i.Missed)), cell(s.toInstance(i.InstanceID)))
		}))
	}
	return h.Group{list, s.nextPage("Next page", p.Next)}
}
