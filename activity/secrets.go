package activity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	jsonv2 "github.com/go-json-experiment/json"
)

// MaxSecretBytes bounds one secret.
const MaxSecretBytes = 64 << 10

// shownSecret stands where a secret was, in what is kept of a request.
const shownSecret = "[secret]"

// Secrets gives the secrets that definitions name. A secret is a string, or an
// object with fields. It is asked at every attempt, so that a changed secret
// holds at once; ok is false when it knows none of that name.
type Secrets interface {
	Secret(name string) (value any, ok bool, err error)
}

// SecretStore finds secrets in the environment and in a folder. A variable is
// named by Prefix and the secret's name in upper case, with _ for what is
// neither letter nor digit. In the folder a secret is a file, or a folder
// with a file for each of its fields. What is an object in JSON is one.
type SecretStore struct {
	Prefix string                      // "" = the environment is not looked at
	Lookup func(string) (string, bool) // of the environment
	Dir    string                      // "" = no folder
}

var secretName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}$`)

// Secret implements Secrets.
func (s SecretStore) Secret(name string) (any, bool, error) {
	if !secretName.MatchString(name) {
		return nil, false, nil
	}
	if s.Prefix != "" && s.Lookup != nil {
		if text, ok := s.Lookup(s.Prefix + variableName(name)); ok {
			return secretValue([]byte(text)), true, nil
		}
	}
	if s.Dir == "" {
		return nil, false, nil
	}
	path := filepath.Join(s.Dir, name)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case !info.IsDir():
		text, err := secretFile(path)
		return secretValue(text), err == nil, err
	}
	fields := map[string]any{}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, false, err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue // how Kubernetes keeps versions of a mounted secret
		}
		text, err := secretFile(filepath.Join(path, e.Name()))
		if err != nil {
			return nil, false, err
		}
		fields[e.Name()] = strings.TrimRight(string(text), "\r\n")
	}
	return fields, true, nil
}

func variableName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '.' {
			return '_'
		}
		return r
	}, strings.ToUpper(name))
}

func secretFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > MaxSecretBytes || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file of at most %d bytes", path, MaxSecretBytes)
	}
	return os.ReadFile(path)
}

func secretValue(text []byte) any {
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) && d.Decode(&fields) == nil {
		return fields
	}
	return strings.TrimRight(string(text), "\r\n")
}

// lateRef is a place of a command that gets a secret.
type lateRef struct {
	At     string   `json:"at"` // JSON pointer into the command's input
	Name   string   `json:"name"`
	Path   []string `json:"path"`
	Before string   `json:"before"`
	After  string   `json:"after"`
}

// secretError is the failure of a command whose secret is not there. It never
// quotes a value.
func secretError(code, format string, args ...any) error {
	return problem.New(problem.Invalid, code, format, args...).
		WithHint("secrets are read by the node that makes the call, see AQUEDUCT_SECRETS_DIR and AQUEDUCT_SECRETS_PREFIX")
}

// secretFailure is the failure of a call whose secrets cannot be filled in: what
// the node does not give is not authorized, as the language says.
func secretFailure(err error) *engine.Failure {
	if code := problem.CodeOf(err); code == "secret.missing" || code == "secret.unreadable" {
		return permanent(typeAuthorization, http.StatusForbidden, "secret", err.Error())
	}
	return permanent(TypeConfiguration, http.StatusBadRequest, "secret", err.Error())
}

// secret finds a secret, or a field of it.
func (p *Performer) secret(name string, path []string) (any, error) {
	var v any
	ok := false
	if p.config.Secrets != nil {
		var err error
		if v, ok, err = p.config.Secrets.Secret(name); err != nil {
			p.config.Log.Error("a secret cannot be read", "secret", name, "error", err)
			return nil, secretError("secret.unreadable", "secret %q cannot be read on this node", name)
		}
	}
	if !ok {
		return nil, secretError("secret.missing", "secret %q is not known to this node", name)
	}
	for _, f := range path {
		m, isObject := v.(map[string]any)
		if v, ok = m[f]; !isObject || !ok {
			return nil, secretError("secret.missing", "secret %q has no field %q", name, strings.Join(path, "."))
		}
	}
	return v, nil
}

// filled returns the input of a call with its secrets, the same input as it
// may be shown, and the references that were filled in.
func (p *Performer) filled(input json.RawMessage, keep *secrecy) (full, shown json.RawMessage, refs []lateRef, err error) {
	var head struct {
		Secrets []lateRef `json:"secrets"`
		Named   []string  `json:"named"`
	}
	if err := jsonv2.Unmarshal(input, &head); err != nil {
		return input, input, nil, nil // a wrong input is told by who reads it
	}
	for _, name := range head.Named {
		if v, err := p.secret(name, nil); err == nil { // a call needs only what it sends
			keep.addValue(v, false)
		}
	}
	if len(head.Secrets) == 0 {
		return input, input, nil, nil
	}
	var a, b map[string]any
	for _, m := range []*map[string]any{&a, &b} {
		d := json.NewDecoder(bytes.NewReader(input))
		d.UseNumber()
		if err := d.Decode(m); err != nil {
			return nil, nil, nil, err
		}
	}
	for _, r := range head.Secrets {
		v, err := p.secret(r.Name, r.Path)
		if err != nil {
			return nil, nil, nil, err
		}
		text, isText := v.(string)
		if !isText && r.Before+r.After != "" {
			return nil, nil, nil, secretError("secret.form", "secret %q is not a text, and text stands beside it", r.Name)
		}
		keep.addValue(v, true)
		if isText {
			v = r.Before + text + r.After
			keep.addValue(v, true)
		}
		put(a, r.At, v)
		put(b, r.At, shownSecret)
	}
	return encode(a), encode(b), head.Secrets, nil
}

// put sets the value at a pointer; objects on the way to it are made.
func put(root any, pointer string, v any) {
	segments := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, s := range segments {
		s = strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
		last := i == len(segments)-1
		switch at := root.(type) {
		case map[string]any:
			if last {
				at[s] = v
			} else if at[s] == nil {
				at[s] = map[string]any{}
			}
			root = at[s]
		case []any:
			n, err := strconv.Atoi(s)
			if err != nil || n < 0 || n >= len(at) {
				return
			}
			if last {
				at[n] = v
			}
			root = at[n]
		}
	}
}
