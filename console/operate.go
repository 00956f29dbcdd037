package console

import (
	"strings"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// letters is a list of dead letters, and how many of a page have each reason.
type deadList struct {
	Items   client.Page[client.DeadLetter]
	Reasons []counted
}

// counted is a text with how often it stands on a page.
type counted struct {
	Text  string
	Count int
}

func deadLetters(v *visit) (content, error) {
	q := v.URL.Query()
	p, err := v.api.DeadLetters(v.Context(), client.DeadLetterQuery{
		Queue: q.Get("queue"), Reason: q.Get("reason"), InstanceID: q.Get("instance"), List: client.List{After: q.Get("after"), Limit: pageItems},
	})
	d := deadList{Items: p}
	at := map[string]int{}
	for _, l := range p.Items {
		i, ok := at[l.Reason]
		if !ok {
			i = len(d.Reasons)
			at[l.Reason] = i
			d.Reasons = append(d.Reasons, counted{Text: l.Reason})
		}
		d.Reasons[i].Count++
	}
	return content{"dead-letters", "Dead letters", true, d}, err
}

func deadLetter(v *visit) (content, error) {
	l, err := v.api.DeadLetter(v.Context(), v.PathValue("id"))
	return content{"dead-letter", "Dead letter", false, l}, err
}

func replay(v *visit) (string, string, error) {
	err := v.api.Replay(v.Context(), v.PathValue("id"))
	return "It was sent to its queue again.", v.path("dead-letters"), err
}

func discard(v *visit) (string, string, error) {
	if v.PostForm.Get("sure") == "" {
		return "", "", problem.New(problem.Invalid, "console.sure", "a dead letter that is discarded is gone for good").WithHint("say that you are sure")
	}
	err := v.api.Discard(v.Context(), v.PathValue("id"))
	return "It was discarded.", v.path("dead-letters"), err
}

func schedules(v *visit) (content, error) {
	q := v.URL.Query()
	p, err := v.api.Schedules(v.Context(), q.Get("definition"), client.List{After: q.Get("after"), Limit: pageItems})
	return content{"schedules", "Schedules", true, p}, err
}

// traffic is what waits, and where commands go.
type traffic struct {
	Queues  []client.Queue
	Targets []client.Target
}

func queues(v *visit) (content, error) {
	var t traffic
	var err error
	if t.Queues, err = v.api.Queues(v.Context()); err == nil {
		t.Targets, err = v.api.Targets(v.Context())
	}
	return content{"queues", "Queues and targets", true, t}, err
}

func resetTarget(v *visit) (string, string, error) {
	err := v.api.ResetTarget(v.Context(), v.PostForm.Get("target"))
	return "The circuit breaker is closed on this node.", "", err
}

// entityPage is what a lifecycle says of one reference.
type entityPage struct {
	Name, Reference string
	*client.Lifecycle
}

func entity(v *visit) (content, error) {
	e := entityPage{Name: v.PathValue("namespace") + "/" + v.PathValue("name"), Reference: v.URL.Query().Get("reference")}
	if v.form != nil {
		e.Reference = v.form.Get("reference")
	}
	c := content{"entity", e.Name, false, e}
	if e.Reference == "" {
		return c, nil
	}
	l, err := v.api.Lifecycle(v.Context(), e.Name, e.Reference)
	if err != nil && tell(err).Kind == problem.NotFound {
		return c, nil // a first event begins it
	}
	e.Lifecycle, c.data = &l, e
	if err == nil {
		c.data = e
	}
	return c, err
}

func trigger(v *visit) (string, string, error) {
	name, reference := v.PathValue("namespace")+"/"+v.PathValue("name"), strings.TrimSpace(v.PostForm.Get("reference"))
	payload, err := data(v.PostForm.Get("payload"), "the payload")
	if err != nil {
		return "", "", err
	}
	t, err := v.api.Trigger(v.Context(), name, reference, client.TriggerRequest{
		Event: strings.TrimSpace(v.PostForm.Get("event")), RequestID: v.PostForm.Get("request"), Actor: v.who.User, Payload: payload,
	})
	return "It was " + t.Disposition + "; the state is " + t.State + ".", v.path("instances", t.InstanceID), err
}
