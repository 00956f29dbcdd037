package activity

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hard is a secret in which every encoding changes something.
const hard = "p<4>&s\"w\\d/é+ %41=K9'\n~2nd line"

// encodings are the ways in which servers quote what they were sent.
var encodings = map[string]func(string) string{
	"as it is":   func(s string) string { return s },
	"json":       func(s string) string { return string(encode(s)) },
	"hex dump":   func(s string) string { return fmt.Sprintf("% x", s) },
	"hex, :":     func(s string) string { return strings.ReplaceAll(fmt.Sprintf("% X", s), " ", ":") },
	"json bare":  quoted,
	"go %q":      strconv.Quote,
	"go %+q":     strconv.QuoteToASCII,
	"html":       html.EscapeString,
	"query":      url.QueryEscape,
	"path":       url.PathEscape,
	"every byte": func(s string) string { return fmt.Sprintf("%%%s", strings.Join(pairs(s), "%")) },
	"upper": func(s string) string {
		return strings.Map(func(r rune) rune {
			if 'a' <= r && r <= 'z' {
				return r - 32
			}
			return r
		}, s)
	},
	"json twice":  func(s string) string { return string(encode(string(encode(s)))) },
	"json in url": func(s string) string { return url.QueryEscape(string(encode(s))) },
	"url in json": func(s string) string { return string(encode(url.QueryEscape(s))) },
	"html, json":  func(s string) string { return html.EscapeString(string(encode(s))) },
	"json's u":    func(s string) string { return strings.ReplaceAll(quoted(s), "s", `\u0073`) },
	"numbers":     func(s string) string { return strings.ReplaceAll(s, "s", "&#115;") },
	"hex":         func(s string) string { return hex.EncodeToString([]byte(s)) },
	"HEX":         func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"base64":      func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 +1":   func(s string) string { return base64.StdEncoding.EncodeToString([]byte("a" + s + "z")) },
	"base64 +2":   func(s string) string { return base64.StdEncoding.EncodeToString([]byte("ab" + s + "yz")) },
	"base64 url":  func(s string) string { return base64.URLEncoding.EncodeToString([]byte("?" + s)) },
	"base64 raw":  func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	"base64 json": func(s string) string { return base64.StdEncoding.EncodeToString(encode([]string{s})) },
	"json base64": func(s string) string {
		return strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(s)), "/", `\/`)
	},
	"base64 lines": func(s string) string { return broken(base64.StdEncoding.EncodeToString([]byte(s))) },
	"octal": func(s string) string {
		return regexp.MustCompile(`(?s).`).ReplaceAllStringFunc(s, func(c string) string {
			var b strings.Builder
			for i := range len(c) {
				fmt.Fprintf(&b, `\%03o`, c[i])
			}
			return b.String()
		})
	},
	"base64 thrice": func(s string) string {
		for range 3 {
			s = base64.StdEncoding.EncodeToString([]byte(s))
		}
		return s
	},
	"base64 hex": func(s string) string {
		return base64.StdEncoding.EncodeToString([]byte(hex.EncodeToString([]byte(s))))
	},
	"hex base64": func(s string) string {
		return hex.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(s))))
	},
	"base64 of another html": func(s string) string {
		return base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll(strings.ReplaceAll(s, "&", "&#x26;"), `"`, "&#x22;")))
	},
	"hex of query, in json": func(s string) string {
		return string(encode(hex.EncodeToString([]byte("q=" + url.QueryEscape(s)))))
	},
	"base64 query": func(s string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(s))) },
}

func pairs(s string) []string {
	var all []string
	for i := range len(s) {
		all = append(all, hex.EncodeToString([]byte{s[i]}))
	}
	return all
}

func broken(s string) string { return s[:len(s)/2] + "\r\n" + s[len(s)/2:] }

