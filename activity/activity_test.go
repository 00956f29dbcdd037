package activity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/aqueduct-engine/aqueduct/engine"
)

func performer(t *testing.T, c Config) *Performer {
	t.Helper()
	p := New(c)
	t.Cleanup(p.Close)
	return p
}

func TestFunctionSeesItsAttempt(t *testing.T) {
	t.Parallel()
	p := performer(t, Config{})
	var got Attempt
	p.Register("score", func(ctx context.Context, input json.RawMessage) (any, error) {
		got = Info(ctx)
		return map[string]any{"in": input}, nil
	})
	result, f := p.Perform(context.Background(), engine.Command{
		Target: "score", Input: json.RawMessage(`{"a":1}`), Pointer: "/do/0", Headers: map[string]string{"traceparent": "00-x"}, Instance: "i-1",
	}, "i-1/7", 3)
	if f != nil || string(result) != `{"in":{"a":1}}` {
		t.Fatalf("got %s, %+v", result, f)
	}
	if got.Target != "score" || got.Key != "i-1/7" || got.Number != 3 || got.Instance != "i-1" || got.Pointer != "/do/0" ||
		got.Headers["traceparent"] != "00-x" {
		t.Errorf("got %+v", got)
	}
	if a := Info(context.Background()); a.Key != "" {
		t.Errorf("outside of a call: %+v", a)
	}
}

func TestFailuresOfFunctions(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	credit := &Error{Type: "https://bank/errors/credit", Status: 422, Title: "no credit", Detail: "score 12"}
	cases := []struct {
		name string
		err  error
		want engine.Failure
	}{
		{"plain", broken, *ill(retryable(TypeRuntime, 500, "function failed", "broken"))},
		{"permanent", fmt.Errorf("a: %w", Permanent(broken)), *permanent(TypeRuntime, 500, "function failed", "a: broken")},
		{"retry after", RetryAfter(broken, time.Minute), engine.Failure{
			Error: retryable(TypeRuntime, 500, "function failed", "broken").Error, Retry: true, Ill: true, After: time.Minute}},
		{"negative delay", RetryAfter(broken, -1), *ill(retryable(TypeRuntime, 500, "function failed", "broken"))},
		{"workflow error", credit, *permanent(credit.Type, 422, "no credit", "score 12")},
		{"workflow error, retried", RetryAfter(credit, 0), *ill(retryable(credit.Type, 422, "no credit", "score 12"))},
		{"bare workflow error", &Error{Title: "nope"}, *permanent(TypeRuntime, 500, "nope", "nope")},
		{"typed workflow error", &Error{Type: "x:y"}, *permanent("x:y", 500, "", "x:y")},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := performer(t, Config{})
			p.Register("f", func(context.Context, json.RawMessage) (any, error) { return "ignored", c.err })
			result, f := p.Perform(context.Background(), engine.Command{Target: "f"}, "k/1", 1)
			if result != nil || f == nil || *f != c.want {
				t.Errorf("got %s, %+v\nwant %+v", result, f, c.want)
			}
		})
	}
	if Permanent(nil) != nil || RetryAfter(nil, 1) != nil {
		t.Error("a mark on no error is an error")
	}
}

func TestPanicIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	p := performer(t, Config{})
	p.Register("f", func(context.Context, json.RawMessage) (any, error) { panic("oh") })
	_, f := p.Perform(context.Background(), engine.Command{Target: "f"}, "k/1", 1)
	if f == nil || !f.Retry || f.Error.Detail != `function "f" panicked: oh` {
		t.Errorf("got %+v", f)
	}
}

// TestAResultThatPanicsIsAFailedAttempt that leaves it open what was done: the function has returned.
func TestAResultThatPanicsIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	p := performer(t, Config{})
	p.Register("f", func(context.Context, json.RawMessage) (any, error) { return panics{}, nil })
	result, f := p.Perform(context.Background(), engine.Command{Target: "f"}, "k/1", 1)
	if result != nil || f == nil || f.Retry || !f.Open || f.Error.Title != "result is not JSON" || !strings.Contains(f.Error.Detail, "oh") {
		t.Errorf("got %+v", f)
	}
}

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("oh") }

func TestFunctionTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := performer(t, Config{Timeout: time.Minute})
		p.Register("slow", func(ctx context.Context, _ json.RawMessage) (any, error) {
			<-ctx.Done()
			return nil, fmt.Errorf("slow: %w", ctx.Err())
		})
		for _, c := range []struct{ timeout, want time.Duration }{{0, time.Minute}, {time.Second, time.Second}} {
			start := time.Now()
			_, f := p.Perform(t.Context(), engine.Command{Target: "slow", Timeout: c.timeout}, "k/1", 1)
			if f == nil || !f.Retry || f.Error.Type != TypeTimeout || f.Error.Status != 408 || time.Since(start) != c.want {
				t.Errorf("timeout %s: got %+v after %s", c.timeout, f, time.Since(start))
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, f := p.Perform(ctx, engine.Command{Target: "slow"}, "k/1", 1); f == nil || !f.Retry || f.Error.Title != "interrupted" {
			t.Errorf("interrupted: got %+v", f)
		}
	})
}

func TestResultsAreBoundedJSON(t *testing.T) {
	t.Parallel()
	p := performer(t, Config{MaxResultBytes: 10})
	p.Register("fits", func(context.Context, json.RawMessage) (any, error) { return "12345678", nil })
	p.Register("large", func(context.Context, json.RawMessage) (any, error) { return "123456789", nil })
	p.Register("chan", func(context.Context, json.RawMessage) (any, error) { return make(chan int), nil })
	p.Register("none", func(context.Context, json.RawMessage) (any, error) { return nil, nil })
	if r, f := p.Perform(context.Background(), engine.Command{Target: "fits"}, "k/1", 1); f != nil || string(r) != `"12345678"` {
		t.Errorf("fits: %s, %+v", r, f)
	}
	if r, f := p.Perform(context.Background(), engine.Command{Target: "none"}, "k/1", 1); f != nil || string(r) != `null` {
		t.Errorf("none: %s, %+v", r, f)
	}
	r, f := p.Perform(context.Background(), engine.Command{Target: "large"}, "k/1", 1)
	if r != nil || f == nil || f.Retry || !strings.Contains(f.Error.Detail, "[limit.result]") {
		t.Errorf("large: %s, %+v", r, f)
	}
	if _, f := p.Perform(context.Background(), engine.Command{Target: "chan"}, "k/1", 1); f == nil || f.Retry {
		t.Errorf("chan: %+v", f)
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	p := performer(t, Config{})
	ok := func(context.Context, json.RawMessage) (any, error) { return 1, nil }
	p.Register("f", ok)
	if !p.Can("f") || !p.Can("http") || p.Can("g") {
		t.Error("Can is wrong about f, http or g")
	}
	_, f := p.Perform(context.Background(), engine.Command{Target: "g"}, "k/1", 1)
	if f == nil || f.Retry || f.Error.Type != TypeConfiguration {
		t.Errorf("unknown target: %+v", f)
	}
	for name, fn := range map[string]Func{"": ok, "http": ok, "f": ok, "nil": nil} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("register %q did not panic", name)
				}
			}()
			p.Register(name, fn)
		}()
	}
}

// gather returns the values of a metric's series by their labels, "a=b,c=d".
func gather(t *testing.T, r *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue()
			if value != 0 {
				got[strings.Join(labels, ",")] = value
			}
		}
	}
	return got
}

func TestAttemptsAreCounted(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	p := performer(t, Config{Metrics: r})
	answers := []error{nil, errors.New("x"), Permanent(errors.New("y")), nil}
	p.Register("f", func(ctx context.Context, _ json.RawMessage) (any, error) { return nil, answers[Info(ctx).Number] })
	for i := range answers {
		p.Perform(context.Background(), engine.Command{Target: "f"}, "k/1", i)
	}
	got := fmt.Sprint(gather(t, r, "aqueduct_activity_attempts_total"))
	if want := "map[outcome=failed,target=f:1 outcome=ok,target=f:2 outcome=retry,target=f:1]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
