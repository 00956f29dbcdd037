package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// open makes a world with its handler.
func open(t *testing.T, path string) (*world, http.Handler) {
	t.Helper()
	w, err := openWorld(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w, w.handler(t.Context())
}

// ask makes one request and returns status and body.
func ask(h http.Handler, method, path, key, body string) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec.Code, strings.TrimSpace(rec.Body.String())
}

// expect makes one request and compares its answer.
func expect(t *testing.T, h http.Handler, method, path, key, body string, status int, want string) {
	t.Helper()
	if got, text := ask(h, method, path, key, body); got != status || !strings.Contains(text, want) {
		t.Errorf("%s %s %s: got %d %s, want %d %s", method, path, key, got, text, status, want)
	}
}

func TestServicesAnswer(t *testing.T) {
	t.Parallel()
	_, h := open(t, "")
	for _, c := range []struct{ path, key, body, want string }{
		{"/scoring", "a", `{"amount":0,"income":100}`, `{"score":850}`},
		{"/scoring", "b", `{"amount":500,"income":100}`, `{"score":575}`},
		{"/scoring", "c", `{"amount":5000,"income":100}`, `{"score":300}`},
		{"/scoring", "d", `?`, `{"score":300}`},
		{"/notifications", "a", `{}`, `{"accepted":true,"notification":"NOTE-000001"}`},
		{"/fines/system-number", "a", ``, `{"systemNumber":"SYS-000001"}`},
		{"/fines/system-number", "b", ``, `{"systemNumber":"SYS-000002"}`},
		{"/fines/manual-code", "a", ``, `{"manualCode":"MAN-000001"}`},
		{"/fines/issue", "a", ``, `{"fine":"FINE-000001"}`},
		{"/checkout/g7", "a", ``, `{"guest":"g7","invoice":"INV-g7","status":"checked-out"}`},
		{"/effects/x", "a", `{"n":12345678901234567890}`, `{"echo":{"n":12345678901234567890},"name":"x","number":1}`},
		{"/effects/x", "b", `text`, `{"echo":"text","name":"x","number":2}`},
	} {
		expect(t, h, "POST", c.path, c.key, c.body, 200, c.want)
	}
	expect(t, h, "GET", "/scoring", "", "", 405, "")
	expect(t, h, "POST", "/scoring", "", "", 400, "Idempotency-Key is missing")
	expect(t, h, "POST", "/scoring", "big", strings.Repeat("x", maxBodyBytes+1), 413, "too large")
}

func TestAKeyHasOneEffect(t *testing.T) {
	t.Parallel()
	_, h := open(t, "")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { expect(t, h, "POST", "/notifications", "k", `{}`, 200, "NOTE-000001") })
	}
	wg.Wait()
	expect(t, h, "POST", "/notifications", "k", `{"other":1}`, 422, "another body")
	expect(t, h, "GET", "/effects", "", "", 200, `{"attempts":21,"effects":1,"keys":[{"path":"/notifications","key":"k","attempts":21,"effects":1,`)
	r := httptest.NewRequest("POST", "/notifications", strings.NewReader(`{}`))
	r.Header.Set("Idempotency-Key", "k")
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	if rec.Header().Get("Idempotency-Replayed") != "true" {
		t.Error("a repeated answer does not say so")
	}
}

func TestAPathCanBeMadeToFail(t *testing.T) {
	t.Parallel()
	_, h := open(t, "")
	expect(t, h, "PUT", "/control/checkout", "", `{"fail":2,"status":500}`, 204, "")
	expect(t, h, "GET", "/control", "", "", 200, `{"/checkout":{"fail":2,"status":500`)
	expect(t, h, "POST", "/checkout/g1", "a", "", 500, "told to fail")
	expect(t, h, "POST", "/checkout/g2", "b", "", 500, "told to fail")
	expect(t, h, "POST", "/checkout/g1", "a", "", 200, "INV-g1")
	expect(t, h, "PUT", "/control/checkout/g1", "", `{"fail":-1}`, 204, "")
	expect(t, h, "POST", "/checkout/g1", "c", "", 503, "told to fail")
	expect(t, h, "POST", "/checkout/g1", "c", "", 503, "told to fail")
	expect(t, h, "POST", "/checkout/g2", "b", "", 200, "INV-g2")
	expect(t, h, "DELETE", "/control/checkout/g1", "", "", 204, "")
	expect(t, h, "POST", "/checkout/g1", "c", "", 200, "INV-g1")
	expect(t, h, "POST", "/reset", "", "", 204, "")
	expect(t, h, "GET", "/effects", "", "", 200, `{"attempts":0,"effects":0,"keys":[]}`)
	expect(t, h, "GET", "/control", "", "", 200, `{}`)
}