// TestEveryEncodingIsFound: nothing of a secret is left of a text that has it, in
// whatever encoding, and the text around it stays.
func TestEveryEncodingIsFound(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{hard, "correct-horse-battery", "sk_live_0123456789", "abc123"} {
		keep := &secrecy{}
		keep.add(secret)
		for name, in := range encodings {
			text := `{"before": ` + in(secret) + ` "after"}`
			got := keep.text(text)
			if !strings.HasPrefix(got, `{"before": `) || !strings.HasSuffix(got, ` "after"}`) || !strings.Contains(got, shownSecret) {
				t.Errorf("%q as %s: %s gives %s", secret, name, text, got)
			}
			// What is left are quotes, and characters of base64 that are shared with what stands beside.
			if left := strings.TrimSuffix(strings.TrimPrefix(got, `{"before": `), ` "after"}`); len(strings.ReplaceAll(left, shownSecret, "")) > 20 {
				t.Errorf("%q as %s leaves %s", secret, name, left)
			}
		}
	}
}

func TestWhatIsNoSecretStays(t *testing.T) {
	t.Parallel()
	keep := &secrecy{}
	keep.addValue(map[string]any{"key": hard, "pin": "123", "n": json.Number("4711001"), "deep": []any{"inner-part"}}, true)
	for _, same := range []string{
		``, `{"a": "123", "z": 1, "n": 47110}`, `"inner-par"`, `[1,  2]`, `"%41 &amp; \u0041"`, `"` + strings.Repeat("%", 99) + `"`,
	} {
		if got := keep.value(json.RawMessage(same)); string(got) != same {
			t.Errorf("%s became %s", same, got)
		}
	}
	for in, want := range map[string]string{
		`{"n": 4711001, "m": [4711001]}`:                                      `{"m":["[secret]"],"n":"[secret]"}`,
		`{"inner-part": "x inner\u002dpart y"}`:                               `{"[secret]":"x [secret] y"}`,
		`["%69nner-part", "a"]`:                                               `["[secret]","a"]`,
		`"` + base64.StdEncoding.EncodeToString([]byte("x:inner-part")) + `"`: `"eD[secret]"`,
	} {
		if got := keep.value(json.RawMessage(in)); string(got) != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
	split := &secrecy{}
	split.add(`ab","cd`)
	if got := split.value(json.RawMessage(`["ab","cd"]`)); string(got) != `"[secret]"` {
		t.Errorf("a secret across values: %s", got)
	}
}

// TestSearchIsBounded: a hostile server cannot make the search take long. It
// runs alone: what counts is the time of the processor, which is the process's.
func TestSearchIsBounded(t *testing.T) {
	keep := &secrecy{}
	keep.add(strings.Repeat(`\`, 64)+"x", strings.Repeat("%25", 40), strings.Repeat("+ ", 40), hard)
	begun := processorTime(t)
	for _, unit := range []string{`\`, `%25`, `+`, `&amp;`, `\u005c`, "\n", "a"} {
		keep.text(strings.Repeat(unit, (256<<10)/len(unit)))
	}
	if took := processorTime(t) - begun; took > 30*time.Second {
		t.Errorf("took %s", took)
	}
}

// processorTime is what the process has had of the processors.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestRedirectsCarryNoSecretElsewhere: what another origin gets has no secret in
// it, whatever the status and wherever the secret is.
func TestRedirectsCarryNoSecretElsewhere(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery"
	type seen struct{ text string }
	got := make(chan seen, 10)
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, 1000)
		n, _ := r.Body.Read(body)
		got <- seen{fmt.Sprint(r.Method, r.URL, r.Header, string(body[:n]))}
		if r.URL.Path == "/back" {
			http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
		}
	})
	home := ""
	home = serve(t, func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.URL.Query().Get("status"))
		switch r.URL.Path {
		case "/same":
			http.Redirect(w, r, "/end?k="+secret, status)
		case "/reflect":
			http.Redirect(w, r, other+"/x?k="+url.QueryEscape(r.URL.Query().Get("k")), status)
		case "/back":
			http.Redirect(w, r, other+"/back?to="+url.QueryEscape(home+"/last"), status)
		case "/last", "/end":
			fmt.Fprint(w, r.Header.Get("X-Key"), r.Header.Get("Authorization"), r.Header.Get("Referer"))
		default:
			http.Redirect(w, r, other+"/x", status)
		}
	})
	p := performer(t, Config{Secrets: secretsOf{"a": secret}})
	places := map[string]string{
		"header": `{"at":"/headers/X-Key","name":"a","path":[]}`, "query": `{"at":"/query/k","name":"a","path":[]}`,
		"body": `{"at":"/body/k","name":"a","path":[]}`, "bearer": "",
	}
	for place, ref := range places {
		for _, status := range []int{301, 302, 303, 307, 308} {
			for _, path := range []string{"/", "/same", "/reflect", "/back"} {
				auth := ""
				if place == "bearer" {
					auth = `"authentication":{"bearer":{"use":"a"}},`
				}
				input := fmt.Sprintf(`{"method":"post","uri":"%s%s","origins":["%[1]s"],"redirect":true,%[3]s"query":{"status":%[4]d},"body":{"k":"v"},"secrets":[%[5]s]}`,
					home, path, auth, status, ref)
				result, f := do(t, p, input, "")
				what := fmt.Sprintf("%s %d %s", place, status, path)
				refused := place == "body" && status >= 307 && path != "/same" || place == "query" && path == "/reflect"
				if refused != (f != nil) || f != nil && (f.Retry || f.Error.Title != "redirect refused") {
					t.Errorf("%s: %s, %+v", what, result, f)
				}
				if strings.Contains(string(result), secret) || f != nil && strings.Contains(f.Error.Detail, secret) {
					t.Errorf("%s: %s, %+v", what, result, f)
				}
				for len(got) > 0 {
					if s := <-got; strings.Contains(s.text, secret) || strings.Contains(s.text, "Referer") {
						t.Errorf("%s: the other origin got %s", what, s.text)
					}
				}
			}
		}
	}
}

// TestSecretsGoOnlyWhereTheyAreBound: to the origins that the definition writes
// out, or to the hosts that the operator names, and then to those alone.
func TestSecretsGoOnlyWhereTheyAreBound(t *testing.T) {
	t.Parallel()
	at := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("X")) })
	port := at[strings.LastIndexByte(at, ':'):]
	for _, c := range []struct {
		origins string
		hosts   map[string][]HostPattern
		sent    bool
	}{
		{at, nil, true},
		{"", nil, false},
		{"https://127.0.0.1" + port, nil, false},
		{"http://127.0.0.1", nil, false},
		{"http://localhost" + port, nil, false},
		{"", map[string][]HostPattern{"a": {"127.0.0.1"}}, true},
		{"", map[string][]HostPattern{"a": {"x", HostPattern("127.0.0.1" + port)}}, true},
		{"", map[string][]HostPattern{"a": {"127.0.0.1:1"}}, false},
		{"", map[string][]HostPattern{"b": {"127.0.0.1"}}, false},
		{at, map[string][]HostPattern{"a": {"bank.example"}}, false},
		{at, map[string][]HostPattern{"b": {"bank.example"}}, true},
	} {
		p := performer(t, Config{Secrets: secretsOf{"a": "hunter2"}, SecretHosts: c.hosts})
		result, f := do(t, p, fmt.Sprintf(`{"uri":"%s/p","origins":["%s"],"secrets":[{"at":"/headers/X","name":"a","path":[]}]}`, at, c.origins), "")
		if c.sent && (f != nil || string(result) != `"[secret]"`) || !c.sent && (f == nil || f.Retry || !strings.Contains(f.Error.Detail, "[secret.host]")) {
			t.Errorf("%+v: %s, %+v", c, result, f)
		}
	}
	for pattern, hosts := range map[HostPattern]map[string]bool{
		"*.bank.example": {"https://a.bank.example/": true, "https://bank.example/": false, "https://evilbank.example/": false},
		"[::1]:8080":     {"http://[::1]:8080/": true, "http://[::1]/": false},
		"BANK:443":       {"https://bank/": true, "http://bank/": false},
	} {
		for text, want := range hosts {
			if u, _ := url.Parse(text); pattern.fits(u) != want {
				t.Errorf("%s, %s: not %t", pattern, text, want)
			}
		}
	}
}
