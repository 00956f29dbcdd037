package activity

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// authority gives tokens t1, t2, ... and says how it was asked.
type authority struct {
	mu     sync.Mutex
	given  int
	asked  []string
	answer string // instead of a token; %d = its number
	status int
}

func (a *authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.URL.Path == "/.well-known/openid-configuration" {
		fmt.Fprintf(w, `{"token_endpoint": "http://%s/found"}`, r.Host)
		return
	}
	fields := map[string]string{}
	if r.Header.Get("Content-Type") == "application/json" {
		_ = json.NewDecoder(r.Body).Decode(&fields) // what is wrong shows below
	} else {
		_ = r.ParseForm()
		for k := range r.PostForm {
			fields[k] = r.PostForm.Get(k)
		}
	}
	raw, _ := json.Marshal(fields)
	user, password, _ := r.BasicAuth()
	a.asked = append(a.asked, fmt.Sprintf("%s %s%s %s", r.URL.Path, user, password, raw))
	if a.status != 0 {
		w.WriteHeader(a.status)
	}
	a.given++
	if a.answer != "" {
		fmt.Fprint(w, strings.ReplaceAll(a.answer, "%d", fmt.Sprint(a.given)))
		return
	}
	fmt.Fprintf(w, `{"access_token": "t%d", "expires_in": 3600, "token_type": "Bearer"}`, a.given)
}

// resource accepts the tokens that good names.
func resource(t *testing.T, good *atomic.Value) string {
	return guarded(t, func(r *http.Request) bool {
		return strings.Contains(good.Load().(string), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+" ")
	}, "")
}

func TestTokens(t *testing.T) {
	t.Parallel()
	var good atomic.Value
	good.Store("t1 t2 ")
	for policy, want := range map[string]string{
		`"oauth2":{"authority":"%s/","grant":"client_credentials","client":{"id":"c","secret":"hunter2"},"scopes":["a","b"],"audiences":["x"]}`:                                                         `/oauth2/token  {"audience":"x","client_id":"c","client_secret":"hunter2","grant_type":"client_credentials","scope":"a b"}`,
		`"oauth2":{"authority":"%s","grant":"password","username":"u","password":"hunter2","client":{"id":"c d","secret":"hunter2","authentication":"client_secret_basic"},"endpoints":{"token":"/t"}}`: `/t c+dhunter2 {"grant_type":"password","password":"hunter2","username":"u"}`,
		`"oauth2":{"authority":"%s","grant":"refresh_token","client":{"id":"c","authentication":"none"},"subject":{"token":"r","type":"refresh"},"request":{"encoding":"application/json"}}`:            `/oauth2/token  {"client_id":"c","grant_type":"refresh_token","refresh_token":"r"}`,
		`"oauth2":{"authority":"%s","grant":"urn:ietf:params:oauth:grant-type:token-exchange","subject":{"token":"s","type":"st"},"actor":{"token":"a","type":"at"}}`:                                   `/oauth2/token  {"actor_token":"a","actor_token_type":"at","grant_type":"urn:ietf:params:oauth:grant-type:token-exchange","subject_token":"s","subject_token_type":"st"}`,
		`"oidc":{"authority":"%s","grant":"client_credentials","client":{"id":"c","secret":"hunter2"}}`:                                                                                                 `/found  {"client_id":"c","client_secret":"hunter2","grant_type":"client_credentials"}`,
		`"oidc":{"use":"idp"}`: `/found  {"client_id":"c","grant_type":"client_credentials"}`,
	} {
		a := &authority{}
		at := serve(t, a.ServeHTTP)
		p := performer(t, Config{Secrets: secretsOf{"idp": map[string]any{"authority": at, "grant": "client_credentials", "client": map[string]any{"id": "c"}}}})
		server := resource(t, &good)
		input := `{"uri":"` + server + `","origins":["` + server + `"],"authentication":{` + strings.ReplaceAll(policy, "%s", at) + `}}`
		for range 3 {
			if _, f := do(t, p, input, ""); f != nil {
				t.Fatalf("%s: %+v", policy, f)
			}
		}
		if got := strings.Join(a.asked, "\n"); got != want {
			t.Errorf("%s\n got %s\nwant %s", policy, got, want)
		}
	}
}

func tokenCall(t *testing.T, a *authority, good *atomic.Value, issuers string) func() *engine.Failure {
	t.Helper()
	p := performer(t, Config{})
	input := `{"uri":"` + resource(t, good) + `","authentication":{"oauth2":{"authority":"` + serve(t, a.ServeHTTP) +
		`","grant":"client_credentials","client":{"id":"c","secret":"hunter2"},"issuers":[` + issuers + `]}}}`
	return func() *engine.Failure { _, f := do(t, p, input, ""); return f }
}

// TestTokenIsRenewed: one that has ended is asked for again, and one that the
// server does not accept any more is replaced within the attempt.
func TestTokenIsRenewed(t *testing.T) {
	t.Parallel()
	var good atomic.Value
	good.Store("t1 ")
	a := &authority{}
	call := tokenCall(t, a, &good, "")
	if f := call(); f != nil || a.given != 1 {
		t.Fatalf("%+v, %d given", f, a.given)
	}
	good.Store("t2 ")
	if f := call(); f != nil || a.given != 2 {
		t.Fatalf("revoked: %+v, %d given", f, a.given)
	}
	good.Store("")
	if f := call(); f == nil || f.Error.Status != 401 || a.given != 3 {
		t.Fatalf("refused: %+v, %d given", f, a.given)
	}
	good.Store("t4 t5 ")
	a.answer = `{"access_token": "t%d", "expires_in": 0}`
	if f := call(); f != nil || a.given != 4 {
		t.Fatalf("%+v, %d given", f, a.given)
	}
}

