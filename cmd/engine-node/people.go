package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/projections"
)

func tokensCommand(a *app) *cobra.Command {
	return group("tokens", "Work on tokens, by which programs and people are known to nodes", createTokenCommand(a), listTokensCommand(a), revokeTokenCommand(a))
}

func createTokenCommand(a *app) *cobra.Command {
	var r client.TokenRequest
	lifetime := period{access.Life}
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a token, and print it once",
		Long: `Make a token, and print it: it is not shown again. Whoever bears it is known as
NAME, and may do what its roles say: ` + strings.Join(access.Roles, ", ") + `.

The first one is made on the database itself, with --store. A node asks for tokens
with --access-tokens.`,
		Args: cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			r.Name, r.Lifetime = args[0], lifetime.String()
			k, err := client.NewAdmin(c).CreateToken(ctx, r)
			if err != nil || a.json {
				return a.page.orPrint(k, err)
			}
			fmt.Fprintf(a.err, "token %s of %s, with %s, expires %s; it is not shown again\n", k.ID, k.Name, strings.Join(k.Roles, ", "), a.page.ago(k.ExpiresAt))
			fmt.Fprintln(a.page.out, k.Secret)
			return nil
		}),
	}
	f := c.Flags()
	f.StringSliceVar(&r.Roles, "role", nil, "what its bearer may do, everywhere or as ROLE@NAMESPACE; may be repeated")
	f.StringSliceVar(&r.Groups, "group", nil, "of which its bearer is a member, as tasks name it; may be repeated")
	f.Var(&lifetime, "lifetime", "how long it is valid: 12h, 30d, P30D")
	_ = c.MarkFlagRequired("role") // it is there
	return c
}

func listTokensCommand(a *app) *cobra.Command {
	var l client.List
	c := &cobra.Command{
		Use:   "list",
		Short: "List tokens, newest first, with their last use",
		Args:  cobra.NoArgs,
		RunE: a.with(func(ctx context.Context, c *client.Client, _ []string) error {
			p, err := client.NewAdmin(c).Tokens(ctx, l)
			if err != nil || a.json {
				return a.page.orPrint(p, err)
			}
			t := a.page.table("ID", "NAME", "ROLES", "GROUPS", "MADE", "BY", "EXPIRES", "LAST USED", "REVOKED")
			for _, k := range p.Items {
				t.row(k.ID, k.Name, strings.Join(k.Roles, " "), strings.Join(k.Groups, " "), a.page.ago(k.CreatedAt), k.CreatedBy, a.page.ago(k.ExpiresAt), a.page.ago(k.UsedAt), a.page.ago(k.RevokedAt))
			}
			return t.end(len(p.Items), p.Next, "there are no tokens")
		}),
	}
	listFlags(c, &l)
	return c
}

func revokeTokenCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke TOKEN",
		Short: "End a token, on every node within a second",
		Args:  cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, c *client.Client, args []string) error {
			if err := client.NewAdmin(c).RevokeToken(ctx, args[0]); err != nil || a.json {
				return a.page.orPrint(map[string]string{"id": args[0], "result": "revoked"}, err)
			}
			fmt.Fprintf(a.page.out, "token %s is revoked\n", args[0])
			return nil
		}),
	}
}

func whoamiCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "whoami",
		Short: "Say as whom you are known to a node, and what you may do",
		Args:  cobra.NoArgs,
		RunE: a.with(func(ctx context.Context, c *client.Client, _ []string) error {
			me, err := client.NewAdmin(c).Me(ctx)
			if err != nil || a.json {
				return a.page.orPrint(me, err)
			}
			a.page.fields("name", me.Name, "known as", me.Kind, "groups", strings.Join(me.Groups, " "), "roles", strings.Join(me.Roles, " "), "may", strings.Join(me.May, " "))
			return nil
		}),
	}
}

func auditCommand(a *app) *cobra.Command {
	return group("audit", "See who has done what, and was refused what", listAuditCommand(a), exportAuditCommand(a))
}

func listAuditCommand(a *app) *cobra.Command {
	var q client.AuditQuery
	c := &cobra.Command{
		Use:   "list",
		Short: "List who has done what, newest first",
		Long: `List who has done what, and was refused what, newest first. Starts, signals, events
and acknowledgements are in the streams of instances ("show ID"), and what people do
with tasks in the events of those ("tasks show ID").`,
		Args: cobra.NoArgs,
		RunE: a.with(func(ctx context.Context, c *client.Client, _ []string) error {
			p, err := client.NewAdmin(c).Audit(ctx, q)
			if err != nil || a.json {
				return a.page.orPrint(p, err)
			}
			t := a.page.table("WHEN", "USER", "SAYS", "KIND", "VIA", "ACTION", "TARGET", "RESULT", "BECAUSE")
			for _, e := range p.Items {
				t.row(e.At.Format(time.RFC3339), e.User, e.Claimed, e.Kind, e.Via, e.Action, e.Target, e.Result, e.Reason)
			}
			return t.end(len(p.Items), p.Next, "nobody has done anything of the kind")
		}),
	}
	auditFlags(c.Flags(), &q)
	listFlags(c, &q.List)
	return c
}

func exportAuditCommand(a *app) *cobra.Command {
	var q client.AuditQuery
	c := &cobra.Command{
		Use:   "export",
		Short: "Print all of who has done what as lines of JSON, newest first",
		Args:  cobra.NoArgs,
		RunE: a.with(func(ctx context.Context, c *client.Client, _ []string) error {
			q.Limit = projections.MaxLimit
			for {
				p, err := client.NewAdmin(c).Audit(ctx, q)
				if err != nil {
					return err
				}
				for _, e := range p.Items {
					line, err := json.Marshal(e)
					if err == nil {
						_, err = fmt.Fprintf(a.page.out, "%s\n", line)
					}
					if err != nil {
						return err
					}
				}
				if q.After = p.Next; q.After == "" {
					return nil
				}
			}
		}),
	}
	auditFlags(c.Flags(), &q)
	return c
}

// auditFlags say which entries are meant.
func auditFlags(f *pflag.FlagSet, q *client.AuditQuery) {
	f.StringVar(&q.User, "user", "", "only of this user")
	f.StringVar(&q.Action, "action", "", "only of this action: discard, publish, suspend and others")
	f.StringVar(&q.Target, "target", "", "only of what has this id")
	f.StringVar(&q.InstanceID, "instance", "", "only of this instance")
	f.StringVar(&q.Result, "result", "", "only refused with this code")
	f.TimeVar(&q.From, "from", time.Time{}, []string{time.RFC3339Nano, time.DateOnly}, "from this moment on, UTC")
	f.TimeVar(&q.To, "to", time.Time{}, []string{time.RFC3339Nano, time.DateOnly}, "before this moment, UTC")
}
