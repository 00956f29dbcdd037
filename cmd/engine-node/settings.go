package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/duration"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/settings"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// working is how a node works, by its settings.
func working(c config.Config) runtime.Config {
	rc := runtime.Config{
		SignalConsumers: c.Queue.SignalConsumers, ScheduleConsumers: c.Queue.ScheduleConsumers,
		CommandConsumers: c.Queue.CommandConsumers, Handlers: c.Queue.Handlers, Activities: c.Activity.Concurrency,
		PerHost: c.Activity.PerHost, BreakAfter: c.Activity.BreakAfter, BreakFor: c.Activity.BreakFor,
		Waiting: c.Activity.Waiting, GiveUpAfter: c.Activity.GiveUpAfter,
		RetryMax: c.Retry.Max, RetryDelay: c.Retry.Delay, RetryDelayMax: c.Retry.DelayMax, Patience: c.Retry.Patience, OrderGrace: c.OrderGrace, CrashMax: c.CrashMax, AckAge: c.Ack.Age, AckPause: c.Ack.Pause,
		SuspendOnDeadLetter: c.DeadLetter == config.DeadLetterSuspend, DrainTimeout: c.DrainTimeout,
		Rates: runtime.Rates(c.Rates), Engine: version(),
		Limits: engine.Limits{
			Steps: c.Limits.Steps, FanOut: c.Limits.FanOut, Items: c.Limits.Items,
			Expression: jq.Limits{Steps: unusual(c.Limits.ExpressionSteps, jq.DefaultSteps), Bytes: unusual(c.Limits.ExpressionBytes, jq.DefaultBytes)},
		},
		RetentionEvery: c.Retention.Interval, ReconcileEvery: c.Reconcile.Interval, ReconcileGrace: c.Reconcile.Grace, EventTTL: c.Events.TTL, Lifecycle: c.Events.Lifecycle, DeadLetterEvents: c.Events.DeadLetters,
		NoticeKeep: cmp.Or(c.Queue.Notices, -1),
	}
	if c.Retry.Max == 0 {
		rc.RetryMax = -1 // zero means the default there, none here
	}
	for _, d := range []*time.Duration{&rc.OrderGrace, &rc.Patience, &rc.ReconcileEvery} {
		if *d == 0 {
			*d = -1
		}
	}
	if c.Retention.Enabled {
		rc.RetentionKeep = c.Retention.Keep
		rc.Windows = runtime.Windows{Faulted: c.Retention.Faulted, DeadLetters: c.Retention.DeadLetters, Audit: c.Retention.Audit, Tokens: c.Retention.Tokens, Policies: c.Retention.Policies, Bulk: c.Retention.Bulk}
	}
	return rc
}

// alike are those settings of a node that the others on its database must have, too.
func alike(c config.Config) map[string]string {
	rc := working(c)
	s := rc.Settings()
	s["events.sink"], s["events.sink-mode"] = c.Events.ShownSink(), c.Events.SinkMode
	return s
}

// join has a node begin that is set as the others are.
func join(ctx context.Context, name string, c config.Config, parts backend.Parts) error {
	book := &settings.Book{Kept: parts.Settings, Now: parts.Clock.Now}
	return book.Join(ctx, name, alike(c))
}

// asTheNodes sets what a program beside the nodes does as they do it: it makes turns, and
// is told by nobody how. What performs commands is left to them.
func asTheNodes(ctx context.Context, c *config.Config, parts backend.Parts) error {
	recorded, err := parts.Settings.Settings(ctx)
	if err != nil {
		return err
	}
	for _, s := range recorded {
		switch s.Key {
		case "events.lifecycle":
			c.Events.Lifecycle = s.Value == strconv.FormatBool(true)
		case "events.ttl":
			if c.Events.TTL, err = duration.Parse(s.Value); err != nil {
				return fmt.Errorf("settings: %s: %w", s.Key, err)
			}
		}
	}
	return nil
}

// acceptedSetting is what the verbs print of a setting.
type acceptedSetting struct {
	Key   string    `json:"key"`
	Value string    `json:"value"`
	By    string    `json:"by"`
	At    time.Time `json:"at"`
}

func acceptCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "accept",
		Short: "Have the settings of this command hold for all nodes of the database, where they must be alike",
		Long: `Have the settings of this command hold for all nodes of the database, where they must be alike.

A node does not start with other settings than the database has recorded of such
as events.sink. Give this command the settings that are to hold, as the nodes get
them (--config, flags, environment), then restart the nodes one after the other: those that
run keep what they have, those that start must have the new ones. It prints what
has changed. Secrets are not recorded, and may differ.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.load(cmd)
			if err != nil {
				return err
			}
			return settled(cmd.Context(), a, l, func(ctx context.Context, parts backend.Parts) ([]backend.Setting, error) {
				book := &settings.Book{Kept: parts.Settings, Now: parts.Clock.Now}
				ctx = principal.With(ctx, principal.Principal{Name: account(), Kind: principal.User, Via: principal.CLI})
				return book.Accept(ctx, account(), alike(l.Config))
			})
		},
	}
	config.Flags(c.Flags())
	return c
}

func recordedCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "recorded",
		Short: "Print the settings that every node of the database must have, and who has set them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.load(cmd)
			if err != nil {
				return err
			}
			return settled(cmd.Context(), a, l, func(ctx context.Context, parts backend.Parts) ([]backend.Setting, error) {
				return parts.Settings.Settings(ctx)
			})
		},
	}
	config.Flags(c.Flags())
	return c
}

// settled prints settings of a database.
func settled(ctx context.Context, a *app, l *config.Loaded, f func(context.Context, backend.Parts) ([]backend.Setting, error)) error {
	if path, ok := l.Store.SQLite(); ok {
		if _, err := os.Stat(path); err != nil {
			return missing(err, path)
		}
	}
	db, err := openStore(ctx, l.Store, l.Queue, "settings-"+uuid.NewString(), 0, a.logger(l.Log))
	if err != nil {
		return err
	}
	found, err := f(ctx, db.Parts())
	if closing := db.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	list := make([]acceptedSetting, len(found))
	for i, s := range found {
		list[i] = acceptedSetting{s.Key, s.Value, s.By, s.At}
	}
	if a.json {
		return a.page.print(list)
	}
	table := tabwriter.NewWriter(a.page.out, 0, 0, 2, ' ', 0)
	for _, s := range list {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.Key, cmp.Or(s.Value, `""`), s.At.Format(time.RFC3339), s.By)
	}
	return table.Flush()
}