func TestNoToken(t *testing.T) {
	t.Parallel()
	var good atomic.Value
	good.Store("t1 ")
	jwt := "h." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"https://evil"}`)) + ".s"
	for _, c := range []struct {
		status       int
		answer, want string
		retry        bool
	}{
		{401, `{"error": "invalid_client", "error_description": "hunter2 is wrong"}`, "[auth.refused]", false},
		{503, `busy`, "[auth.unreachable]", true},
		{429, ``, "[auth.unreachable]", true},
		{200, `{}`, "gave no access_token [auth.token]", false},
		{200, `x`, "[auth.token]", false},
		{200, `{"access_token": "t1", "token_type": "mac"}`, "[auth.token]", false},
		{200, strings.Repeat(" ", maxTokenBytes+1), "[auth.token]", false},
		{200, `{"access_token": "` + jwt + `"}`, "[auth.issuer]", false},
		{302, ``, "[auth.refused]", false},
	} {
		f := tokenCall(t, &authority{status: c.status, answer: c.answer}, &good, `"https://idp"`)()
		if f == nil || f.Retry != c.retry || f.Error.Type != typeAuthentication || !strings.Contains(f.Error.Detail, c.want) || strings.Contains(f.Error.Detail, "hunter2") {
			t.Errorf("%d %.40s: %+v", c.status, c.answer, f)
		}
	}
	p := performer(t, Config{})
	for at, want := range map[string]string{"http://127.0.0.1:1": "[auth.unreachable]", "ftp://x": "[auth.authority]", "::": "[auth.authority]"} {
		_, f := do(t, p, `{"uri":"http://127.0.0.1:1/","authentication":{"oidc":{"authority":"`+at+`","grant":"password"}}}`, "")
		if f == nil || !strings.Contains(f.Error.Detail, want) {
			t.Errorf("%s: %+v", at, f)
		}
	}
}

// TestWhoAskedFirstDecidesForNobodyElse: a call that is broken off leaves those that wait for
// the same token with the one that comes, and each leaves by its own end.
func TestWhoAskedFirstDecidesForNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		gives := make(chan struct{})
		p := performer(t, Config{Transport: tripper(func(r *http.Request) (*http.Response, error) {
			answer := `{"ok":true}`
			if r.URL.Host == "idp" {
				asked.Add(1)
				select {
				case <-gives:
				case <-r.Context().Done():
					return nil, r.Context().Err()
				}
				answer = `{"access_token":"t1"}`
			}
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
		})})
		const input = `{"uri":"http://bank/","authentication":{"oauth2":{"authority":"http://idp","grant":"client_credentials"}}}`
		call := func() (context.CancelFunc, chan *engine.Failure) {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan *engine.Failure, 1)
			go func() {
				_, f := p.Perform(ctx, engine.Command{Target: TargetHTTP, Input: json.RawMessage(input)}, "k/1", 1)
				done <- f
			}()
			synctest.Wait()
			return cancel, done
		}
		leave, first := call()
		stays, second := call()
		also, third := call()
		defer stays()
		for name, gone := range map[string]struct {
			leave context.CancelFunc
			done  chan *engine.Failure
		}{"the first": {leave, first}, "another": {also, third}} {
			gone.leave()
			if f := <-gone.done; f == nil || !f.Retry || f.Unknown || f.Error.Title != "interrupted" {
				t.Errorf("%s: %+v", name, f)
			}
		}
		close(gives)
		if f := <-second; f != nil || asked.Load() != 1 {
			t.Errorf("who waited: %+v, asked %d times", f, asked.Load())
		}
	})
}

// A server that has answered 401 has refused the call, whatever comes of the token for
// another: nothing was done that would have to be undone.
func TestARefusedCallIsRefusedThoughNoTokenIsHad(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]http.HandlerFunc{
		"refused": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"invalid_client"}`)
		},
		"in trouble": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"away":       func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"slow": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tokens, calls atomic.Int64
			idp := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if tokens.Add(1) > 1 {
					what(w, r)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"access_token":"t1","expires_in":3600}`)
			})
			bank := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if calls.Add(1) > 1 {
					w.WriteHeader(http.StatusUnauthorized)
				}
			})
			p := performer(t, Config{Timeout: 2 * time.Second})
			input := `{"method":"post","uri":"` + bank + `","authentication":{"oauth2":{"authority":"` + idp + `","grant":"client_credentials"}}}`
			if _, f := do(t, p, input, ""); f != nil {
				t.Fatal(f)
			}
			if _, f := do(t, p, input, ""); f == nil || f.Open || f.Unknown || calls.Load() != 2 || tokens.Load() < 2 {
				t.Errorf("%d calls, %d tokens: %+v", calls.Load(), tokens.Load(), f)
			}
		})
	}
}

// What comes of the request with another token is of that one: it may have been done, though
// the one before was refused.
func TestARefusedCallThatIsMadeAgainMayBeDone(t *testing.T) {
	t.Parallel()
	idp := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"t1","expires_in":3600}`)
	})
	var calls atomic.Int64
	bank := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		switch calls.Add(1) {
		case 2:
			w.WriteHeader(http.StatusUnauthorized)
		case 3: // it is paid
			w.Header().Set("Location", "ftp://receipts.example/")
			w.WriteHeader(http.StatusSeeOther)
		}
	})
	p := performer(t, Config{})
	input := `{"method":"post","redirect":true,"uri":"` + bank + `","authentication":{"oauth2":{"authority":"` + idp + `","grant":"client_credentials"}}}`
	if _, f := do(t, p, input, ""); f != nil {
		t.Fatal(f)
	}
	if _, f := do(t, p, input, ""); f == nil || !f.Open && !f.Unknown || calls.Load() != 3 {
		t.Errorf("%d calls: %+v", calls.Load(), f)
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
