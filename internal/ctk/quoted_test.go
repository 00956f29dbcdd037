package ctk_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/api"
	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/replay"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/runtime/service"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/embedded"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
)

// planted are the secrets: every encoding changes something of each.
var planted = map[string]string{"key": `k<e>&y"1\2/é+ 3=`, "password": `pass"wörd\+/<&>`, "client": `cli"ent\sec+ret/&`, "token": "tok+en/0123456789=="}

// quotings are how a server may write what it was sent.
var quotings = map[string]func(string) string{
	"plain": func(s string) string { return s }, "go": strconv.Quote, "ascii": strconv.QuoteToASCII, "html": html.EscapeString,
	"query": url.QueryEscape, "path": url.PathEscape, "hex": func(s string) string { return hex.EncodeToString([]byte(s)) },
	"json":    func(s string) string { return asJSON(s) },
	"base64":  func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64a": func(s string) string { return base64.URLEncoding.EncodeToString([]byte("a" + s)) },
	"base64b": func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte("ab" + s)) },
}

func asJSON(s string) string {
	b, _ := json.Marshal(s) // a string cannot fail
	return string(b)
}

// quoter quotes all that it was sent, in the encoding and with the status that
// its path says.
func quoter(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what is missing is not quoted
	user, password, _ := r.BasicAuth()
	var inner struct{ Key, Password string }
	_ = json.Unmarshal(body, &inner) // other bodies have none
	_ = r.ParseForm()                // nor other queries
	values := []string{r.Header.Get("X-Key"), r.URL.Query().Get("k"), inner.Key, inner.Password, user, password, r.Header.Get("Authorization"), r.URL.RawQuery, string(body)}
	part := strings.Split(r.URL.Path, "/")
	in, status := quotings[part[1]], 200
	if len(part) > 2 {
		status, _ = strconv.Atoi(part[2])
	}
	var all strings.Builder
	for _, v := range values {
		fmt.Fprintln(&all, in(v))
	}
	w.Header().Set("X-Quoted", strings.ReplaceAll(strings.ReplaceAll(all.String(), "\n", " "), "\r", " "))
	w.WriteHeader(status)
	fmt.Fprint(w, all.String())
}

// provocations is a definition that makes servers quote secrets in every way,
// and goes on after each.
func provocations(at, other, tls, idp string) string {
	var b strings.Builder
	b.WriteString(`
document: {dsl: '1.0.3', namespace: t, name: secret, version: '1.0.0'}
use: {secrets: [bank, client]}
do:
`)
	n := 0
	add := func(uri, policy, rest string) {
		n++
		fmt.Fprintf(&b, `  - try%d:
      try:
        - call%[1]d:
            call: http
            with:
              method: post
              endpoint: {uri: '%[2]s', authentication: %[3]s}
              headers: {X-Key: '${ "key " + $secrets.bank.key }'}
              query: {k: '${ $secrets.bank.key }'}
              body: {key: '${ $secrets.bank.key }', password: '${ $secrets.bank.password }', all: '${ $secrets.bank }'}
%[4]s
            timeout: {after: PT1S}
      catch: {as: error, do: [{keep%[1]d: {set: {error: '${ $error }'}}}]}
      export: {as: '${ $context + {"r%[1]d": .} }'}
`, n, uri, policy, rest)
	}
	const basic = "{basic: {use: bank}}"
	for name := range quotings {
		for _, status := range []string{"200", "400", "500"} {
			for _, output := range []string{"content", "response", "raw"} {
				add(at+"/"+name+"/"+status, basic, "              output: "+output)
			}
		}
	}
	for _, status := range []string{"301", "302", "303", "307", "308"} {
		for _, to := range []string{at, other} {
			add(at+"/redirect/"+status+"?to="+url.QueryEscape(to+"/plain/200"), "{bearer: {token: '${ $secrets.bank.token }'}}", "              redirect: true\n              output: response")
			add(at+"/redirect/"+status+"?to="+url.QueryEscape(to+"/plain/400"), "{bearer: {token: '${ $secrets.bank.token }'}}", "              redirect: false")
		}
	}
	for _, uri := range []string{at + "/hang", tls + "/plain/200", at + "/hangup", "http://127.0.0.1:1/x", "http://a:b:c/x", "http://127.0.0.1:99999/x", "${ .uri }"} {
		add(uri, "{digest: {use: bank}}", "")
	}
	for _, kind := range []string{"400", "500", "200"} {
		for name := range quotings {
			add(at+"/plain/200", `{oauth2: {authority: '`+idp+`', endpoints: {token: /`+name+`/`+kind+`}, grant: password, username: u, password: '${ $secrets.bank.password }', client: {id: c, secret: '${ $secrets.client }'}}}`, "")
		}
	}
	return b.String()
}

