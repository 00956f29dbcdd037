package activity

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// secretsOf are secrets by name.
type secretsOf map[string]any

func (s secretsOf) Secret(name string) (any, bool, error) {
	if name == "broken" {
		return nil, false, fmt.Errorf("hunter2 cannot be read")
	}
	v, ok := s[name]
	return v, ok, nil
}

func guarded(t *testing.T, accept func(*http.Request) bool, challenge string) string {
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !accept(r) {
			if challenge != "" {
				w.Header().Set("WWW-Authenticate", challenge)
			}
			http.Error(w, "you sent "+r.Header.Get("Authorization")+r.Header.Get("X-Key"), http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"ok":true}`)
	})
}

func TestBasicAndBearer(t *testing.T) {
	t.Parallel()
	url := guarded(t, func(r *http.Request) bool {
		u, p, _ := r.BasicAuth()
		return u == "ann" && p == "hunter2" || r.Header.Get("Authorization") == "Bearer hunter2"
	}, "")
	p := performer(t, Config{Secrets: secretsOf{
		"ann": map[string]any{"username": "ann", "password": "hunter2"}, "token": "hunter2", "fields": map[string]any{"token": "hunter2"},
		"wrong": map[string]any{"user": "ann"},
	}})
	for input, want := range map[string]string{
		`{"basic":{"username":"ann","password":"hunter2"}}`: "",
		`{"basic":{"use":"ann"}}`:                           "",
		`{"bearer":{"token":"hunter2"}}`:                    "",
		`{"bearer":{"use":"token"}}`:                        "",
		`{"bearer":{"use":"fields"}}`:                       "",
		`{"basic":{"username":"ann","password":"hunter3"}}`: "answered 401",
		`{"basic":{"use":"wrong"}}`:                         "[secret.form]",
		`{"basic":{"use":"none"}}`:                          "[secret.missing]",
		`{"basic":{"use":"broken"}}`:                        "[secret.unreadable]",
		`{"basic":1}`:                                       "not of its form",
		`{}`:                                                "names no scheme",
	} {
		_, f := do(t, p, `{"uri":"`+url+`","origins":["`+url+`"],"authentication":`+input+`}`, url)
		if want == "" && f != nil || want != "" && (f == nil || !strings.Contains(f.Error.Detail, want) || f.Retry) {
			t.Errorf("%s: %+v", input, f)
		}
		if f != nil && (strings.Contains(f.Error.Detail, "hunter2") || strings.Contains(f.Error.Detail, "hunter3")) {
			t.Errorf("%s: %s", input, f.Error.Detail)
		}
	}
}

// TestDigestOfTheStandard is the example of RFC 7616, 3.9.1.
func TestDigestOfTheStandard(t *testing.T) {
	t.Parallel()
	for algorithm, want := range map[string]string{
		"MD5":     "8ca523f5e9506fed4657c9700eebdbec",
		"SHA-256": "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
	} {
		got := digestHeader(map[string]string{
			"realm": "http-auth@example.org", "nonce": "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", "algorithm": algorithm, "qop": "auth, auth-int",
			"opaque": "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS",
		}, credentials{Username: "Mufasa", Password: "Circle of Life"}, "GET", "/dir/index.html", "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")
		if !strings.Contains(got, `response="`+want+`"`) {
			t.Errorf("%s: %s", algorithm, got)
		}
	}
}

func TestDigestAnswersTheChallenge(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	url := guarded(t, func(r *http.Request) bool {
		requests.Add(1)
		h := r.Header.Get("Authorization")
		if h == "" {
			return false
		}
		f := challengeFields(strings.TrimPrefix(h, "Digest "))
		want := digestHeader(map[string]string{"realm": `a "b"`, "nonce": "n1", "algorithm": "SHA-256", "qop": "auth"},
			credentials{Username: "ann", Password: "hunter2"}, r.Method, r.URL.RequestURI(), f["cnonce"])
		return strings.Contains(want, f["response"])
	}, `Digest realm="a \"b\"", nonce="n1", algorithm=SHA-256, qop="auth,auth-int"`)
	p := performer(t, Config{})
	input := `{"method":"post","uri":"%s/a?b=1","body":{"x":1},"authentication":{"digest":{"username":"ann","password":"` + "%%s" + `"}}}`
	for password, ok := range map[string]bool{"hunter2": true, "hunter3": false} {
		requests.Store(0)
		_, f := do(t, p, strings.Replace(fmt.Sprintf(input, url), "%s", password, 1), url)
		if (f == nil) != ok || requests.Load() != 2 {
			t.Errorf("%s: %+v after %d requests", password, f, requests.Load())
		}
	}
	for _, challenge := range []string{`Basic realm="x"`, `Digest realm="x", nonce="n", algorithm=SHA-512`, `Digest realm="x", nonce="n", qop="auth-int"`} {
		if h, ok := digestAnswer([]string{challenge}, credentials{}, &http.Request{}); ok {
			t.Errorf("%s is answered: %s", challenge, h)
		}
	}
}

// The answer to a challenge is for the address that challenges: where it was redirected to.
func TestDigestIsForWhereItWasRedirectedTo(t *testing.T) {
	t.Parallel()
	bodies := map[string]string{}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/a" {
			http.Redirect(w, r, "/a/?b=1", http.StatusTemporaryRedirect)
			return
		}
		f := challengeFields(strings.TrimPrefix(r.Header.Get("Authorization"), "Digest "))
		if f["uri"] != r.URL.RequestURI() {
			w.Header().Set("WWW-Authenticate", `Digest realm="r", nonce="n", qop="auth"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		body, _ := io.ReadAll(r.Body)
		bodies[r.Method] = string(body)
	})
	for method, body := range map[string]string{"get": "", "post": `,"body":{"x":1}`} {
		_, f := do(t, performer(t, Config{}), `{"method":"`+method+`","redirect":true,"uri":"`+url+`/a"`+body+`,"authentication":{"digest":{"username":"ann","password":"hunter2"}}}`, "")
		if f != nil {
			t.Errorf("%s: %+v", method, f)
		}
	}
	if got, ok := bodies["GET"]; !ok || got != "" || bodies["POST"] != `{"x":1}` {
		t.Errorf("%q", bodies)
	}
}

