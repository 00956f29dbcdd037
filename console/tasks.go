package console

import (
	"strings"

	"github.com/aqueduct-engine/aqueduct/api/client"
	h "github.com/aqueduct-engine/aqueduct/console/html"
)

// inbox is a list of tasks, as one person sees it.
type inbox struct {
	Tasks  client.Page[client.Task]
	Mine   bool // assigned to the person, or theirs to claim
	Status string
}

func tasks(v *visit) (content, error) {
	q := v.URL.Query()
	box := inbox{Mine: q.Get("all") == "" && v.who.User != "", Status: q.Get("status")}
	query := client.TaskQuery{Status: box.Status, InstanceID: q.Get("instance"), List: client.List{After: q.Get("after"), Limit: pageItems}}
	if box.Mine {
		query.User, query.Groups = v.who.User, v.who.Groups
	}
	var err error
	box.Tasks, err = v.api.Tasks(v.Context(), query)
	return content{"Tasks", true, box.body, box.acts}, err
}

func (b inbox) body(s *shell) h.Node {
	whose := h.Group{s.filter("all", "", b.Mine, text("mine")), text("\n"), s.filter("all", "1", !b.Mine, text("everybody’s")), text(" · ")}
	of := func(status, says string) h.Node { return s.filter("status", status, b.Status == status, text(says)) }
	none := nothing(text("No such task."))
	if b.Mine {
		none = nothing(text("Nothing for "+s.who.User), after(" or ", strings.Join(s.who.Groups, ", ")), text(" now. Groups are said beside your name, above."))
	}
	list := h.If(s.problem == nil, none) // else it is not known
	if len(b.Tasks.Items) > 0 {
		list = s.tasks(b.Tasks.Items)
	}
	return h.Group{
		h.P(h.Class("filters"), h.If(s.who.User != "", whose), of("", "open"), text("\n"), of("completed", "completed"), text("\n"), of("all", "all")),
		list, s.nextPage("Next page", b.Tasks.Next),
	}
}

func (b inbox) acts(s *shell) h.Node {
	if !s.may("claim-next-tasks", "") || s.who.User == "" {
		return nil
	}
	return h.Post(s.path("tasks", "claim-next"), button("Claim the next task", h.AccessKey("n")))
}

// work is one task, with the form that its answer is given in.
type work struct {
	client.TaskDetail
	Fields  []field
	Free    bool // any JSON is an answer
	Data    string
	Chosen  string // outcome that was refused
	Comment string // that was refused
	Open    bool
	Held    bool // by the person
}

func task(v *visit) (content, error) {
	t, err := v.api.Task(v.Context(), v.PathValue("id"))
	if err != nil {
		return content{}, err
	}
	w := work{TaskDetail: t, Chosen: v.form.Get("outcome"), Data: v.form.Get("data"), Comment: v.form.Get("comment")}
	w.Open = t.Status == "ready" || t.Status == "reserved"
	w.Held = t.Status == "reserved" && t.Assignee == v.who.User && v.who.User != ""
	w.Fields, w.Free = formOf(t.Form, v.form)
	return content{either(t.Title, t.Name), false, w.body, w.acts}, nil
}

func claimNext(v *visit) (string, h.Address, error) {
	p, err := v.api.ClaimNext(v.Context(), client.ClaimNextRequest{User: v.who.User, Groups: v.who.Groups})
	if err != nil {
		return "", h.Address{}, err
	}
	if len(p.Items) == 0 {
		return "There is nothing to claim for you now.", v.path("tasks"), nil
	}
	return "It is yours.", v.path("tasks", p.Items[0].ID), nil
}

func claim(v *visit) (string, h.Address, error) {
	_, err := v.api.Claim(v.Context(), v.PathValue("id"), client.ClaimRequest{User: v.who.User, Groups: v.who.Groups})
	return "It is yours.", h.Address{}, err
}

// handedOn is where one goes who has given a task to somebody: to the others, when they do not see it any more.
func handedOn(v *visit, err error) (h.Address, error) {
	if err != nil {
		return h.Address{}, err
	}
	if _, unseen := v.api.Task(v.Context(), v.PathValue("id")); unseen != nil {
		return v.path("tasks"), nil
	}
	return h.Address{}, nil
}

func release(v *visit) (string, h.Address, error) {
	_, err := v.api.Release(v.Context(), v.PathValue("id"), client.ReleaseRequest{User: v.who.User})
	next, err := handedOn(v, err)
	return "It was given back.", next, err
}

func comment(v *visit) (string, h.Address, error) {
	_, err := v.api.Comment(v.Context(), v.PathValue("id"), client.CommentRequest{User: v.who.User, Text: lines(v.PostForm.Get("comment"))})
	return "It stands in the history.", h.Address{}, err
}

func delegate(v *visit) (string, h.Address, error) {
	to := strings.TrimSpace(v.PostForm.Get("to"))
	_, err := v.api.Delegate(v.Context(), v.PathValue("id"), client.DelegateRequest{User: v.who.User, To: to})
	next, err := handedOn(v, err)
	return to + " has it now.", next, err
}

func reassign(v *visit) (string, h.Address, error) {
	to := strings.TrimSpace(v.PostForm.Get("to"))
	_, err := v.api.Reassign(v.Context(), v.PathValue("id"), client.ReassignRequest{User: v.who.User, To: to})
	if to == "" {
		to = "Nobody"
	}
	next, err := handedOn(v, err)
	return to + " has it now.", next, err
}

func complete(v *visit) (string, h.Address, error) {
	t, err := v.api.Task(v.Context(), v.PathValue("id"))
	if err != nil {
		return "", h.Address{}, err
	}
	answer, err := answerOf(t.Form, v.PostForm, "the answer")
	if err != nil {
		return "", h.Address{}, err
	}
	_, err = v.api.Complete(v.Context(), t.ID, client.CompleteRequest{
		User: v.who.User, Groups: v.who.Groups, Outcome: v.PostForm.Get("outcome"), Data: answer,
	})
	return "It is done.", h.Address{}, err
}