// TestNothingThatIsQuotedIsStored: servers quote secrets in every encoding, in
// answers and errors, redirect, hang and fail, and none of it is in a byte of the
// database, the log, or what the API says; no other origin gets one.
func TestNothingThatIsQuotedIsStored(t *testing.T) {
	t.Parallel()
	elsewhere := make(chan string, 1000)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what is missing is not there to be found
		elsewhere <- fmt.Sprint(r.URL, r.Header, string(body))
	}))
	defer other.Close()
	ended := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch part := strings.Split(r.URL.Path, "/"); part[1] {
		case "redirect":
			status, _ := strconv.Atoi(part[2])
			http.Redirect(w, r, r.URL.Query().Get("to"), status)
		case "hang":
			select {
			case <-r.Context().Done():
			case <-ended:
			}
		case "hangup":
			c, _, _ := http.NewResponseController(w).Hijack()
			c.Close()
		default:
			quoter(w, r)
		}
	}))
	defer srv.Close()
	defer close(ended)
	secure := httptest.NewTLSServer(http.HandlerFunc(quoter))
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	defer secure.Close()
	idp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm() // there is a form in every request
		part := strings.Split(r.URL.Path, "/")
		status, _ := strconv.Atoi(part[2])
		all := asJSON(quotings[part[1]](r.PostForm.Get("password")) + " " + quotings[part[1]](r.PostForm.Get("client_secret")) + " " + quotings[part[1]](r.PostForm.Encode()))
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error": %s, "error_description": %[1]s, "token_type": %[1]s, "access_token": %[1]s}`, all)
	}))
	defer idp.Close()
	dir := t.TempDir()
	bank, _ := json.Marshal(map[string]any{"username": "ann", "key": planted["key"], "password": planted["password"], "token": planted["token"]}) // plain data cannot fail
	for name, content := range map[string]string{"bank": string(bank), "client": planted["client"]} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	c := activity.Config{Secrets: activity.SecretStore{Dir: dir}, Policy: activity.Policy{MaxAttempts: 1}}
	said, places := runQuoted(t, c, provocations(srv.URL, other.URL, secure.URL, idp.URL), &log)
	places["log"] = log.Bytes()
	close(elsewhere)
	for text := range elsewhere {
		places["the other origin"] = append(places["the other origin"], text...)
	}
	if !strings.Contains(said, "[secret]") || !strings.Contains(said, "redirected to another origin") || len(places["the other origin"]) == 0 {
		t.Errorf("nothing was provoked: %.2000s", said)
	}
	for place, content := range places {
		for name, secret := range planted {
			for encoding, in := range quotings {
				form := in(secret)
				if strings.HasPrefix(encoding, "base64") { // without what it shares with its neighbours
					form = strings.TrimRight(form, "=")[3 : len(strings.TrimRight(form, "="))-2]
				}
				for depth := range 3 {
					if i := bytes.Index(content, []byte(form)); i >= 0 {
						t.Errorf("%s has %s as %s in %d strings: %.200s", place, name, encoding, depth, content[max(0, i-80):])
					}
					form = strings.Trim(asJSON(form), `"`)
				}
			}
		}
	}
}

// runQuoted runs an instance to its end, and returns what the API says of it and
// every place where something could be.
func runQuoted(t *testing.T, c activity.Config, document string, log *bytes.Buffer) (string, map[string][]byte) {
	t.Helper()
	dir := t.TempDir()
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c.Log = logger
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	db, err := embedded.Open(ctx, sqlite.Options{Path: filepath.Join(dir, "a.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	catalogue := definition.New(db, openworkflow.Parsers(), time.Now)
	if _, _, err := catalogue.Publish(ctx, "secret.yaml", []byte(document)); err != nil {
		t.Fatal(err)
	}
	performer := activity.New(c)
	defer performer.Close()
	rt, err := runtime.New(ctx, runtime.Config{Store: db.Parts(), Definitions: catalogue, Performer: performer, Now: time.Now, Log: logger, BreakAfter: 1000})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx) }()
	if _, _, err := rt.Start(ctx, "i", signal.Start{Definition: "t/secret", Input: json.RawMessage(`{"uri": "http://elsewhere.example/"}`)}, nil); err != nil {
		t.Fatal(err)
	}
	if err := ended(ctx, db, "i"); err != nil {
		t.Fatal(err)
	}
	if s, err := db.Load(ctx, "i"); err != nil || s.Status != snapshot.Completed {
		t.Fatalf("%v, %v, %+v", err, s.Status, s.Error)
	}
	parts := db.Parts()
	handler, err := api.New(api.Config{
		Starter: rt, Signaller: rt, Tasks: rt, Commenter: rt, Operator: rt, Acknowledger: rt, DeadLetters: rt, Dispatcher: rt, Publisher: catalogue, Migrator: rt,
		Definitions: db, Reader: api.Reader{Instances: parts.Instances, Streams: parts.Streams, Tasks: parts.Tasks, DeadLetters: parts.DeadLetters, Backlog: parts.Backlog, Members: parts.Members, Audit: parts.Audit, Activities: parts.Activities, Moments: parts.Moments, Plans: parts.Plans},
		Tokens: access.NewTokens(parts.Tokens, time.Now, logger), Auditor: &audit.Log{Writer: parts.Writer, Now: time.Now}, Activities: &service.Activities{Activities: parts.Activities, Clock: parts.Clock}, Past: replay.NewPast(nil, nil), Bulk: &service.Bulk{},
		Ready: func(context.Context) error { return nil }, Now: time.Now, Log: logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	places := map[string][]byte{}
	for _, path := range []string{"/v1/instances/i", "/v1/instances/i/stream", "/v1/instances", "/v1/dead-letters"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil))
		if places["api "+path] = w.Body.Bytes(); w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var said []byte
	for _, f := range files {
		if f.IsDir() {
			continue // locks of nodes
		}
		if places[f.Name()], err = os.ReadFile(filepath.Join(dir, f.Name())); err != nil {
			t.Fatal(err)
		}
		said = append(said, places[f.Name()]...)
	}
	return string(said), places
}
