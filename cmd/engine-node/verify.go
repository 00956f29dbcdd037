package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/sql/embedded"
	"github.com/aqueduct-engine/aqueduct/sql/oracle"
	"github.com/aqueduct-engine/aqueduct/store/survey"
)

// Bounds of the verb verify.
const (
	verifyLimit   = 20 // violations of one invariant
	verifyTimeout = time.Minute
)

func verifyCommand(a *app) *cobra.Command {
	var invariants, all, strict bool
	var limit int
	timeout := period{verifyTimeout}
	c := &cobra.Command{
		Use:   "verify [INSTANCE]",
		Short: "Look for rows that contradict each other, or make instances again from their streams, in the database that the configuration names",
		Long: `Without an instance, look for rows that contradict each other. With one, or with --all,
make it again from its stream with the engine, and compare what comes of each turn, and
at the end the snapshot. It only reads, beside nodes or without. An instance that cannot
be made again is no difference: the command says on standard error how many there are,
and fails because of them with --strict.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 || all {
				return verifyStreams(a, cmd, args, all, strict)
			}
			if !invariants {
				return usage("nothing is to be verified").WithHint("write verify --invariants")
			}
			if strict {
				return usage("--strict is of instances that are made again: name one, or write --all")
			}
			if limit < 1 || timeout.Duration <= 0 {
				return usage("--limit and --timeout are more than 0")
			}
			l, err := a.load(cmd)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout.Duration)
			defer cancel()
			begun := time.Now()
			list, err := verify(ctx, l.Config, limit)
			if err != nil {
				return err
			}
			return a.verified(shown(l), list, time.Since(begun))
		},
	}
	c.Flags().BoolVar(&invariants, "invariants", true, "what holds in every committed state")
	c.Flags().BoolVar(&all, "all", false, "make every instance again from its stream")
	c.Flags().BoolVar(&strict, "strict", false, "of instances made again: fail also when one is unverifiable")
	c.Flags().IntVar(&limit, "limit", verifyLimit, "violations of one invariant that are shown, at most")
	c.Flags().Var(&timeout, "timeout", "how long it may look for contradictions")
	config.Flags(c.Flags())
	return c
}

// verify reads a store as it is at one moment.
func verify(ctx context.Context, c config.Config, limit int) ([]survey.Violation, error) {
	if dsn, ok := c.Store.DataSource(); ok {
		return oracle.Verify(ctx, oracle.CheckOptions{DSN: dsn, Schema: c.Store.SchemaOwner()}, limit)
	}
	path, _ := c.Store.SQLite() // the configuration has been checked: it is one of the two
	return embedded.Verify(ctx, path, limit)
}

// verification is what the verb prints with --json.
type verification struct {
	Store      string             `json:"store"`
	Checked    int                `json:"checked"`
	Violations []survey.Violation `json:"violations"`
}

// verified prints violations. Any makes it fail.
func (a *app) verified(address string, list []survey.Violation, took time.Duration) error {
	if a.json {
		if list == nil {
			list = []survey.Violation{}
		}
		if err := a.page.print(verification{Store: address, Checked: len(survey.Invariants), Violations: list}); err != nil {
			return err
		}
	} else {
		a.page.invariants(list)
		fmt.Fprintf(a.page.out, "%d invariants, %d violations, %s\n", len(survey.Invariants), len(list), took.Round(time.Millisecond))
	}
	if len(list) > 0 {
		return problem.New(problem.Internal, "verify.violated", "%d violations of the invariants of %s", len(list), address).
			WithHint("keep a copy of the database and report it: no committed state has one")
	}
	return nil
}

// invariants is a line for each, and below it what breaks it.
func (p *page) invariants(list []survey.Violation) {
	for _, i := range survey.Invariants {
		var broken []survey.Violation
		for _, v := range list {
			if v.Invariant == i.Name {
				broken = append(broken, v)
			}
		}
		severity := "ok"
		if len(broken) > 0 {
			severity = "BROKEN"
		}
		fmt.Fprintf(p.out, "%-8s%-18s %s\n", severity, i.Name, i.Holds)
		for _, v := range broken {
			fmt.Fprintf(p.out, "%8s%s: %s\n", "", v.About, v.Found)
		}
	}
}
