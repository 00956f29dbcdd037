package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/aqueduct-engine/aqueduct/api/client"
)

func activitiesCommand(a *app) *cobra.Command {
	return group("activities", "Work on what applications note of instances",
		listActivitiesCommand(a), showActivityCommand(a), attachCommand(a), updateActivityCommand(a), freezeActivityCommand(a))
}

func listActivitiesCommand(a *app) *cobra.Command {
	var l client.List
	c := &cobra.Command{
		Use:   "list INSTANCE",
		Short: "List what was noted of an instance, oldest first",
		Args:  cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			p, err := client.NewActivities(c).List(ctx, args[0], l)
			if err != nil || a.json {
				return a.page.orPrint(p, err)
			}
			t := a.page.table("ACTIVITY", "NAME", "STATUS", "VERSION", "ATTACHED", "BY", "CHANGED", "BY", "FROZEN")
			for _, x := range p.Items {
				t.row(x.ID, x.Name, x.Status, fmt.Sprint(x.Version), a.page.ago(x.CreatedAt), x.CreatedBy, a.page.ago(x.UpdatedAt), x.UpdatedBy, a.page.ago(x.FrozenAt))
			}
			return t.end(len(p.Items), p.Next, "no activity")
		}),
	}
	listFlags(c, &l)
	return c
}

func showActivityCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show INSTANCE ACTIVITY",
		Short: "Show an activity and its data",
		Args:  cobra.ExactArgs(2),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			x, err := client.NewActivities(c).Get(ctx, args[0], args[1])
			return a.page.orPrint(x, err)
		}),
	}
}

func attachCommand(a *app) *cobra.Command {
	var r client.AttachRequest
	var data string
	c := &cobra.Command{
		Use:   "attach INSTANCE ACTIVITY --name NAME",
		Short: "Note something of an instance; a repeat changes nothing",
		Long: `Note something of an instance, under an id of the application's own: a repeat
changes nothing. What is noted is for people and programs who look; no node does.`,
		Args: cobra.ExactArgs(2),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) (err error) {
			if r.Data, err = a.given.document("data", data); err != nil {
				return err
			}
			r.ID = args[1]
			x, err := client.NewActivities(c).Attach(ctx, args[0], r)
			return noted(a, x, err)
		}),
	}
	f := c.Flags()
	f.StringVar(&r.Name, "name", "", "what it is")
	f.StringVar(&r.Status, "status", "", "how it stands")
	f.StringVar(&data, "data", "", "data: JSON, @FILE, or - for standard input")
	_ = c.MarkFlagRequired("name") // it is there
	return c
}

func updateActivityCommand(a *app) *cobra.Command {
	var r client.UpdateActivityRequest
	var status, data string
	c := &cobra.Command{
		Use:   "update INSTANCE ACTIVITY --at VERSION",
		Short: "Say how an activity stands now",
		Args:  cobra.ExactArgs(2),
	}
	c.RunE = a.with(func(ctx context.Context, to *client.Client, args []string) (err error) {
		if c.Flags().Changed("status") {
			r.Status = &status
		}
		if r.Data, err = a.given.document("data", data); err != nil {
			return err
		}
		x, err := client.NewActivities(to).Update(ctx, args[0], args[1], r)
		return noted(a, x, err)
	})
	f := c.Flags()
	atVersion(c, &r.Version)
	f.StringVar(&status, "status", "", "how it stands (default: as it is)")
	f.StringVar(&data, "data", "", "in the place of its data: JSON, @FILE, or - for standard input; null: none (default: as they are)")
	return c
}

func freezeActivityCommand(a *app) *cobra.Command {
	var r client.FreezeActivityRequest
	c := &cobra.Command{
		Use:   "freeze INSTANCE ACTIVITY --at VERSION",
		Short: "Freeze an activity: nobody changes it any more",
		Args:  cobra.ExactArgs(2),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			x, err := client.NewActivities(c).Freeze(ctx, args[0], args[1], r)
			return noted(a, x, err)
		}),
	}
	atVersion(c, &r.Version)
	return c
}

// atVersion is the flag of the version that an activity is thought to have.
func atVersion(c *cobra.Command, v *int64) {
	c.Flags().Int64Var(v, "at", 0, "the version that it has: when another has changed it, nothing is done")
	_ = c.MarkFlagRequired("at") // it is there
}

// noted prints what has become of an activity.
func noted(a *app, x client.Activity, err error) error {
	if err != nil || a.json {
		return a.page.orPrint(x, err)
	}
	frozen := ""
	if !x.FrozenAt.IsZero() {
		frozen = ", frozen"
	}
	fmt.Fprintf(a.page.out, "activity %s of %s: version %d%s\n", x.ID, x.InstanceID, x.Version, frozen)
	return nil
}

func timelineCommand(a *app) *cobra.Command {
	var q client.TimelineQuery
	c := &cobra.Command{
		Use:   "timeline [KEY]",
		Short: "Tell what has happened to all instances of a business key, or to one",
		Long: `Tell what has happened to all instances of a business key, oldest first: entries of
their streams, tasks, and activities that applications have noted. With --instance, to
one of them. What nodes do are --kind command,task; HOOK says which of it hooks of a
lifecycle have done.`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			if (len(args) == 1) == (q.InstanceID != "") {
				return usage("name a business key, or write --instance: one of the two")
			}
			if len(args) == 1 {
				q.BusinessKey = args[0]
			}
			p, err := client.NewActivities(c).Timeline(ctx, q)
			if err != nil || a.json {
				return a.page.orPrint(p, err)
			}
			t := a.page.table("WHEN", "INSTANCE", "KIND", "WHAT", "NAME", "STATUS", "HOOK", "TOOK", "ATTEMPTS", "ACTOR")
			for _, m := range p.Items {
				what, took, attempts := m.TaskID+m.ActivityID, "", ""
				if m.Position > 0 {
					what = fmt.Sprint(m.Position)
				}
				if !m.EndedAt.IsZero() {
					took = m.EndedAt.Sub(m.At).Round(time.Millisecond).String()
				}
				if m.Attempts > 0 {
					attempts = fmt.Sprint(m.Attempts)
				}
				t.row(m.At.UTC().Format("2006-01-02 15:04:05.000Z"), m.InstanceID, m.Kind, what, m.Name, m.Status, m.Hook, took, attempts, m.Actor)
			}
			return t.end(len(p.Items), p.Next, "nothing has happened")
		}),
	}
	f := c.Flags()
	f.StringVar(&q.InstanceID, "instance", "", "of this instance")
	f.StringVar(&q.Definition, "definition", "", "only of instances of this definition")
	f.StringSliceVar(&q.Kinds, "kind", nil, "only of this kind: event, command, task, activity; may be repeated")
	listFlags(c, &q.List)
	return c
}