// An address that another origin has chosen gets no answer.
func TestDigestIsForNoAddressOfOthers(t *testing.T) {
	t.Parallel()
	var shown atomic.Int64
	var home string
	away := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, home+"/chosen", http.StatusFound) })
	home = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/a" {
			http.Redirect(w, r, away, http.StatusFound)
			return
		}
		if r.Header.Get("Authorization") != "" {
			shown.Add(1)
		}
		w.Header().Set("WWW-Authenticate", `Digest realm="r", nonce="n", qop="auth"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	_, f := do(t, performer(t, Config{}), `{"redirect":true,"uri":"`+home+`/a","authentication":{"digest":{"username":"ann","password":"hunter2"}}}`, "")
	if f == nil || f.Error.Status != http.StatusUnauthorized || shown.Load() != 0 {
		t.Errorf("shown %d times: %+v", shown.Load(), f)
	}
}

// TestSecretsAreNowhere: a secret reaches the server and nothing else, neither
// results nor failures nor the log.
func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	accepted := true
	url := guarded(t, func(r *http.Request) bool {
		body := make([]byte, 100)
		n, _ := r.Body.Read(body)
		return accepted && r.Header.Get("X-Key") == "key hunter2!" && r.URL.Query().Get("k") == "hunter2" &&
			string(body[:n]) == `{"deep":["hunter2",{"port":1}]}`
	}, "")
	p := performer(t, Config{
		Secrets: secretsOf{"a": map[string]any{"b": "hunter2", "c": map[string]any{"port": json.Number("1")}}},
		Log:     slog.New(slog.NewTextHandler(&log, nil)),
	})
	call := func(refs string) (json.RawMessage, *engine.Failure) {
		return do(t, p, `{"method":"post","uri":"`+url+`","origins":["`+url+`"],"output":"response","body":{"deep":[null,null]},"query":{},"secrets":[`+refs+`]}`, url)
	}
	const refs = `{"at":"/headers/X-Key","name":"a","path":["b"],"before":"key ","after":"!"},{"at":"/query/k","name":"a","path":["b"]},` +
		`{"at":"/body/deep/0","name":"a","path":["b"]},{"at":"/body/deep/1","name":"a","path":["c"]}`
	result, f := call(refs)
	if f != nil || strings.Contains(string(result), "hunter2") || !strings.Contains(string(result), `"X-Key":"[secret]"`) {
		t.Errorf("%s, %+v", result, f)
	}
	accepted = false
	if _, f = call(refs); f == nil || strings.Contains(f.Error.Detail, "hunter2") || !strings.Contains(f.Error.Detail, "[secret]") {
		t.Errorf("%+v", f)
	}
	for refs, want := range map[string]string{
		`{"at":"/headers/X","name":"x","path":[]}`:                  "[secret.missing]",
		`{"at":"/headers/X","name":"a","path":["b","c"]}`:           "[secret.missing]",
		`{"at":"/headers/X","name":"a","path":["c"],"before":"x "}`: "[secret.form]",
		`{"at":"/headers/X","name":"broken","path":[]}`:             "[secret.unreadable]",
	} {
		if _, f = call(refs); f == nil || f.Retry || (f.Error.Type == TypeConfiguration) != (want == "[secret.form]") || !strings.Contains(f.Error.Detail, want) {
			t.Errorf("%s: %+v", refs, f)
		}
		if f != nil && want != "[secret.form]" && (f.Error.Type != typeAuthorization || f.Error.Status != 403) {
			t.Errorf("%s: %+v", refs, f)
		}
	}
}

// A server may quote what another call has told it: no answer has a secret that
// the definition names, whatever the call itself sends. Those that this node
// does not have are no reason to make no call.
func TestNoAnswerHasASecretOfTheDefinition(t *testing.T) {
	t.Parallel()
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"yours":"hunter2","said":"%68unter2","kept":"public"}`)
	}))
	t.Cleanup(server.Close)
	p := performer(t, Config{Secrets: secretsOf{"a": map[string]any{"b": "hunter2"}}})
	call := `{"uri":"` + server.URL + `","named":["a","broken","missing"]}`
	result, f := do(t, p, call, server.URL)
	if f != nil || string(result) != `{"kept":"public","said":"[secret]","yours":"[secret]"}` {
		t.Errorf("%s, %+v", result, f)
	}
	status = http.StatusBadRequest
	if _, f = do(t, p, call, server.URL); f == nil || strings.Contains(f.Error.Detail, "hunter2") || !strings.Contains(f.Error.Detail, "[secret]") {
		t.Errorf("%+v", f)
	}
}

