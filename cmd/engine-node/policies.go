package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/aqueduct-engine/aqueduct/api/client"
)

func policiesCommand(a *app) *cobra.Command {
	var l client.List
	c := &cobra.Command{
		Use:   "policies [ENVIRONMENT/DEFINITION [VERSION]]",
		Short: "List the policies of lifecycles, or show one",
		Long: `List the policies of all lifecycles, or those of one in the order of their
publication: the last one counts. With a VERSION, show what it says. "publish"
publishes policies.`,
		Args: cobra.MaximumNArgs(2),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			lifecycle, err := "", error(nil)
			if len(args) > 0 {
				if lifecycle, err = lifecycleName(args[0]); err != nil {
					return err
				}
			}
			if len(args) == 2 {
				p, err := c.Policy(ctx, lifecycle, args[1])
				if err != nil || a.json {
					return a.page.orPrint(p, err)
				}
				return a.page.print(p.Document)
			}
			p, err := c.Policies(ctx, lifecycle, l)
			if err != nil || a.json {
				return a.page.orPrint(p, err)
			}
			t := a.page.table("POLICY", "VERSION", "PUBLISHED", "TITLE")
			for _, d := range p.Items {
				t.row(d.Name, d.Version, a.page.ago(d.PublishedAt), d.Title)
			}
			return t.end(len(p.Items), p.Next, "no policy is published")
		}),
	}
	listFlags(c, &l)
	c.AddCommand(&cobra.Command{
		Use:   "diff ENVIRONMENT/DEFINITION A B",
		Short: "Say how two policies of a lifecycle differ",
		Args:  cobra.ExactArgs(3),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			lifecycle, err := lifecycleName(args[0])
			if err != nil {
				return err
			}
			r, err := c.ComparePolicies(ctx, lifecycle, args[1], args[2])
			if err != nil || a.json {
				return a.page.orPrint(r, err)
			}
			for _, d := range r.Changes {
				fmt.Fprintf(a.page.out, "%s %s\n", d.Kind, or(d.New, d.Old))
			}
			if len(r.Changes) == 0 {
				fmt.Fprintln(a.page.out, "they say the same")
			}
			return nil
		}),
	})
	return c
}
