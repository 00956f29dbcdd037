package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
)

// deadLetterBody is what of a dead letter is edited: the message, or the input of the command
// that it is about; as it would be sent now.
func deadLetterBody(d *client.DeadLetterDetail) (body []byte, input bool) {
	input = d.Command != nil
	switch {
	case d.Edit != nil && d.Edit.What != "original":
		body = d.Edit.Body
	case input:
		body = d.Command.Input
	default:
		body = d.Envelope
	}
	return body, input
}

func editDeadLetterCommand(a *app) *cobra.Command {
	var r client.EditDeadLetterRequest
	var body string
	var sets []string
	c := &cobra.Command{
		Use:   "edit LETTER",
		Short: "Put other bytes in the place of what died, for its replay",
		Long: `Put other bytes in the place of what died: another message, or of a command's letter another
input of the command. What died stays beside, byte for byte; dlq diff shows both, and
--original undoes the edit. Without --body, --set and --original it opens an editor
($VISUAL, $EDITOR, vi). Where somebody else has edited the letter meanwhile it is refused.

A message keeps its id, by which it counts once, unless you change it. An edited input is
asked for by a new command under a new key: while nobody knows whether the former one was
done, say --key new, or --key same where the consumer tells the two apart.`,
		Args: cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			d, err := c.DeadLetter(ctx, args[0])
			if err != nil {
				return err
			}
			if d.Edit != nil {
				r.After = d.Edit.No
			}
			if !r.Original {
				now, input := deadLetterBody(&d)
				next, err := editedBody(ctx, a, now, body, sets)
				if err != nil || next == nil {
					return err
				}
				if input {
					r.Input = next
				} else {
					r.Envelope = next
				}
			}
			e, err := c.EditDeadLetter(ctx, args[0], r)
			if err != nil || a.json {
				return a.page.orPrint(e, err)
			}
			fmt.Fprintf(a.page.out, "edited %s: edit %d, %s\n", args[0], e.No, e.What)
			return nil
		}),
	}
	f := c.Flags()
	f.StringVar(&body, "body", "", "what is sent instead: JSON, @FILE, or - for standard input")
	f.StringArrayVar(&sets, "set", nil, "set a value in it: /JSON/POINTER=JSON, or a text that is no JSON; may be repeated")
	f.BoolVar(&r.Original, "original", false, "undo: what died is sent")
	f.BoolVar(&r.Another, "another", false, "the message may be for another instance, or of another type")
	f.StringVar(&r.Key, "key", "", "idempotency key of an edited input: new, or same")
	c.MarkFlagsMutuallyExclusive("body", "original")
	c.MarkFlagsMutuallyExclusive("set", "original")
	return c
}

// editedBody is what comes of a body by the flags, or by an editor; nil where nobody has
// changed it.
func editedBody(ctx context.Context, a *app, now []byte, body string, sets []string) (json.RawMessage, error) {
	var err error
	if body != "" {
		if now, err = a.given.document("body", body); err != nil {
			return nil, err
		}
	}
	for _, set := range sets {
		if now, err = setIn(now, set); err != nil {
			return nil, err
		}
	}
	if body != "" || len(sets) > 0 {
		return now, nil
	}
	if !interactive(a.given.in) || !interactive(os.Stdout) {
		return nil, usage("what is to be changed is not said: --body, --set or --original")
	}
	return inEditor(ctx, a, now)
}

