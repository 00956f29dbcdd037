package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
)

// unmarshal reads a body, its keys as they are written, after refusing what a
// decoder lets pass: two meanings of one document would be a way around every check behind
// it, and what a queue cannot carry shall not be accepted here.
func unmarshal(data []byte, v any) error {
	if err := checkJSON(data); err != nil {
		return err
	}
	return jsonv2.Unmarshal(data, v)
}

// scope is an object or array that is being read.
type scope struct {
	object bool
	key    bool // the next token is a key
	seen   map[string]bool
}

// checkJSON accepts one JSON value in UTF-8, without keys that stand twice,
// at most MaxDepth deep.
func checkJSON(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("it is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var stack []scope
	for first := true; ; first = false {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) && len(stack) == 0 && !first {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it is not JSON: %w", err)
		}
		if !first && len(stack) == 0 {
			return errors.New("there is data after the JSON value")
		}
		if stack, err = step(stack, tok); err != nil {
			return err
		}
	}
}

// step follows one token.
func step(stack []scope, tok json.Token) ([]scope, error) {
	top := len(stack) - 1
	if d, ok := tok.(json.Delim); ok && (d == '}' || d == ']') {
		return stack[:top], nil
	}
	if top >= 0 && stack[top].object && stack[top].key {
		name, _ := tok.(string)
		if stack[top].seen[name] {
			return nil, fmt.Errorf("key %q stands twice in one object", clip(name))
		}
		stack[top].seen[name], stack[top].key = true, false
		return stack, nil
	}
	if top >= 0 {
		stack[top].key = stack[top].object
	}
	d, ok := tok.(json.Delim)
	if !ok {
		return stack, nil
	}
	if len(stack) == MaxDepth {
		return nil, fmt.Errorf("it nests deeper than %d levels", MaxDepth)
	}
	return append(stack, scope{object: d == '{', key: d == '{', seen: map[string]bool{}}), nil
}

// clip keeps hostile input out of messages.
func clip(s string) string {
	const most = 64
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
