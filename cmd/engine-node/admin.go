package main

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/sql/oracle"
)

func migrateCommand(a *app) *cobra.Command {
	runtimeUser := ""
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Make the database, or bring it to this version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.load(cmd)
			if err != nil {
				return err
			}
			if err := a.migrate(cmd.Context(), l, runtimeUser); err != nil {
				return err
			}
			if a.json {
				return a.page.print(map[string]string{"store": shown(l), "version": version()})
			}
			fmt.Fprintf(a.page.out, "the database at %s is ready\n", shown(l))
			return nil
		},
	}
	config.Flags(c.Flags())
	c.Flags().StringVar(&runtimeUser, "runtime-user", "", "user of the nodes on Oracle, who gets the grants that they need; empty = the owner runs them")
	return c
}

// migrate installs the schema that a store needs. On Oracle the user of the
// address must be the owner.
func (a *app) migrate(ctx context.Context, l *config.Loaded, runtimeUser string) error {
	if dsn, ok := l.Store.DataSource(); ok {
		_, _, err := oracle.Migrate(ctx, oracle.Installation{DSN: dsn, RuntimeUser: runtimeUser, Version: version()})
		return err
	}
	if runtimeUser != "" {
		return usage("--runtime-user: the embedded store has no users")
	}
	if err := makeFolder(l.Store); err != nil {
		return err
	}
	db, err := openStore(ctx, l.Store, l.Queue, nodeName(""), 0, a.logger(l.Log))
	if err != nil {
		return err
	}
	return db.Close()
}

// shown is the address of the store without its secrets.
func shown(l *config.Loaded) string {
	for _, v := range l.Values() {
		if v.Key == "store.url" {
			return v.Value
		}
	}
	return ""
}

func configCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Print the settings in force and where they come from, secrets masked",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.load(cmd)
			if err != nil {
				return err
			}
			return l.Print(a.page.out, a.json)
		},
	}
	config.Flags(c.Flags())
	c.AddCommand(acceptCommand(a), recordedCommand(a))
	return c
}

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the program's version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.json {
				return a.page.print(map[string]string{"version": version(), "commit": commit()})
			}
			fmt.Fprintln(a.page.out, versionText())
			return nil
		},
	}
}

// versionText is a line that says which program this is.
func versionText() string {
	if c := commit(); c != "" {
		return "engine-node " + version() + " (" + c + ")"
	}
	return "engine-node " + version()
}

// commit is of what sources the Go tool built the program: 12 digits, and + where they
// were changed; "" where it was not said.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	digits, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			digits = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+"
		}
	}
	if digits == "" {
		return ""
	}
	return digits + changed
}

// version is what the Go tool stamped into the program.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
