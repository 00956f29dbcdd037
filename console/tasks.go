package console

import (
	"strings"

	"github.com/aqueduct-engine/aqueduct/api/client"
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
	return content{"tasks", "Tasks", true, box}, err
}

// work is one task, with the form that its answer is given in.
type work struct {
	client.TaskDetail
	Fields  []field
	Free    bool // any JSON is an answer
	Data    string
	Outcome string
	Open    bool
	Held    bool // by the person
}

func task(v *visit) (content, error) {
	t, err := v.api.Task(v.Context(), v.PathValue("id"))
	if err != nil {
		return content{}, err
	}
	w := work{TaskDetail: t, Outcome: v.form.Get("outcome"), Data: v.form.Get("data")}
	w.Open = t.Status == "ready" || t.Status == "reserved"
	w.Held = t.Status == "reserved" && t.Assignee == v.who.User && v.who.User != ""
	w.Fields, w.Free = formOf(t.Form, v.form)
	title := t.Title
	if title == "" {
		title = t.Name
	}
	return content{"task", title, false, w}, nil
}

func claimNext(v *visit) (string, string, error) {
	p, err := v.api.ClaimNext(v.Context(), client.ClaimNextRequest{User: v.who.User, Groups: v.who.Groups})
	if err != nil {
		return "", "", err
	}
	if len(p.Items) == 0 {
		return "There is nothing to claim for you now.", v.path("tasks"), nil
	}
	return "It is yours.", v.path("tasks", p.Items[0].ID), nil
}

func claim(v *visit) (string, string, error) {
	_, err := v.api.Claim(v.Context(), v.PathValue("id"), client.ClaimRequest{User: v.who.User, Groups: v.who.Groups})
	return "It is yours.", "", err
}

func release(v *visit) (string, string, error) {
	_, err := v.api.Release(v.Context(), v.PathValue("id"), client.ReleaseRequest{User: v.who.User})
	return "It was given back.", "", err
}

func delegate(v *visit) (string, string, error) {
	to := strings.TrimSpace(v.PostForm.Get("to"))
	_, err := v.api.Delegate(v.Context(), v.PathValue("id"), client.DelegateRequest{User: v.who.User, To: to})
	return to + " has it now.", "", err
}

func reassign(v *visit) (string, string, error) {
	to := strings.TrimSpace(v.PostForm.Get("to"))
	_, err := v.api.Reassign(v.Context(), v.PathValue("id"), client.ReassignRequest{User: v.who.User, To: to})
	if to == "" {
		to = "Nobody"
	}
	return to + " has it now.", "", err
}

func complete(v *visit) (string, string, error) {
	t, err := v.api.Task(v.Context(), v.PathValue("id"))
	if err != nil {
		return "", "", err
	}
	answer, err := answerOf(t.Form, v.PostForm)
	if err != nil {
		return "", "", err
	}
	_, err = v.api.Complete(v.Context(), t.ID, client.CompleteRequest{
		User: v.who.User, Groups: v.who.Groups, Outcome: v.PostForm.Get("outcome"), Data: answer,
	})
	return "It is done.", "", err
}