func TestAnAnswerCanBeLostAfterTheEffect(t *testing.T) {
	t.Parallel()
	_, h := open(t, "")
	expect(t, h, "PUT", "/control/scoring", "", `{"fail":1,"after":true}`, 204, "")
	expect(t, h, "POST", "/scoring", "k", `{}`, 503, "told to fail")
	expect(t, h, "GET", "/effects", "", "", 200, `"effects":1,`)
	expect(t, h, "POST", "/scoring", "k", `{}`, 200, `{"score":300}`)
	expect(t, h, "GET", "/effects", "", "", 200, `{"attempts":2,"effects":1,`)
}

func TestAPathCanBeSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, err := openWorld("")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		h := w.handler(ctx)
		expect(t, h, "PUT", "/control/scoring", "", `{"slow":"90s"}`, 204, "")
		start := time.Now()
		expect(t, h, "POST", "/scoring", "k", `{}`, 200, "score")
		if d := time.Since(start); d != 90*time.Second {
			t.Errorf("took %s", d)
		}
		cancel()
		expect(t, h, "POST", "/scoring", "k2", `{}`, 200, "score")
		if d := time.Since(start); d != 90*time.Second {
			t.Errorf("the end of the program was not noticed: %s", d)
		}
	})
}

func TestBadControls(t *testing.T) {
	t.Parallel()
	_, h := open(t, "")
	for body, want := range map[string]string{
		`{"fail":-2}`: "-1 for all", `{"status":200}`: "from 300 to 599", `{"slow":"long"}`: "write a duration", `{"slow":"11m"}`: "write a duration",
		`{"slow":"-1s"}`: "write a duration", `{"fial":1}`: "unknown field", `[`: "unexpected EOF",
	} {
		expect(t, h, "PUT", "/control/scoring", "", body, 400, want)
	}
}

func TestAFileKeepsTheEffects(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "effects.jsonl")
	w, h := open(t, path)
	expect(t, h, "POST", "/fines/issue", "lost", "", 200, "FINE-000001")
	expect(t, h, "POST", "/reset", "", "", 204, "")
	expect(t, h, "POST", "/fines/issue", "k", "", 200, "FINE-000001")
	w.close()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(`{"event":"effect","path":"/fines/issue","key":"cut off`)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	w, h = open(t, path)
	expect(t, h, "POST", "/fines/issue", "k", "", 200, "FINE-000001")
	expect(t, h, "POST", "/fines/issue", "k2", "", 200, "FINE-000002")
	w.close()
	expect(t, h, "POST", "/fines/issue", "k3", "", 507, "closed")
	expect(t, h, "POST", "/reset", "", "", 500, "closed")
	_, h = open(t, path)
	expect(t, h, "GET", "/effects", "", "", 200, `{"attempts":3,"effects":2,`)
	if _, err := openWorld(t.TempDir()); err == nil {
		t.Error("a folder is taken for a file")
	}
}

func TestProgramRunsUntilItIsTold(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"-addr", "127.0.0.1:0"}, in, io.Discard) }()
	var ready struct{ Address string }
	if err := json.NewDecoder(out).Decode(&ready); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(ready.Address + "/effects")
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestProgramRefusesBadArguments(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-addr 0.0.0.0:0": "not loopback", "-addr :0": "not loopback", "-addr x": "not host:port", "-nope": "not defined",
		"-addr 127.0.0.1:99999": "invalid port", "-addr 127.0.0.1:0 -state /": "is a directory",
	} {
		var stderr bytes.Buffer
		err := run(context.Background(), strings.Fields(args), io.Discard, &stderr)
		if err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
	}
}

// What asks for an acknowledgement gets one, also when the node is away at
// first; a repeat gets another.
func TestDeliveriesAreAcknowledged(t *testing.T) {
	t.Parallel()
	paths := make(chan string, 10)
	var calls atomic.Int64
	node := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		body, _ := io.ReadAll(r.Body)
		paths <- r.Method + " " + r.URL.Path + " " + string(body)
	}))
	defer node.Close()
	w, h := open(t, "")
	w.node = node.URL
	for range 2 {
		r := httptest.NewRequest("POST", "/effects/accounts", strings.NewReader("{}"))
		r.Header.Set("Idempotency-Key", "i/7")
		r.Header.Set("Aqueduct-Ack", "/v1/instances/i/commands/7/ack")
		h.ServeHTTP(httptest.NewRecorder(), r)
		if got := <-paths; got != `POST /v1/instances/i/commands/7/ack {"outcome":"processed"}` {
			t.Error(got)
		}
	}
	expect(t, h, "POST", "/effects/other", "k", `{}`, 200, "")
	if n := calls.Load(); n != 3 {
		t.Errorf("%d calls of the node", n)
	}
}
