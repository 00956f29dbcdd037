package steps

import (
	"context"
	"encoding/json"
	"testing"
)

// session is a transaction of no database.
type session struct {
	args       map[string]any // of the last statement
	rolledBack int
}

func (s *session) Run(_ context.Context, _ string, args map[string]any) (Answer, error) {
	s.args = args
	return Answer{Affected: 1}, nil
}

func (s *session) Call(_ context.Context, _ string, args map[string]any, _ []string) (map[string]any, error) {
	s.args = args
	return nil, nil
}

func (s *session) Savepoint() error           { return nil }
func (s *session) RollBack() error            { s.rolledBack++; return nil }
func (s *session) Over() bool                 { return false }
func (s *session) Failure(err error) *Failure { return &Failure{Detail: err.Error()} }

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("oh") }

// A function that panics, and a result that does when it is written, are errors of the task.
func TestAPanicIsAnErrorOfTheTask(t *testing.T) {
	t.Parallel()
	var set Set
	set.Register("f", func(context.Context, Tx, json.RawMessage) (any, error) { panic("oh") })
	set.Register("g", func(context.Context, Tx, json.RawMessage) (any, error) { return panics{}, nil })
	set.Register("h", func(context.Context, Tx, json.RawMessage) (any, error) { return map[string]int{"n": 1}, nil })
	for target, want := range map[string]string{"go/f": "oh", "go/g": "oh", "go/h": ""} {
		tx := &session{}
		output, raised, err := set.Perform(tx, target, []byte(`{}`))
		switch {
		case err != nil:
			t.Errorf("%s: %v", target, err)
		case want == "":
			if raised != nil || tx.rolledBack != 0 || string(output) != `{"n":1}` {
				t.Errorf("%s: %s, %+v", target, output, raised)
			}
		case raised == nil || raised.Detail != want || tx.rolledBack != 1 || output != nil:
			t.Errorf("%s: %s, %+v, rolled back %d times", target, output, raised, tx.rolledBack)
		}
	}
}

// A whole number is bound as it is, also one that a float would round.
func TestWholeNumbersAreBoundExactly(t *testing.T) {
	t.Parallel()
	set := Set{statements: map[string]Statement{"put": {Name: "put", Text: "insert into t values (:n)", Params: []string{"n"}}}}
	for number, want := range map[string]any{
		"9007199254740993":                        int64(9007199254740993),
		"-9223372036854775808":                    int64(-9223372036854775808),
		"9223372036854775808":                     json.Number("9223372036854775808"),
		"-99999999999999999999999999999999999999": json.Number("-99999999999999999999999999999999999999"),
		"999999999999999999999999999999999999999": nil,
		"0.5":  0.5,
		"1e20": 1e20,
	} {
		tx := &session{}
		_, raised, err := set.Perform(tx, "sql/put", []byte(`{"args":{"n":`+number+`}}`))
		if err != nil || (raised != nil) != (want == nil) || tx.args["n"] != want {
			t.Errorf("%s is bound as %#v, want %#v: %+v, %v", number, tx.args["n"], want, raised, err)
		}
	}
}
