package ctk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/embedded"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
)

const secretDoc = `
document: {dsl: '1.0.3', namespace: t, name: secret, version: '1.0.0'}
use: {secrets: [bank]}
do:
  - right:
      call: http
      with:
        method: post
        endpoint: {uri: 'URL/right', authentication: {basic: {use: bank}}}
        headers: {X-Key: '${ "key " + $secrets.bank.password }'}
        query: {k: '${ $secrets.bank.password }'}
        body: {deep: ['${ $secrets.bank.password }']}
        output: response
  - wrong:
      call: http
      with: {method: get, endpoint: {uri: 'URL/wrong', authentication: {bearer: {token: '${ $secrets.bank.password }'}}}}
`

// TestSecretsAreStoredNowhere is scenario 45: a secret reaches the server, and
// is in no byte of the database, no snapshot, no stream and no line of the log.
func TestSecretsAreStoredNowhere(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery"
	seen := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body) // what is missing is counted below
		_, password, _ := r.BasicAuth()
		for _, s := range []string{password, r.Header.Get("X-Key"), r.URL.Query().Get("k"), body.String(), r.Header.Get("Authorization")} {
			if bytes.Contains([]byte(s), []byte(secret)) {
				seen++
			}
		}
		if r.URL.Path == "/wrong" {
			http.Error(w, "not "+r.Header.Get("Authorization"), http.StatusForbidden)
		}
	}))
	defer srv.Close()
	dir := t.TempDir()
	secrets := filepath.Join(dir, "secrets")
	raw, _ := json.Marshal(map[string]string{"username": "ann", "password": secret}) // plain data cannot fail
	if err := os.Mkdir(secrets, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(secrets, "bank"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := runSecret(t, filepath.Join(dir, "db"), activity.Config{Secrets: activity.SecretStore{Dir: secrets}, Log: logger},
		string(bytes.ReplaceAll([]byte(secretDoc), []byte("URL"), []byte(srv.URL))), logger)
	if s.Status != snapshot.Faulted || s.Error.Status != http.StatusForbidden {
		t.Fatalf("%s, %+v", s.Status, s.Error)
	}
	if seen != 5 {
		t.Errorf("the server saw the secret %d times", seen)
	}
	files, err := os.ReadDir(filepath.Join(dir, "db"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if f.IsDir() {
			continue // locks of nodes
		}
		content, err := os.ReadFile(filepath.Join(dir, "db", f.Name()))
		if err != nil || bytes.Contains(content, []byte(secret)) {
			t.Errorf("%s has the secret, or cannot be read: %v", f.Name(), err)
		}
	}
	if bytes.Contains(log.Bytes(), []byte(secret)) {
		t.Errorf("the log has the secret: %s", log.String())
	}
}

// runSecret runs an instance of a document on a node of its own to its end.
func runSecret(t *testing.T, dir string, c activity.Config, document string, logger *slog.Logger) snapshot.Snapshot {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	db, err := embedded.Open(ctx, sqlite.Options{Path: filepath.Join(dir, "a.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	performer := activity.New(c)
	catalogue := definition.New(db, openworkflow.Parsers(), time.Now)
	if _, _, err := catalogue.Publish(ctx, "secret.yaml", []byte(document)); err != nil {
		t.Fatal(err)
	}
	rt, err := runtime.New(ctx, runtime.Config{Store: db.Parts(), Definitions: catalogue, Performer: performer, Now: time.Now, Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx) }()
	if _, _, err := rt.Start(ctx, "i", signal.Start{Definition: "t/secret"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := ended(ctx, db, "i"); err != nil {
		t.Fatal(err)
	}
	s, err := db.Load(ctx, "i")
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return s
}