// TestSecretsStayWithTheirHost: a redirect to another host takes no secret
// along.
func TestSecretsStayWithTheirHost(t *testing.T) {
	t.Parallel()
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "got "+r.Header.Get("X-Key")+r.Header.Get("Authorization"))
	})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.Replace(other, "127.0.0.1", "localhost", 1), http.StatusFound)
	})
	p := performer(t, Config{Secrets: secretsOf{"a": "hunter2"}})
	result, f := do(t, p, `{"uri":"`+url+`","origins":["`+url+`"],"redirect":true,"authentication":{"bearer":{"use":"a"}},"secrets":[{"at":"/headers/X-Key","name":"a","path":[]}]}`, url)
	if f != nil || string(result) != `"got "` {
		t.Errorf("%s, %+v", result, f)
	}
}

func TestSecretStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("text", "line\n")
	write("object", `{"a": 1}`)
	write("mounted/user", "ann\n")
	write("mounted/..data", "x")
	write("large", strings.Repeat("x", MaxSecretBytes+1))
	env := map[string]string{"S_MY_KEY": "from env", "S_TEXT": `{"e": true}`}
	s := SecretStore{Prefix: "S_", Lookup: func(n string) (string, bool) { v, ok := env[n]; return v, ok }, Dir: dir}
	for name, want := range map[string]string{
		"my-key": `"from env"`, "my.key": `"from env"`, "text": `{"e":true}`, "object": `{"a":1}`, "mounted": `{"user":"ann"}`,
		"none": "false", "../text": "false", "": "false", "large": "error",
	} {
		v, ok, err := s.Secret(name)
		got := "error"
		if err == nil {
			got = fmt.Sprint(ok)
			if ok {
				raw, _ := json.Marshal(v)
				got = string(raw)
			}
		}
		if got != want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, want)
		}
	}
	if v, ok, err := (SecretStore{Dir: dir}).Secret("text"); v != "line" || !ok || err != nil {
		t.Errorf("%v, %v, %v", v, ok, err)
	}
	if _, ok, err := (SecretStore{}).Secret("text"); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

func TestFetch(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gone" {
			http.Error(w, "gone", http.StatusGone)
			return
		}
		fmt.Fprint(w, "12345")
	})
	p := performer(t, Config{})
	if b, err := p.Fetch(context.Background(), url, 5); string(b) != "12345" || err != nil {
		t.Errorf("%s, %v", b, err)
	}
	for uri, want := range map[string]string{
		url + "/?key=hunter2": "has more than 4 bytes", url + "/gone": "answered 410", "file:///etc/passwd": "not at an HTTP URL", "http://127.0.0.1:1/?k=hunter2": "refused",
	} {
		if _, err := p.Fetch(context.Background(), uri, 4); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", uri, err)
		}
	}
}
