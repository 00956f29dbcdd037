package main

import (
	"fmt"
	"os"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/problem"
)

func restoreCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "restore",
		Short: "Begin another epoch in a database that was put back from a backup, before any node is started on it",
		Long: `Begin another epoch in a database that was put back from a backup.

It copies nothing: put the backup in place, run this, then start the nodes.
Effects, tokens and derived signal ids of what happens from now on differ from
those of what happened after the backup was made, which the outside has seen.
Commands that are in the backup keep their keys. While a node is on the database
it is refused.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.load(cmd)
			if err != nil {
				return err
			}
			if path, ok := l.Store.SQLite(); ok {
				info, err := os.Stat(path)
				if err != nil {
					return missing(err, path).WithHint("put the backup there first")
				}
				if info.Size() == 0 { // a node makes a new database of it
					return problem.New(problem.NotFound, "store.missing", "the file at %s is empty", path).WithHint("put the backup there first")
				}
			}
			db, err := openStore(cmd.Context(), l.Store, l.Queue, "restore-"+uuid.NewString(), 0, a.logger(l.Log))
			if err != nil {
				return err
			}
			from, to, err := db.Parts().Identity.Raise(cmd.Context())
			if closing := db.Close(); err == nil {
				err = closing
			}
			if err != nil {
				return err
			}
			if a.json {
				return a.page.print(restored{Store: shown(l), From: from, Epoch: to})
			}
			fmt.Fprintf(a.page.out, "the database at %s was in epoch %d and is in epoch %d\n", shown(l), from, to)
			return nil
		},
	}
	config.Flags(c.Flags())
	return c
}

// restored is what the verb prints with --json.
type restored struct {
	Store string `json:"store"`
	From  int64  `json:"from"`
	Epoch int64  `json:"epoch"`
}
