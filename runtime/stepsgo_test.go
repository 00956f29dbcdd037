package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/sql/steps"
)

// A Go function of the program that embeds a node has the turn's transaction: what it
// writes is there with the instance, and nothing when it fails, panics or asks for more
// than a statement.
func TestGoFunctionsAreSteps(t *testing.T) {
	t.Parallel()
	stepPlaces(t, func(t *testing.T, s *shop) {
		set := shopSet(t)
		set.Register("reserve", reserve)
		set.Register("leave", func(ctx context.Context, tx steps.Tx, _ json.RawMessage) (any, error) {
			if _, err := tx.Run(ctx, shopStatements["note"], map[string]any{"id": "x", "what": "left"}); err != nil {
				return nil, err
			}
			return tx.Run(ctx, "commit", nil)
		})
		set.Register("panic", func(ctx context.Context, tx steps.Tx, _ json.RawMessage) (any, error) {
			if _, err := tx.Run(ctx, shopStatements["note"], map[string]any{"id": "x", "what": "panicked"}); err != nil {
				return nil, err
			}
			panic("a bug")
		})
		n := stepping(t, s.place, set, nil, head("go")+`
  - good: {call: go, with: {function: reserve, args: {item: pen, qty: 4}}}
  - try:
      try:
        - bad: {call: go, with: {function: reserve, args: {item: pen, qty: 7}}}
      catch:
        errors: {with: {type: 'https://shop.example/errors/out-of-stock', status: 409}}
        as: e
        do:
          - say: {set: {good: '${ . }', e: '${ $e.detail }'}}
`, head("leave")+"  - x: {call: go, with: {function: leave}}\n", head("panic")+"  - x: {call: go, with: {function: panic}}\n")
		n.begin(t, "i", "t/go", nil)
		if got, want := n.output(t, "i"), `{"e":"6 left, 7 wanted","good":{"left":6}}`; got != want {
			t.Errorf("output %s, want %s", got, want)
		}
		for name, want := range map[string]string{"leave": "it begins with commit", "panic": "a bug"} {
			n.begin(t, name, "t/"+name, nil)
			if row := n.until(t, name, status("faulted")); !strings.Contains(row.ErrorDetail, want) {
				t.Errorf("%s: %+v", name, row)
			}
		}
		if got := strings.Join(s.texts("select WHAT from SHOP_DONE"), " "); got != "reserved" || s.left() != 6 {
			t.Errorf("done %q, %d left", got, s.left())
		}
	})
}

// reserve takes what is there, or says how much is.
func reserve(ctx context.Context, tx steps.Tx, args json.RawMessage) (any, error) {
	var in struct {
		Item string
		Qty  int
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, err
	}
	if _, err := tx.Run(ctx, shopStatements["note"], map[string]any{"id": in.Item, "what": "reserved"}); err != nil {
		return nil, err
	}
	found, err := tx.Run(ctx, shopStatements["look"], map[string]any{"item": in.Item})
	if err != nil {
		return nil, err
	}
	if len(found.Rows) != 1 {
		return nil, errors.New("no such item")
	}
	var left int
	if _, err := fmt.Sscan(fmt.Sprint(found.Rows[0]["LEFT_OVER"]), &left); err != nil {
		return nil, err
	}
	if left < in.Qty {
		return nil, &steps.Failure{Type: "https://shop.example/errors/out-of-stock", Status: 409, Title: "Out of stock", Detail: fmt.Sprintf("%d left, %d wanted", left, in.Qty)}
	}
	_, err = tx.Run(ctx, shopStatements["take"], map[string]any{"item": in.Item, "qty": in.Qty})
	return map[string]int{"left": left - in.Qty}, err
}
