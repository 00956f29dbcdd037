// Program embedded uses Aqueduct as a library: a store, functions of its own, a
// definition as a document and one in Go, each run to its end in this process.
//
//	go run ./examples/embedded [DATABASE]
//
// Run it twice on one database file: the order is charged once.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/settings"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/embedded"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/aqueduct-engine/aqueduct/workflow"
)

const order = `
document: {dsl: '1.0.3', namespace: shop, name: order, version: '1.0.0'}
do:
  - charge:
      call: chargeCard
      with: {card: '${ .card }', cents: '${ .cents }'}
      output: {as: '${ $input + {receipt: .receipt} }'}
  - ship:
      call: shipParcel
      with: {to: '${ .address }'}
      output: {as: '${ $input + {parcel: .parcel} | del(.card) }'}
`

func main() {
	path := "embedded.db"
	if len(os.Args) > 1 {
		path = os.Args[1]
	}
	db, err := embedded.Open(context.Background(), sqlite.Options{Path: path})
	if err == nil {
		err = errors.Join(run(context.Background(), db, os.Stdout), db.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "embedded:", err)
		os.Exit(1)
	}
}

// database is what the program needs of a store: oracle.Open gives one, too.
type database interface {
	backend.Store
	definition.Repository
}

func run(ctx context.Context, db database, out io.Writer) (err error) {
	functions := activity.New(activity.Config{})
	functions.Register("chargeCard", chargeCard(out))
	functions.Register("shipParcel", shipParcel(out))
	functions.Register("sendCard", func(_ context.Context, to json.RawMessage) (any, error) { return "to " + string(to), nil })

	definitions := definition.New(db, openworkflow.Parsers(), time.Now)
	config := runtime.Config{Store: db.Parts(), Definitions: definitions, Performer: functions}
	nodes := settings.Book{Kept: config.Store.Settings, Now: time.Now}
	if err := nodes.Join(ctx, "shop", config.Settings()); err != nil {
		return err
	}
	node, err := runtime.New(ctx, config)
	if err != nil {
		return err
	}
	thanks, err := thanking()
	if err != nil {
		return err
	}
	if _, err := definitions.PublishCode(ctx, thanks); err != nil { // after runtime.New, before Run
		return err
	}
	working, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- node.Run(working) }()
	defer func() { stop(); err = errors.Join(err, <-done) }()
	if _, _, err := definitions.Publish(ctx, "order.yaml", []byte(order)); err != nil {
		return err
	}

	// The start key makes this idempotent: the second run of the program finds
	// the first one's order.
	id, created, err := node.Start(ctx, "", signal.Start{
		Definition: "shop/order", BusinessKey: "order-7", StartKey: "order-7",
		Input: json.RawMessage(`{"card": "4242", "cents": 1999, "address": "1 Main Street"}`),
	}, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "order %s, new: %t\n", id, created)
	s, err := wait(ctx, node, id)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s\n", s.Status, s.State.Output)
	if id, _, err = node.Start(ctx, "", signal.Start{Definition: "shop/thanks", StartKey: "order-7", BusinessKey: "order-7", Input: json.RawMessage(`"1 Main Street"`)}, nil); err != nil {
		return err
	}
	if s, err = wait(ctx, node, id); err == nil {
		fmt.Fprintf(out, "%s: %s\n", s.Status, s.State.Output)
	}
	return err
}

// thanking is a workflow in Go: a card is sent to who has ordered.
func thanking() (*workflow.Definition, error) {
	card := workflow.Call[string, string]("card", "sendCard")
	w := workflow.New[string]("shop/thanks", "1.0.0")
	workflow.Start(w, func(_ string, in workflow.Input[string]) (string, workflow.Do) {
		return in.Value, workflow.Do{card.With(in.Value)}
	}, workflow.To(card))
	workflow.On(w, card, func(address string, in workflow.Input[string]) (string, workflow.Do) {
		return address, workflow.Do{workflow.Complete("thanked " + in.Value)}
	}, workflow.To())
	return w.Definition()
}

// chargeCard is an ordinary function. Its key is the same on every attempt, so
// a payment provider can tell a repetition from a second charge.
func chargeCard(out io.Writer) activity.Func {
	return func(ctx context.Context, input json.RawMessage) (any, error) {
		var in struct{ Cents int }
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, activity.Permanent(err)
		}
		fmt.Fprintf(out, "charging %d cents (attempt %d)\n", in.Cents, activity.Info(ctx).Number)
		return map[string]string{"receipt": "r-1"}, nil
	}
}

func shipParcel(out io.Writer) activity.Func {
	return func(context.Context, json.RawMessage) (any, error) {
		fmt.Fprintln(out, "shipping")
		return map[string]string{"parcel": "p-1"}, nil
	}
}

// wait looks at the instance until it has ended.
func wait(ctx context.Context, node *runtime.Runtime, id string) (snapshot.Snapshot, error) {
	for {
		s, err := node.Snapshot(ctx, id)
		if err != nil || s.Status.Closed() || s.Status == snapshot.Faulted {
			return s, err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return s, ctx.Err()
		}
	}
}
