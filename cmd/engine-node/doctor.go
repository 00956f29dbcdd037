package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/sql/embedded"
	"github.com/aqueduct-engine/aqueduct/sql/oracle"
	"github.com/aqueduct-engine/aqueduct/store/survey"
)

func doctorCommand(a *app) *cobra.Command {
	var quick bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Examine the database that the configuration names, and say how to mend what is wrong",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.load(cmd)
			if err != nil {
				return err
			}
			return a.diagnose(shown(l), check(cmd.Context(), l.Config, quick))
		},
	}
	c.Flags().BoolVar(&quick, "quick", false, "leave out what reads every row")
	config.Flags(c.Flags())
	return c
}

// check looks at a store as a node of this configuration would meet it.
func check(ctx context.Context, c config.Config, quick bool) []survey.Finding {
	catalogue := definition.New(nil, openworkflow.Parsers(), time.Now)
	verify := func(r definition.Record) error { return catalogue.Verify(ctx, r) }
	if dsn, ok := c.Store.DataSource(); ok {
		return oracle.Check(ctx, oracle.CheckOptions{
			DSN: dsn, Schema: c.Store.SchemaOwner(),
			Sessions: sessions(c.Queue), Verify: verify, Quick: quick,
		})
	}
	path, _ := c.Store.SQLite() // the configuration has been checked: it is one of the two
	return embedded.Check(ctx, embedded.CheckOptions{Path: path, Verify: verify, Quick: quick})
}

// sessions is how many of the database a node takes at most. One waits for notices of
// dead letters, on the node that tells of them.
func sessions(q config.Queue) int {
	return q.SignalConsumers + q.ScheduleConsumers + q.CommandConsumers + oracle.DefaultWriters + oracle.DefaultReaders + 1
}

// diagnosis is what the verb prints with --json.
type diagnosis struct {
	Store    string           `json:"store"`
	Errors   int              `json:"errors"`
	Warnings int              `json:"warnings"`
	Findings []survey.Finding `json:"findings"`
}

// diagnose prints findings. Errors among them make it fail.
func (a *app) diagnose(address string, list []survey.Finding) error {
	d := diagnosis{Store: address, Findings: list}
	for _, f := range list {
		switch f.Severity {
		case survey.Wrong:
			d.Errors++
		case survey.Warning:
			d.Warnings++
		}
	}
	if a.json {
		if err := a.page.print(d); err != nil {
			return err
		}
	} else {
		d.write(a.page.out)
	}
	if d.Errors > 0 {
		return problem.New(problem.Unavailable, "doctor.errors", "%d of %d checks of %s found an error", d.Errors, len(list), address).
			WithHint("each line above says how to mend it")
	}
	return nil
}

// write is a line for each check, and below it its fix.
func (d *diagnosis) write(w io.Writer) {
	for _, f := range d.Findings {
		fmt.Fprintf(w, "%-8s%-38s %s\n", f.Severity, f.Check, f.Found)
		if f.Fix != "" {
			fmt.Fprintf(w, "%8smend: %s\n", "", f.Fix)
		}
	}
	fmt.Fprintf(w, "%d checks, %d errors, %d warnings\n", len(d.Findings), d.Errors, d.Warnings)
}