// inEditor has somebody change a body, set out in lines; nil where they have not.
func inEditor(ctx context.Context, a *app, now []byte) (json.RawMessage, error) {
	var text bytes.Buffer
	if json.Indent(&text, now, "", "  ") != nil {
		text.Reset()
		text.Write(now)
	}
	folder, err := os.MkdirTemp("", "aqueduct-letter-")
	if err != nil {
		return nil, problem.Wrap(err, problem.Invalid, "cli.file", "no folder can be made for the editor")
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "letter.json")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		return nil, problem.Wrap(err, problem.Invalid, "cli.file", "%s cannot be written", file)
	}
	words := strings.Fields(cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi"))
	editor := exec.CommandContext(ctx, words[0], append(words[1:], file)...)
	editor.Stdin, editor.Stdout, editor.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := editor.Run(); err != nil {
		return nil, problem.Wrap(err, problem.Invalid, "cli.file", "the editor %q has failed: nothing was changed", words[0])
	}
	next, err := a.given.document("body", "@"+file)
	if err == nil && bytes.Equal(bytes.TrimSpace(next), bytes.TrimSpace(text.Bytes())) {
		fmt.Fprintln(a.err, "nothing was changed")
		return nil, nil
	}
	return next, err
}

// setIn sets a value in a document.
func setIn(raw []byte, set string) ([]byte, error) {
	pointer, text, ok := strings.Cut(set, "=")
	if !ok || !strings.HasPrefix(pointer, "/") {
		return nil, usage("--set %q is not /POINTER=VALUE", set)
	}
	value := json.RawMessage(text)
	if !json.Valid(value) {
		value, _ = asWritten(text) // a text cannot fail
	}
	if !json.Valid(raw) {
		return nil, problem.New(problem.Invalid, "cli.json", "what died is not JSON, in which a value could be set").WithHint("give all of it by --body")
	}
	next, err := put(raw, strings.Split(pointer, "/")[1:], value)
	if err != nil {
		return nil, usage("--set %s: %v", pointer, err)
	}
	return next, nil
}

// put sets a value at a path; members that are not there are made. All else stays as it is
// written.
func put(raw json.RawMessage, path []string, value json.RawMessage) (json.RawMessage, error) {
	if len(path) == 0 {
		return value, nil
	}
	name := strings.NewReplacer("~1", "/", "~0", "~").Replace(path[0])
	members, items := inside(raw)
	switch {
	case raw == nil || members != nil:
		if members == nil {
			members = map[string]json.RawMessage{}
		}
		next, err := put(members[name], path[1:], value)
		if err != nil {
			return nil, err
		}
		members[name] = next
		return asWritten(members)
	case items != nil:
		i, err := strconv.Atoi(name)
		if name == "-" {
			i, err, items = len(items), nil, append(items, nil)
		}
		if err != nil || i < 0 || i >= len(items) {
			return nil, fmt.Errorf("there is no item %q of %d", name, len(items))
		}
		if items[i], err = put(items[i], path[1:], value); err != nil {
			return nil, err
		}
		return asWritten(items)
	}
	return nil, fmt.Errorf("%q is inside of a value", name)
}

// asWritten is a value as JSON, in which nothing is escaped that need not be.
func asWritten(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// inside is what an object or an array has in it; of another value both are nil.
func inside(raw json.RawMessage) (members map[string]json.RawMessage, items []json.RawMessage) {
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) > 0 && raw[0] == '{' && jsonv2.Unmarshal(raw, &members) != nil:
		return nil, nil
	case len(raw) > 0 && raw[0] == '[' && jsonv2.Unmarshal(raw, &items) != nil:
		return nil, nil
	}
	return members, items
}

func diffDeadLetterCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "diff LETTER",
		Short: "Show what an edit has changed, also of a dead letter that was replayed",
		Args:  cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			var edits []client.DeadLetterEdit
			for l := (client.List{}); ; {
				p, err := c.DeadLetterEdits(ctx, args[0], l)
				if err != nil {
					return err
				}
				if edits = append(edits, p.Items...); p.Next == "" {
					break
				}
				l.After = p.Next
			}
			if a.json {
				return a.page.print(client.Page[client.DeadLetterEdit]{Items: edits})
			}
			if len(edits) == 0 {
				fmt.Fprintln(a.page.out, "it was never edited")
				return nil
			}
			for _, e := range edits {
				if e.No > 0 {
					fmt.Fprintf(a.page.out, "edit %d, %s%s by %s%s\n", e.No, e.What, " "+a.page.ago(e.At), cmp.Or(oneLine(e.By), "somebody"), inBrackets(oneLine(e.Reason)))
				}
			}
			old, now, differences := edits[len(edits)-1].Body, edits[0].Body, client.EnvelopeDifferences
			switch edits[0].What {
			case "original":
				now = old
			case "input", "same-key":
				input, err := inputOf(ctx, c, old)
				if err != nil {
					return err
				}
				old, differences = input, client.Differences
			}
			return a.page.changes(old, now, differences)
		}),
	}
}

