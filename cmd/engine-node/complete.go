package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/nearest"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// Bounds of what a shell is offered for a word that is begun.
const (
	offerTime = 2 * time.Second // nobody waits longer for a key
	offerMax  = 100
)

// offers says what stands for a word in the usage of a verb: each with what tells it
// apart from others.
var offers = map[string]func(ctx context.Context, c *client.Client) ([]string, error){
	"ID":                     offerInstances,
	"INSTANCE":               offerInstances,
	"INSTANCE/POSITION":      offerCommands,
	"TASK":                   offerTasks,
	"LETTER":                 offerDeadLetters,
	"DEFINITION":             offerDefinitions,
	"ENVIRONMENT/DEFINITION": offerDefinitions,
	"TARGET":                 offerTargets,
	"PLAN":                   offerPlans,
}

// offer completes the arguments of a command by what there is, as its usage names them.
func offer(a *app, use string) cobra.CompletionFunc {
	words := strings.Fields(use)[1:]
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(words) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		word := words[min(len(args), len(words)-1)]
		if len(args) >= len(words) && !strings.HasSuffix(word, "...") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		word = strings.Trim(strings.TrimSuffix(word, "..."), "[]")
		if strings.HasPrefix(word, "FILE") {
			return nil, cobra.ShellCompDirectiveDefault
		}
		list := offers[word]
		if list == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), offerTime)
		defer cancel()
		node, end, err := a.connect(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer end()
		all, err := list(ctx, node)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var fit []string
		for _, o := range all {
			if strings.HasPrefix(o, begun) {
				fit = append(fit, o)
			}
		}
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}

// offered is one that a shell shows: a tab is before what explains it.
func offered(id string, about ...string) string {
	return id + "\t" + oneLine(strings.Join(strings.Fields(strings.Join(about, " ")), " "))
}

// offeredOf are the items of a page.
func offeredOf[T any](p client.Page[T], err error, item func(T) string) ([]string, error) {
	if err != nil {
		return nil, err
	}
	var all []string
	for _, i := range p.Items {
		all = append(all, item(i))
	}
	return all, nil
}

func offerInstances(ctx context.Context, c *client.Client) ([]string, error) {
	p, err := c.Instances(ctx, client.InstanceQuery{List: client.List{Limit: offerMax}})
	return offeredOf(p, err, func(i client.Instance) string { return offered(i.ID, i.Definition, i.Status, i.BusinessKey) })
}

func offerCommands(ctx context.Context, c *client.Client) ([]string, error) {
	p, err := c.Commands(ctx, client.CommandQuery{List: client.List{Limit: offerMax}})
	return offeredOf(p, err, func(x client.Command) string { return offered(commandText(x), x.Name, x.Target) })
}

func offerTasks(ctx context.Context, c *client.Client) ([]string, error) {
	p, err := c.Tasks(ctx, client.TaskQuery{List: client.List{Limit: offerMax}})
	return offeredOf(p, err, func(t client.Task) string { return offered(t.ID, taskTitle(t), t.Status, t.BusinessKey) })
}

func offerDeadLetters(ctx context.Context, c *client.Client) ([]string, error) {
	p, err := c.DeadLetters(ctx, client.DeadLetterQuery{List: client.List{Limit: offerMax}})
	return offeredOf(p, err, func(d client.DeadLetter) string { return offered(d.ID, d.Queue, d.Reason, d.InstanceID) })
}

func offerDefinitions(ctx context.Context, c *client.Client) ([]string, error) {
	p, err := c.Definitions(ctx, client.List{Limit: offerMax})
	all, err := offeredOf(p, err, func(d client.Definition) string { return offered(d.Name, d.Title) })
	return slices.Compact(all), err // versions of one name are neighbours
}

func offerTargets(ctx context.Context, c *client.Client) ([]string, error) {
	list, err := c.Targets(ctx)
	return offeredOf(client.Page[client.Target]{Items: list}, err, func(t client.Target) string { return offered(t.Name, t.Breaker) })
}

// wordOf is the error of an argument where a command was expected.
func wordOf(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	p := usage("unknown command %q for %q", args[0], c.CommandPath())
	if near, ok := nearest.Name(args[0], names); ok {
		return p.WithHint("did you mean %s %s?", c.CommandPath(), near)
	}
	return p.WithHint("see %s --help", c.CommandPath())
}

// flagError is an error of a flag, with the one that was meant. The flags of a command that
// nobody knows are not known either.
func flagError(c *cobra.Command, err error) error {
	if c.HasSubCommands() {
		if unknown := wordOf(c, c.Flags().Args()); unknown != nil {
			return unknown
		}
	}
	p := usage("%s", err)
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near, ok := nearest.Name(strings.TrimLeft(unknown.GetSpecifiedName(), "-"), names); ok {
			return p.WithHint("did you mean --%s?", near)
		}
	}
	return p.WithHint("see %s --help", c.CommandPath())
}

// argumentError is an error in how many arguments a command was given.
func argumentError(c *cobra.Command, err error) error {
	var p *problem.Error
	if errors.As(err, &p) {
		return err
	}
	return usage("%s", err).WithHint("usage: %s", c.UseLine())
}

func offerPlans(ctx context.Context, c *client.Client) ([]string, error) {
	p, err := client.NewBulk(c).List(ctx, client.List{Limit: offerMax})
	return offeredOf(p, err, func(b client.BulkPlan) string { return offered(b.ID, b.Operation, b.Status) })
}
