package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aqueduct-engine/aqueduct/api/client"
)

func ackCommand(a *app) *cobra.Command {
	var r client.AckRequest
	var output string
	var failure client.AckError
	c := &cobra.Command{
		Use:   "ack INSTANCE/POSITION --outcome OUTCOME",
		Short: "Acknowledge a command, in the place of its consumer",
		Long: `Acknowledge a command by its idempotency key, in the place of its consumer.

The outcome is delivered (it has the command; the time until the next delivery
begins anew), processed (it is done; --output is the call's result), failed (it
cannot do it; --type, --status, --title and --detail say why) or retry (it wants
it once more, after --delay).`,
		Args: cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			id, position, err := commandKey(args[0])
			if err != nil {
				return err
			}
			if r.Output, err = a.given.document("output", output); err != nil {
				return err
			}
			if failure != (client.AckError{}) {
				r.Error = &failure
			}
			got, err := c.Acknowledge(ctx, id, position, r)
			if err != nil || a.json {
				return a.page.orPrint(got, err)
			}
			fmt.Fprintf(a.page.out, "%s %s/%d: %s\n", r.Outcome, got.InstanceID, got.Position, got.Disposition)
			return nil
		}),
	}
	f := c.Flags()
	f.StringVar(&r.Outcome, "outcome", "", "delivered, processed, failed or retry")
	f.StringVar(&output, "output", "", "of processed, the result of the call: JSON, @FILE, or - for standard input")
	f.StringVar(&r.Consumer, "consumer", "", "as which consumer; refused when the command is another's (default: it is not asked)")
	f.StringVar(&r.Delay, "delay", "", "of retry: an ISO 8601 duration, such as PT1M (default: at once)")
	failureFlags(f, &failure, "of failed: ")
	_ = c.MarkFlagRequired("outcome") // the flag exists
	return c
}

// failureFlags are those of the error of a call.
func failureFlags(f *pflag.FlagSet, e *client.AckError, of string) {
	f.StringVar(&e.Type, "type", "", of+"type of the error (default: communication)")
	f.IntVar(&e.Status, "status", 0, of+"status of the error (default: 500)")
	f.StringVar(&e.Title, "title", "", of+"title of the error")
	f.StringVar(&e.Detail, "detail", "", of+"detail of the error")
}

// commandKey takes an idempotency key apart.
func commandKey(key string) (id string, position int64, err error) {
	i := strings.LastIndexByte(key, '/')
	if i > 0 {
		position, err = strconv.ParseInt(key[i+1:], 10, 64)
	}
	if i <= 0 || err != nil || position < 1 {
		return "", 0, usage("%q is not INSTANCE/POSITION", key)
	}
	return key[:i], position, nil
}