// inputOf is the input of the command that an envelope announces.
func inputOf(ctx context.Context, c *client.Client, envelope []byte) ([]byte, error) {
	var e struct {
		InstanceID string `json:"workflowInstanceId"`
		Payload    struct {
			Command int64 `json:"command"`
		} `json:"payload"`
	}
	if err := jsonv2.Unmarshal(envelope, &e); err != nil {
		return nil, err
	}
	d, err := c.Command(ctx, e.InstanceID, e.Payload.Command)
	return d.Input, err
}

// changes prints what of a document is another than before, by its place.
func (p *page) changes(old, now []byte, differences func(old, now json.RawMessage) []string) error {
	if !json.Valid(old) || !json.Valid(now) {
		fmt.Fprintf(p.out, "- %s\n+ %s\n", bytesText(old), bytesText(now))
		return nil
	}
	lines := differences(old, now)
	if len(lines) == 0 {
		lines = []string{"nothing is another than before"}
	}
	for _, line := range lines {
		fmt.Fprintln(p.out, oneLine(line))
	}
	return nil
}

// bytesText is what can be shown of bytes.
func bytesText(b []byte) string {
	const most = 4000
	if len(b) > most {
		return strconv.Quote(string(b[:most])) + fmt.Sprintf(" and %d bytes", len(b)-most)
	}
	return strconv.Quote(string(b))
}

// replaying is what is to be replayed, and how fast.
type replaying struct {
	query client.DeadLetterQuery
	all   bool
	rate  string
	count int
}

// replayMax is how many dead letters one command replays, unless it is told otherwise.
const replayMax = 10_000

func replayDeadLettersCommand(a *app) *cobra.Command {
	var r replaying
	c := &cobra.Command{
		Use:   "replay LETTER...",
		Short: "Send dead letters to their queues again, as they were edited last",
		Long: `Send dead letters to their queues again, those that are named, or those of --queue,
--reason and --instance, or --all; the oldest first, at most --count, and with --rate so
many in a time: 10/s, 30/m. What dies meanwhile is left. Of those that were chosen so, one
that cannot be replayed is told and passed over. When it is interrupted the rest is still
there: the same command goes on.`,
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			chosen := r.all || r.query.Queue+r.query.Reason+r.query.InstanceID+r.query.Definition+r.query.Text != ""
			if chosen == (len(args) > 0) {
				return usage("dead letters are named, or chosen by --queue, --reason, --instance, --definition, --text or --all")
			}
			pause, err := pauseOf(r.rate)
			if err != nil {
				return err
			}
			if r.count < 1 {
				return usage("--count is at least 1")
			}
			if chosen {
				if args, err = oldest(ctx, c, r.query, r.count); err != nil {
					return err
				}
			}
			return replayEach(ctx, a, c, args, pause, chosen)
		}),
	}
	f := c.Flags()
	deadLetterFlags(f, &r.query)
	f.BoolVar(&r.all, "all", false, "all that there are")
	f.StringVar(&r.rate, "rate", "", "so many in a time, such as 10/s, 30/m, 500/h (default: as fast as the node takes them)")
	f.IntVar(&r.count, "count", replayMax, "of those that are chosen, so many at most")
	return c
}

