package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/signal"
)

// page is what a run of the program prints on.
type page struct {
	out  io.Writer
	now  func() time.Time
	wide bool // more columns, nothing cut
}

// print writes a document as JSON.
func (p *page) print(v any) error {
	enc := json.NewEncoder(p.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// orPrint returns err, or prints v.
//
//go:noinline
func (p *page) orPrint(v any, err error) error {
	if err != nil {
		return err
	}
	return p.print(v)
}

// ago says a moment relative to now: "3 min ago", "in 2 d", "" for none.
func (p *page) ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	d := p.now().Sub(t)
	if d < 0 {
		return "in " + span(-d)
	}
	return span(d) + " ago"
}

// span says a duration in the unit that suits it.
func span(d time.Duration) string {
	in := func(unit time.Duration, name string) string { return fmt.Sprintf("%d %s", d.Round(unit)/unit, name) }
	switch {
	case d < 2*time.Minute:
		return in(time.Second, "s")
	case d < 2*time.Hour:
		return in(time.Minute, "min")
	case d < 48*time.Hour:
		return in(time.Hour, "h")
	}
	return in(24*time.Hour, "d")
}

// moment is a time with its distance from now.
func (p *page) moment(t time.Time) string {
	return fmt.Sprintf("%s (%s)", t.UTC().Format("2006-01-02 15:04:05Z"), p.ago(t))
}

// momentOrNone is "" for no time.
func (p *page) momentOrNone(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return p.moment(t)
}

// table prints aligned columns; a cell keeps to one line.
type table struct {
	p       *page
	w       *tabwriter.Writer
	b       bytes.Buffer
	columns int // of a row that are printed
}

func (p *page) table(titles ...string) *table {
	t := &table{p: p, columns: len(titles)}
	t.w = tabwriter.NewWriter(&t.b, 0, 0, 2, ' ', 0)
	t.row(titles...)
	return t
}

// tableAndMore has columns that are printed only where more of them are asked for.
func (p *page) tableAndMore(more []string, titles ...string) *table {
	if p.wide {
		return p.table(append(titles, more...)...)
	}
	return p.table(titles...)
}

func (t *table) row(cells ...string) {
	cells = cells[:min(t.columns, len(cells))]
	for i, c := range cells {
		cells[i] = oneLine(c)
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

// end writes the table, or says that there is nothing.
func (t *table) end(rows int, next, nothing string) error {
	if rows == 0 {
		_, err := fmt.Fprintln(t.p.out, nothing)
		return err
	}
	if err := t.w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(t.b.String()) {
		fmt.Fprintln(t.p.out, strings.TrimRight(line, " \n"))
	}
	if next != "" {
		fmt.Fprintf(t.p.out, "more: --after %s\n", next)
	}
	return nil
}

// fields prints names and values, aligned, without the empty ones.
func (p *page) fields(pairs ...string) {
	width := 0
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			width = max(width, len(pairs[i]))
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		if !json.Valid([]byte(pairs[i+1])) { // what is set out in lines is JSON
			pairs[i+1] = oneLine(pairs[i+1])
		}
		if pairs[i+1] != "" {
			fmt.Fprintf(p.out, "%-*s  %s\n", width, pairs[i], pairs[i+1])
		}
	}
}

// pretty is JSON, on one line when it is short.
func pretty(raw json.RawMessage, indent string) string {
	const short = 100
	var b bytes.Buffer
	if len(raw) == 0 {
		return ""
	}
	if len(raw) <= short && json.Compact(&b, raw) == nil {
		return b.String()
	}
	b.Reset()
	if json.Indent(&b, raw, indent, "  ") != nil {
		return oneLine(string(raw))
	}
	return b.String()
}

func (p *page) showInstance(i client.InstanceDetail) error {
	status := i.Status
	if i.State != "" {
		status += " at " + i.State
	}
	const indent = "             "
	others := p.others(&i.Instance, "ID", "Definition", "Version", "BusinessKey", "Status", "State", "ParentID", "CorrelationID", "StartedAt", "UpdatedAt", "EndedAt")
	p.fields(slices.Concat([]string{"instance", i.ID, "definition", i.Definition + "@" + i.Version, "status", status, "key", i.BusinessKey}, others, []string{
		"parent", i.ParentID, "correlation", i.CorrelationID, "started", p.moment(i.StartedAt), "updated", p.moment(i.UpdatedAt),
		"ended", p.momentOrNone(i.EndedAt), "error", failureText(i.Error), "input", pretty(i.Input, indent), "output", pretty(i.Output, indent), "context", pretty(i.Context, indent),
		"found by", pretty(i.Attributes, indent),
	})...)
	if err := p.showBranches(i.Branches); err != nil {
		return err
	}
	if len(i.Waits) > 0 {
		fmt.Fprintln(p.out, "\nwaits for")
		t := p.table("  KIND", "DUE", "AT", "FOR")
		for _, w := range i.Waits {
			what := w.Event + string(w.Key)
			if w.TaskID != "" {
				what = "task " + w.TaskID
			}
			if w.Child != "" {
				what = "instance " + w.Child
			}
			if r := w.Retry; r != nil && r.Error != nil {
				what = strings.TrimSpace(fmt.Sprintf("retry %d after %s %s", r.Attempt, or(r.Error.Title, r.Error.Type), r.Error.Detail))
			}
			t.row("  "+w.Kind, p.ago(w.Until), w.Pointer, what)
		}
		if err := t.end(len(i.Waits), "", ""); err != nil {
			return err
		}
	}
	if err := p.showReversals(&i); err != nil {
		return err
	}
	if err := p.showGaps(i.Gaps); err != nil || len(i.Commands) == 0 {
		return err
	}
	fmt.Fprintln(p.out, "\ncommands not done yet")
	t := p.table("  POSITION", "TARGET", "ATTEMPTS", "DELIVERED", "NEXT", "CLAIMED BY", "WAITS FOR", "LAST ERROR")
	for _, c := range i.Commands {
		delivered := p.ago(c.DeliveredAt)
		if c.Deliveries > 1 {
			delivered = strings.TrimSpace(fmt.Sprintf("%d times %s", c.Deliveries, delivered))
		}
		t.row("  "+fmt.Sprint(c.Position), c.Target, fmt.Sprint(c.Attempts), delivered, p.ago(c.NextAt), c.ClaimedBy, c.WaitsFor, c.LastError)
	}
	if err := t.end(len(i.Commands), "", ""); err != nil {
		return err
	}
	for _, c := range i.Commands {
		said := "none yet"
		if c.Outcome != "" {
			said = c.Outcome
		}
		if c.Await != "" {
			said += ", " + c.Await + " of several is enough"
		}
		fmt.Fprintf(p.out, "  %d: key %s, %d attempts, outcome %s\n", c.Position, c.Key, c.Attempts, said)
	}
	return nil
}

// failureText is an error of an instance on one line; "" for none.
func failureText(e *client.InstanceError) string {
	if e == nil {
		return ""
	}
	return oneLine(strings.Trim(e.Title+": "+e.Detail, ": ") + " (" + e.Type + ", at " + e.Pointer + ")")
}

// showBranches says what each line of execution knows now.
func (p *page) showBranches(branches []client.Branch) error {
	if len(branches) == 0 {
		return nil
	}
	fmt.Fprintln(p.out, "\nknows now")
	t := p.table("  LINE", "AT", "DATA", "VARIABLES")
	for _, b := range branches {
		t.row("  "+fmt.Sprint(b.ID), b.Pointer, p.cut(string(b.Data)), p.cut(string(b.Variables)))
	}
	return t.end(len(branches), "", "")
}

// showReversals says what undoes what an instance has done, the next first.
func (p *page) showReversals(i *client.InstanceDetail) error {
	if len(i.Reversals) == 0 {
		return nil
	}
	title := "is compensated by, the last first"
	if e := i.Why; e != nil {
		title = "compensates because of " + oneLine(strings.Trim(e.Title+": "+e.Detail, ": ")+" ("+e.Type+")")
	}
	fmt.Fprintln(p.out, "\n"+title)
	t := p.table("  STEP", "BY", "WITH", "DONE", "KEY")
	for _, r := range i.Reversals {
		done := "yes"
		if r.Open {
			done = "unknown"
		}
		t.row("  "+r.Pointer, r.Target, p.cut(string(r.Input)), done, r.Key)
	}
	return t.end(len(i.Reversals), "", "")
}

// showGaps says which signals of which senders are missing.
func (p *page) showGaps(gaps []client.Gap) error {
	if len(gaps) == 0 {
		return nil
	}
	fmt.Fprintln(p.out, "\nsignals that are missing")
	t := p.table("  SENDER", "SEQUENCE", "WAITING BEHIND IT")
	for _, g := range gaps {
		t.row("  "+g.Sender, fmt.Sprint(g.Sequence), fmt.Sprint(g.Waiting))
	}
	return t.end(len(gaps), "", "")
}

// maxCell bounds the data of one line of a timeline, in characters.
const maxCell = 100

func (p *page) showTimeline(entries []client.Entry) error {
	t := p.table("#", "TIME", "", "WHAT", "AT", "WHO", "DATA")
	for i, e := range entries {
		at := e.At.Format("15:04:05.000")
		if i == 0 || e.At.Sub(entries[i-1].At) >= 24*time.Hour {
			at = e.At.Format("2006-01-02 15:04:05.000")
		}
		arrow := "<-"
		if e.Direction == "out" {
			arrow = "->"
		}
		what := e.Type
		if e.Name != "" && !strings.HasSuffix(e.Pointer, "/"+e.Name) {
			what += " " + e.Name
		}
		if e.Disposition != "" {
			what += " (" + e.Disposition + ")"
		}
		if e.Processed != nil {
			what += progress(e)
		}
		if e.Outcome == "unknown" {
			what += fmt.Sprintf(" (key %s, %d attempts, outcome unknown)", e.Key, e.Attempts)
		}
		if e.Kind == "event" && e.Attempts > 0 {
			what += fmt.Sprintf(" (and %d times again)", e.Attempts)
		}
		if e.Answers != 0 {
			what += fmt.Sprintf(" of #%d", e.Answers)
		}
		t.row(fmt.Sprint(e.Position), at, arrow, what, e.Pointer, e.Actor, p.cut(string(e.Data)))
	}
	return t.end(len(entries), "", "no message")
}

// progress is how far a command has come, with the notice of a repetition.
func progress(e client.Entry) string {
	notice := ""
	if name, _, _ := strings.Cut(e.LastError, ":"); strings.HasPrefix(name, "Ack") {
		notice = ", " + name
	}
	delivered := "delivered"
	if e.Deliveries > 1 {
		delivered = fmt.Sprintf("delivered %d times", e.Deliveries)
	}
	switch {
	case e.State == "given-up":
		return " (given up: " + oneLine(strings.TrimPrefix(e.LastError, "AckGivenUp: ")) + ")"
	case e.State == "discarded":
		return " (discarded, not processed)"
	case *e.Processed && !e.DeliveredAt.IsZero():
		return " (" + delivered + ", processed)"
	case *e.Processed:
		return ""
	case !e.DeliveredAt.IsZero():
		return " (" + delivered + ", not processed" + notice + ")"
	}
	return " (not done" + notice + ")"
}

func (p *page) cut(s string) string {
	if p.wide {
		return s
	}
	if r := []rune(s); len(r) > maxCell {
		return string(r[:maxCell]) + "…"
	}
	return s
}

func (p *page) showTask(t client.TaskDetail) error {
	const indent = "                  "
	others := p.others(&t.Task, "ID", "Name", "Title", "Status", "Assignee", "InstanceID", "Definition", "BusinessKey", "CreatedAt", "DueAt", "EndedAt", "CompletedBy", "Outcome")
	p.fields(slices.Concat([]string{"task", t.ID, "title", oneLine(taskTitle(t.Task)), "status", t.Status, "assignee", t.Assignee}, others, []string{
		"instance", t.InstanceID, "definition", t.Definition, "key", t.BusinessKey, "created", p.moment(t.CreatedAt),
		"due", p.momentOrNone(t.DueAt), "ended", p.momentOrNone(t.EndedAt), "completed by", t.CompletedBy, "outcome", t.Outcome,
		"payload", pretty(t.Payload, indent), "form", pretty(t.Form, indent), "output", pretty(t.Output, indent),
	})...)
	fmt.Fprintln(p.out)
	events := p.table("TIME", "EVENT", "WHO", "SAID")
	for _, e := range t.Events {
		events.row(e.At.Format("2006-01-02 15:04:05.000"), e.Event, e.Actor, p.cut(oneLine(e.Said())))
	}
	return events.end(len(t.Events), "", "no event")
}

func (p *page) showDeadLetter(d client.DeadLetterDetail) error {
	const indent = "             "
	text := oneLine(d.Text)
	if d.Text == "" {
		text = fmt.Sprintf("%d bytes that are not UTF-8, in base64 with --json: %s", len(d.Envelope), bytesText(d.Envelope))
	}
	p.fields("dead letter", d.ID, "queue", d.Queue, "instance", d.InstanceID, "reason", d.Reason, "detail", oneLine(d.Detail),
		"attempts", fmt.Sprint(d.Attempts), "priority", numberText(int64(d.Priority)), "node", d.Node, "enqueued", p.moment(d.EnqueuedAt), "died", p.moment(d.DiedAt), "envelope", text, "unreadable", d.Unreadable)
	var m signal.Envelope
	if jsonv2.Unmarshal(d.Message, &m) == nil {
		headers, _ := json.Marshal(m.Headers) // texts cannot fail
		if len(m.Headers) == 0 {
			headers = nil
		}
		fmt.Fprintln(p.out)
		p.fields("message", string(m.Type), "signal", m.SignalID, "dedupe key", m.DedupeKey, "of instance", m.InstanceID, "sender", m.Sender, "sequence", numberText(m.Sequence),
			"version", numberText(m.ExpectedVersion), "occurred", p.momentOrNone(m.OccurredAt), "due", p.momentOrNone(m.DueAt), "sent by", oneLine(string(m.Principal)),
			"headers", string(headers), "payload", pretty(m.Payload, indent))
	}
	if c := d.Command; c != nil {
		fmt.Fprintln(p.out)
		p.fields("command", commandText(c.Command), "state", c.State, "name", c.Name, "target", c.Target, "task", c.Pointer, "key", c.Key, "outcome", c.Outcome,
			"attempts", fmt.Sprint(c.Attempts), "deliveries", numberText(int64(c.Deliveries)), "last error", oneLine(c.LastError), "input", pretty(c.Input, indent))
	}
	if e := d.Edit; e != nil {
		fmt.Fprintln(p.out)
		p.fields("edit", fmt.Sprint(e.No), "what", e.What, "edited", p.moment(e.At), "by", e.By, "because", oneLine(e.Reason), "sent instead", pretty(e.Body, indent))
	}
	return nil
}

func numberText(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
