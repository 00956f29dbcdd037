package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/problem"
)

func triggerCommand(a *app) *cobra.Command {
	var r client.TriggerRequest
	var payload, input string
	acks := true
	c := &cobra.Command{
		Use:   "trigger ENVIRONMENT/DEFINITION REFERENCE EVENT",
		Short: "Trigger an event of what a reference names; the first one begins its instance",
		Long: `Trigger an event, by its name or its code, of the instance that a definition has
for a reference: the application's own key.

When there is none, it begins with the event, in one commit. An event that is
refused changes nothing. A repeat with the same --request-id changes nothing.`,
		Args: cobra.ExactArgs(3),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			definition, err := lifecycleName(args[0])
			if err != nil {
				return err
			}
			if r.Payload, err = a.given.document("payload", payload); err != nil {
				return err
			}
			if r.Input, err = a.given.document("input", input); err != nil {
				return err
			}
			if r.Event = args[2]; !acks {
				r.AckRequired = &acks
			}
			got, err := c.Trigger(ctx, definition, args[1], r)
			if err != nil {
				return err
			}
			if got.Disposition == "applied" && got.Status == "faulted" { // the event has counted, and what followed from it has failed
				err = problem.New(problem.Invalid, "instance.faulted", "the event is applied, and instance %s is faulted", got.InstanceID).
					WithHint("%s show %s says why; mend what is wrong, and retry it", a.self, got.InstanceID)
			}
			if a.json {
				return errors.Join(a.page.print(got), err)
			}
			begun := ""
			if got.Created {
				begun = ", begun"
			}
			now := ""
			if got.State != "" { // it could be read
				now = " is now " + got.State
			}
			fmt.Fprintf(a.page.out, "%s: %s%s (instance %s%s)\n", got.Disposition, args[1], now, got.InstanceID, begun)
			if e := got.Error; e != nil {
				fmt.Fprintf(a.page.out, "faulted at %s: %s: %s\n", e.Pointer, e.Title, e.Detail)
			}
			return err
		}),
	}
	f := c.Flags()
	f.StringVar(&r.RequestID, "request-id", "", "a repeat with the same id is applied once")
	f.StringVar(&r.DedupeKey, "dedupe-key", "", "a key of your own instead: of all that comes with it, on whatever way, the first is applied")
	sequenceFlags(f, &r.Sender, &r.Sequence)
	f.StringVar(&payload, "payload", "", "data of the event: JSON, @FILE, or - for standard input")
	f.StringVar(&input, "input", "", "of the instance, when it begins: JSON, @FILE, or -")
	f.BoolVar(&acks, "ack-required", true, "consumers of the transition acknowledge it; =false: they have but to take it, and are not reminded")
	f.StringVar(&r.Version, "definition-version", "", "version of the definition, when the instance begins (default: the latest)")
	return c
}

func stateCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "state ENVIRONMENT/DEFINITION REFERENCE",
		Short: "Show in which state the instance of a reference is",
		Args:  cobra.ExactArgs(2),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			definition, err := lifecycleName(args[0])
			if err != nil {
				return err
			}
			l, err := c.Lifecycle(ctx, definition, args[1])
			if err != nil || a.json {
				return a.page.orPrint(l, err)
			}
			a.page.fields("state", l.State, "takes", strings.Join(l.Events, ", "), "status", l.Status, "since", a.page.moment(l.Since), "updated", a.page.moment(l.UpdatedAt),
				"instance", l.InstanceID, "definition", l.Definition+"@"+l.Version)
			return nil
		}),
	}
}

// lifecycleName checks that a definition is named in its environment: the name
// becomes a part of a path.
func lifecycleName(name string) (string, error) {
	environment, definition, ok := strings.Cut(name, "/")
	if !ok || environment == "" || definition == "" || strings.Contains(definition, "/") {
		return "", usage("%q is not ENVIRONMENT/DEFINITION", name)
	}
	return name, nil
}
