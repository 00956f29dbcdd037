package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/aqueduct-engine/aqueduct/api/client"
)

func schedulesCommand(a *app) *cobra.Command {
	var l client.List
	var definition string
	c := &cobra.Command{
		Use:   "schedules",
		Short: "List the schedules of definitions, with their next ticks",
		Long: `List the schedules of definitions, with their next ticks.

A schedule is kept by an instance. Suspend it to pause the schedule, resume it
to go on, cancel it to end the schedule, until a newer version with one is
published; what it began is listed with "list --parent INSTANCE".`,
		Args: cobra.NoArgs,
		RunE: a.with(func(ctx context.Context, c *client.Client, _ []string) error {
			p, err := c.Schedules(ctx, definition, l)
			if err != nil || a.json {
				return a.page.orPrint(p, err)
			}
			t := a.page.table("INSTANCE", "DEFINITION", "KIND", "STATUS", "NEXT", "TICKS", "MISSED")
			for _, s := range p.Items {
				t.row(s.InstanceID, s.Definition+"@"+s.Version, s.Kind, s.Status, a.page.ago(s.Next), fmt.Sprint(s.Ticks), fmt.Sprint(s.Missed))
			}
			return t.end(len(p.Items), p.Next, "no definition has a schedule")
		}),
	}
	c.Flags().StringVar(&definition, "definition", "", "only of this definition: namespace/name")
	listFlags(c, &l)
	return c
}
