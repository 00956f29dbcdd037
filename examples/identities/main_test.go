package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// The program says where it is, is the issuer that it says it is, and asks who one is.
func TestItAsksWhoOneIs(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	in, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- run(ctx, []string{"-addr", "127.0.0.1:0"}, out, io.Discard) }()
	line, err := bufio.NewReader(in).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var at struct{ Address, Issuer string }
	if err := json.Unmarshal(line, &at); err != nil {
		t.Fatal(err)
	}
	read := func(path string) string {
		res, err := http.Get(at.Address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %v", path, res.Status, err)
		}
		return string(text)
	}
	if err := json.Unmarshal([]byte(read("/.well-known/openid-configuration")), &at); err != nil || at.Issuer != at.Address {
		t.Errorf("%+v %v", at, err)
	}
	page := read("/authorize?response_type=code&code_challenge_method=S256&code_challenge=x&nonce=y&redirect_uri=http://127.0.0.1:8080/console/login/callback")
	for _, says := range []string{"clerk", "operator", "author", "FOR TRYING OUT ONLY"} {
		if !strings.Contains(page, says) {
			t.Errorf("the page does not say %q:\n%s", says, page)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := run(t.Context(), []string{"-addr", "0.0.0.0:8095"}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Error("it listens where others reach it:", err)
	}
}