// pauseOf reads a rate.
func pauseOf(rate string) (time.Duration, error) {
	if rate == "" {
		return 0, nil
	}
	number, unit, _ := strings.Cut(rate, "/")
	n, err := strconv.ParseFloat(number, 64)
	in, ok := map[string]time.Duration{"s": time.Second, "": time.Second, "m": time.Minute, "h": time.Hour}[unit]
	if err != nil || !ok || !(n >= 0.001 && n <= 100_000) {
		return 0, usage("--rate %q is not a number of 0.001 to 100000 with /s, /m or /h", rate)
	}
	return time.Duration(float64(in) / n), nil
}

// oldest are ids of dead letters, the oldest first.
func oldest(ctx context.Context, c *client.Client, q client.DeadLetterQuery, count int) ([]string, error) {
	var ids []string
	for q.Limit = projections.MaxLimit; ; {
		p, err := c.DeadLetters(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, d := range p.Items {
			ids = append(ids, d.ID)
		}
		if q.After = p.Next; p.Next == "" {
			break
		}
	}
	slices.Reverse(ids)
	return ids[:min(count, len(ids))], nil
}

// replayCounts says what a command has replayed.
type replayCounts struct {
	Replayed int `json:"replayed"`
	Edited   int `json:"edited"` // of these, as they were edited
	Gone     int `json:"gone"`   // replayed or discarded by somebody else
	Failed   int `json:"failed"`
	Left     int `json:"left"`
}

// replayEach replays dead letters, one after another. Of those that were chosen, not named,
// one that is gone or refused does not end it. Whatever ends it, what was done is said.
func replayEach(ctx context.Context, a *app, c *client.Client, ids []string, pause time.Duration, chosen bool) error {
	var n replayCounts
	var last error
	begun := time.Now()
	for i, id := range ids {
		select { // the pace is that of the whole: what took longer is caught up with
		case <-ctx.Done():
		case <-time.After(time.Until(begun.Add(time.Duration(i) * pause))):
		}
		if ctx.Err() != nil {
			n.Left = len(ids) - i
			break
		}
		r, err := c.Replay(ctx, id)
		kind := problem.KindOf(err)
		switch {
		case err == nil:
			n.Replayed++
			if r.Edit > 0 {
				n.Edited++
			}
			if !a.json {
				fmt.Fprintf(a.page.out, "replay: %s%s\n", id, asEdited(r.Edit))
			}
		case chosen && problem.CodeOf(err) == "dead-letter.unknown":
			n.Gone++
		case chosen && (kind == problem.Conflict || kind == problem.Invalid || kind == problem.TooLarge):
			n.Failed++
			last = err
			fmt.Fprintf(a.err, "%s: %v\n", id, err)
		default:
			if n.Left = len(ids) - i; !chosen {
				n.Failed, n.Left = ended(err, n.Left)
			}
			if !chosen && len(ids) == 1 && !a.json { // the error says all
				return err
			}
			return errors.Join(summary(a, n), err)
		}
	}
	if chosen || a.json || n.Left > 0 {
		if err := summary(a, n); err != nil {
			return err
		}
	}
	return cmp.Or(last, ctx.Err())
}

// ended is how many of those that were named have failed, and are left, when an error ends it:
// what was not refused may be tried again, and is left with those behind it.
func ended(err error, rest int) (failed, left int) {
	if kind := problem.KindOf(err); kind == problem.Unavailable || kind == problem.Internal {
		return 0, rest
	}
	return 1, rest - 1
}

func asEdited(edit int64) string {
	if edit == 0 {
		return ""
	}
	return fmt.Sprintf(" (edit %d)", edit)
}

func summary(a *app, n replayCounts) error {
	if a.json {
		return a.page.print(n)
	}
	_, err := fmt.Fprintf(a.page.out, "replayed %d, of these %d as they were edited; %d were gone, %d failed, %d are left\n", n.Replayed, n.Edited, n.Gone, n.Failed, n.Left)
	return err
}
