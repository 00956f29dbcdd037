// Package schema checks JSON against JSON Schemas.
//
// Drafts 4 to 2020-12 are known, 2020-12 holds where a schema does not say. A
// schema is complete in itself: a reference to another document is an error,
// nothing is ever fetched. Patterns are those of Go (RE2), formats are not
// checked, as the standard has it.
//
// The same schema and data always give the same answer.
package schema

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Limits.
const (
	MaxPlaces   = 10  // reported of one value
	MaxExponent = 400 // of a number: one of a billion would be written out to be compared
	MaxCached   = 256 // compiled schemas in one Cache
)

// Schema is a compiled JSON Schema, safe for use by many goroutines.
type Schema struct{ compiled *jsonschema.Schema }

// nothing refuses to load what a schema refers to.
type nothing struct{}

func (nothing) Load(uri string) (any, error) {
	return nil, fmt.Errorf("it refers to another document, %q", uri)
}

// at is the name under which a schema knows itself.
const at = "schema://local/document"

// Compile compiles a schema. Its problem is schema.invalid.
func Compile(raw json.RawMessage) (*Schema, error) {
	doc, err := decode(raw)
	if err != nil {
		return nil, problem.Wrap(err, problem.Invalid, "schema.invalid", "schema is not JSON")
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nothing{})
	if err := c.AddResource(at, doc); err != nil {
		return nil, problem.New(problem.Invalid, "schema.invalid", "schema is not one: %s", short(err))
	}
	s, err := c.Compile(at)
	if err != nil {
		return nil, problem.New(problem.Invalid, "schema.invalid", "schema is not one: %s", short(err))
	}
	return &Schema{s}, nil
}

// short says why a schema is none, without its made-up address.
func short(err error) string {
	var invalid *jsonschema.SchemaValidationError
	var why *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &why) {
		var all []string
		for _, p := range places(why, nil) {
			all = append(all, p.String())
		}
		return strings.Join(all, "; ")
	}
	return strings.ReplaceAll(err.Error(), at, "")
}

// Check returns where raw does not fit the schema, at most [MaxPlaces] places,
// each with a pointer into raw; none means that it fits.
func (s *Schema) Check(raw json.RawMessage) []problem.Place {
	v, err := decode(raw)
	if err != nil {
		return []problem.Place{{Detail: err.Error()}}
	}
	err = s.compiled.Validate(v)
	var why *jsonschema.ValidationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &why):
		return places(why, nil)
	}
	return []problem.Place{{Detail: err.Error()}}
}

var printer = message.NewPrinter(language.English)

// places collects the leaves of an error: the rest only says that a part of
// the schema was not met.
func places(e *jsonschema.ValidationError, found []problem.Place) []problem.Place {
	if len(e.Causes) == 0 && len(found) < MaxPlaces {
		pointer := ""
		for _, s := range e.InstanceLocation {
			pointer += "/" + strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
		}
		found = append(found, problem.Place{Pointer: pointer, Detail: e.ErrorKind.LocalizedString(printer)})
	}
	for _, c := range e.Causes {
		found = places(c, found)
	}
	return found
}

// Summary writes places in one line.
func Summary(places []problem.Place) string {
	parts := make([]string, len(places))
	for i, p := range places {
		parts[i] = p.Detail
		if p.Pointer != "" {
			parts[i] = p.Pointer + ": " + p.Detail
		}
	}
	return strings.Join(parts, "; ")
}

// decode reads one JSON value whose numbers can be compared.
func decode(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("there is more than one value")
	}
	return v, numbers(v)
}

func numbers(v any) error {
	switch v := v.(type) {
	case json.Number:
		_, exponent, ok := strings.Cut(strings.ToLower(string(v)), "e")
		if n, err := strconv.Atoi(exponent); ok && (err != nil || n > MaxExponent || n < -MaxExponent) {
			return fmt.Errorf("a number has an exponent beyond %d", MaxExponent)
		}
	case []any:
		for _, x := range v {
			if err := numbers(x); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, x := range v {
			if err := numbers(x); err != nil {
				return err
			}
		}
	}
	return nil
}

// Cache keeps compiled schemas by the digest of their text. The zero Cache is
// ready for use by many goroutines.
type Cache struct {
	mu   sync.Mutex
	kept map[[sha256.Size]byte]*Schema
}

// Compile is [Compile], once for each text.
func (c *Cache) Compile(raw json.RawMessage) (*Schema, error) {
	key := sha256.Sum256(raw)
	c.mu.Lock()
	s := c.kept[key]
	c.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := Compile(raw)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || len(c.kept) >= MaxCached {
		c.kept = map[[sha256.Size]byte]*Schema{} // they are compiled again as they are asked for
	}
	c.kept[key] = s
	return s, nil
}
