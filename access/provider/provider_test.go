package provider

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/idp"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
)

func believing(t *testing.T) (*idp.Server, *Provider) {
	t.Helper()
	s := idp.Run()
	t.Cleanup(s.Close)
	p, err := New(Options{
		Issuer: s.URL, Audiences: []string{"aqueduct", "engine-node"}, Name: "sub", Groups: "groups",
		Roles: map[string][]string{"ops": {access.Operator, access.Viewer}, "sre": {access.Operator}, "clerks": {access.TaskUser}},
		Now:   time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

func code(err error) string {
	p := &problem.Error{}
	if errors.As(err, &p) {
		return p.Code
	}
	return fmt.Sprint(err)
}

func anna(more map[string]any) map[string]any {
	all := map[string]any{"sub": "anna", "aud": "aqueduct", "groups": []string{"ops", "sre", "beekeepers"}}
	maps.Copy(all, more)
	return all
}

// E7: who bears a token of the provider is known by its claims, with the roles of their groups.
func TestATokenOfTheProvider(t *testing.T) {
	s, p := believing(t)
	who, err := p.Verify(t.Context(), s.Sign(anna(nil)))
	want := principal.Principal{Name: "anna", Kind: principal.User, Roles: []string{"operator", "viewer"}, Groups: []string{"ops", "sre", "beekeepers"}}
	if err != nil || !reflect.DeepEqual(who, want) {
		t.Fatalf("%+v, %v", who, err)
	}
	for name, claims := range map[string]map[string]any{
		"one group": anna(map[string]any{"groups": "clerks"}), "several audiences": anna(map[string]any{"aud": []string{"other", "engine-node"}, "groups": []any{"clerks", 7}}),
	} {
		if who, err := p.Verify(t.Context(), s.Sign(claims)); err != nil || !reflect.DeepEqual(who.Roles, []string{"task-user"}) || who.Groups[0] != "clerks" {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
	who, err = p.Verify(t.Context(), s.Sign(anna(map[string]any{"groups": []string{"beekeepers"}})))
	if err != nil || who.Roles == nil || len(who.Roles) != 0 {
		t.Errorf("of no role: %+v, %v", who, err)
	}
	who, err = p.Verify(t.Context(), s.Sign(anna(map[string]any{"groups": []string{"os:root", "clerks", "db:TILL"}})))
	if err != nil || !reflect.DeepEqual(who.Groups, []string{"clerks"}) {
		t.Errorf("groups that say how somebody has come are believed: %v, %v", who.Groups, err)
	}
	p.Name, p.Groups = "who.name", "realm_access.roles"
	who, err = p.Verify(t.Context(), s.Sign(anna(map[string]any{"who": map[string]any{"name": "Ann"}, "realm_access": map[string]any{"roles": []string{"clerks"}}})))
	if err != nil || who.Name != "Ann" || !reflect.DeepEqual(who.Roles, []string{"task-user"}) {
		t.Errorf("claims inside others: %+v, %v", who, err)
	}
	p.Name = "email"
	for verified, want := range map[any]string{true: "<nil>", "true": "<nil>", false: "access.token-refused", nil: "access.token-refused", "yes": "access.token-refused"} {
		_, err := p.Verify(t.Context(), s.Sign(anna(map[string]any{"email": "a@b.example", "email_verified": verified})))
		if code(err) != want {
			t.Errorf("email_verified %v: %v", verified, err)
		}
	}
	many := make([]string, MaxGroups)
	for i := range many {
		many[i] = fmt.Sprintf("group-of-the-directory-%04d", i)
	}
	p.Name, p.Groups = "sub", "groups"
	if who, err := p.Verify(t.Context(), s.Sign(anna(map[string]any{"groups": many}))); err != nil || len(who.Groups) != len(many) {
		t.Errorf("as many groups as there may be: %v", err)
	}
	if _, err := p.Verify(t.Context(), s.Sign(anna(map[string]any{"groups": append(many, "one")}))); code(err) != "access.token-refused" || !strings.Contains(err.Error(), "it names 101 groups") {
		t.Errorf("one more: %v", err)
	}
}

// E7: what is forged, expired, or made for others is refused.
func TestWhatIsNoTokenOfTheProvider(t *testing.T) {
	s, p := believing(t)
	other := idp.Run()
	t.Cleanup(other.Close)
	good := s.Sign(anna(nil))
	parts := strings.Split(good, ".")
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	payload := fmt.Sprintf(`{"iss":%q,"aud":"aqueduct","sub":"anna","exp":%d}`, s.URL, time.Now().Add(time.Hour).Unix())
	for name, c := range map[string]struct{ token, code string }{
		"another audience":        {s.Sign(anna(map[string]any{"aud": "payroll"})), "access.token-refused"},
		"no audience":             {s.Sign(anna(map[string]any{"aud": nil})), "access.token-refused"},
		"an audience in capitals": {s.Sign(anna(map[string]any{"aud": nil, "AUD": "aqueduct"})), "access.token-refused"},
		"an end in capitals":      {s.Sign(anna(map[string]any{"exp": nil, "Exp": time.Now().Add(time.Hour).Unix()})), "access.token-refused"},
		"two audiences":           {s.Sign(anna(map[string]any{"aUd": "aqueduct"})), "access.token-refused"},
		"expired":                 {s.Sign(anna(map[string]any{"exp": time.Now().Add(-time.Second).Unix()})), "access.token-refused"},
		"that never expires":      {s.Sign(anna(map[string]any{"exp": nil})), "access.token-refused"},
		"not yet valid":           {s.Sign(anna(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()})), "access.token-refused"},
		"another issuer":          {other.Sign(anna(nil)), "access.token-refused"},
		"another's key":           {other.Sign(anna(map[string]any{"iss": s.URL})), "access.token-refused"},
		"no signature":            {part(`{"alg":"none"}`) + "." + part(payload) + ".", "access.token-refused"},
		"a cut signature":         {parts[0] + "." + parts[1] + "." + parts[2][:20], "access.token-refused"},
		"another's claims":        {parts[0] + "." + part(payload) + "." + parts[2], "access.token-refused"},
		"the key as a password":   {hmacOf(t, s, payload), "access.token-refused"},
		"no name":                 {s.Sign(anna(map[string]any{"sub": ""})), "access.token-refused"},
		"a name of a line":        {s.Sign(anna(map[string]any{"sub": "anna\nroot"})), "access.token-refused"},
		"a long name":             {s.Sign(anna(map[string]any{"sub": strings.Repeat("ä", maxName/2+1)})), "access.token-refused"},
		"a name of numbers":       {s.Sign(anna(map[string]any{"sub": 17})), "access.token-refused"},
		"no token of a kind":      {"eyJ.eyJ.x", "access.token-refused"},
		"one of ours":             {"aq_0123_4567", access.ErrOther.Error()},
		"none at all":             {"hello", access.ErrOther.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			who, err := p.Verify(t.Context(), c.token)
			if code(err) != c.code || who.Name != "" {
				t.Errorf("%+v, %v", who, err)
			}
		})
	}
}

// E7: an RSA key that is too short to be trusted is not, although the provider names it.
func TestAnRSAKeyThatIsTooShort(t *testing.T) {
	s, p := believing(t)
	s.RotateRSA(1_024)
	if who, err := p.Verify(t.Context(), s.Sign(anna(nil))); code(err) != "access.token-refused" || who.Name != "" {
		t.Errorf("1,024 bits: %+v, %v", who, err)
	}
	s.RotateRSA(2_048)
	if who, err := p.Verify(t.Context(), s.Sign(anna(nil))); err != nil || who.Name == "" {
		t.Errorf("2,048 bits: %+v, %v", who, err)
	}
}

// hmacOf signs with the public key as if it were a shared secret.
func hmacOf(t *testing.T, s *idp.Server, payload string) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: []byte(s.URL + strings.Repeat("k", 32))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign([]byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// A key that is changed is known at its first use, one that is gone no more, and who
// sends tokens of keys that nobody has does not have the provider asked with each.
func TestKeysChange(t *testing.T) {
	s, p := believing(t)
	old := s.Sign(anna(nil))
	if _, err := p.Verify(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	s.Rotate()
	if _, err := p.Verify(t.Context(), s.Sign(anna(nil))); err != nil {
		t.Fatal("the new key:", err)
	}
	await.Until(t, "the old key", func() (bool, any) { // who waits for the new keys has them before the others do
		_, err := p.Verify(t.Context(), old)
		return code(err) == "access.token-refused", err
	})
	stranger := idp.Run()
	t.Cleanup(stranger.Close)
	for range 3 {
		stranger.Rotate()
	}
	before := s.Asked("/keys")
	forged := stranger.Sign(anna(map[string]any{"iss": s.URL}))
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() { _, _ = p.Verify(t.Context(), forged) })
	}
	group.Wait()
	if asked := s.Asked("/keys") - before; asked > 3 {
		t.Errorf("50 forged tokens had the provider asked %d times", asked)
	}
	if _, err := p.Verify(t.Context(), s.Sign(anna(nil))); err != nil {
		t.Error("beside forged ones:", err)
	}
}

// late holds back the first answer of the provider's keys.
type late struct {
	asked, let chan struct{}
	once       sync.Once
}

func (l *late) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(r)
	if strings.HasSuffix(r.URL.Path, "/keys") {
		l.once.Do(func() {
			close(l.asked)
			<-l.let
		})
	}
	return answer, err
}

// A token that is signed with a new key is not refused for an answer of the provider
// that was older, and for which others waited already.
func TestAKeyThatIsNewerThanTheAnswer(t *testing.T) {
	s, p := believing(t)
	l := &late{asked: make(chan struct{}), let: make(chan struct{})}
	p.asks.next = l
	old := s.Sign(anna(nil))
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := p.Verify(t.Context(), old); err != nil {
			t.Error("the old key:", err)
		}
	})
	<-l.asked
	s.Rotate()
	group.Go(func() {
		if _, err := p.Verify(t.Context(), s.Sign(anna(nil))); err != nil {
			t.Error("the new key:", err)
		}
	})
	time.AfterFunc(50*time.Millisecond, func() { close(l.let) }) // when that has joined those who wait
	group.Wait()
}

// behind answers a token by what the provider said before, so many times.
type behind struct{ times int }

func (b *behind) VerifySignature(context.Context, string) ([]byte, error) {
	if b.times--; b.times >= 0 {
		return nil, errors.New("failed to verify id token signature")
	}
	return []byte("said"), nil
}

// go-oidc gives an answer to who waits before it forgets the question: who asks in between
// has the keys of before, also when others have asked anew since.
func TestAnOldAnswerSaysNothingOfATokenThatIsNewer(t *testing.T) {
	t.Parallel()
	now := time.Now()
	old := func() (asked, answered time.Time) { return now.Add(time.Hour), now.Add(-time.Second) }
	if got, err := (&keys{&behind{3}, old}).VerifySignature(t.Context(), "t"); err != nil || string(got) != "said" {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := (&keys{&behind{100}, old}).VerifySignature(t.Context(), "t"); !isAway(err) {
		t.Errorf("no answer is newer: %v", err)
	}
	b := &behind{100}
	newer := func() (asked, answered time.Time) { return now.Add(time.Hour), now.Add(time.Hour) }
	if _, err := (&keys{b, newer}).VerifySignature(t.Context(), "t"); err == nil || isAway(err) || b.times != 99 {
		t.Errorf("%v after %d more", err, 99-b.times)
	}
}

// While the provider is away, who it vouched for is let in, and of others it is said
// that nobody knows.
func TestTheProviderAway(t *testing.T) {
	s, p := believing(t)
	s.Away(true)
	if _, err := p.Verify(t.Context(), s.Sign(anna(nil))); code(err) != "access.unavailable" {
		t.Fatal("at the start:", err)
	}
	asked := s.Asked("/.well-known/openid-configuration")
	if _, err := p.Verify(t.Context(), s.Sign(anna(nil))); code(err) != "access.unavailable" || s.Asked("/.well-known/openid-configuration") != asked {
		t.Fatal("at once again:", err)
	}
	s.Away(false)
	p.tried = p.tried.Add(-again)
	known := s.Sign(anna(nil))
	if _, err := p.Verify(t.Context(), known); err != nil {
		t.Fatal("back:", err)
	}
	s.Rotate()
	s.Away(true)
	if _, err := p.Verify(t.Context(), known); err != nil {
		t.Error("of a key that is known:", err)
	}
	if _, err := p.Verify(t.Context(), s.Sign(anna(nil))); code(err) != "access.unavailable" {
		t.Error("of a key that nobody can ask for:", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Verify(ctx, s.Sign(anna(nil))); !errors.Is(err, context.Canceled) {
		t.Error("who has left:", err)
	}
}

func TestWhomToBelieveIsChecked(t *testing.T) {
	good := Options{Issuer: "https://id.example", Audiences: []string{"aqueduct"}, Name: "sub", Roles: map[string][]string{"ops": {"operator"}}}
	for name, c := range map[string]struct {
		change func(*Options)
		code   string
	}{
		"as it should be":       {func(*Options) {}, "<nil>"},
		"loopback":              {func(o *Options) { o.Issuer = "http://127.0.0.1:5556/dex" }, "<nil>"},
		"http from elsewhere":   {func(o *Options) { o.Issuer = "http://id.example" }, "config.url"},
		"no URL":                {func(o *Options) { o.Issuer = "id.example" }, "config.url"},
		"no audience":           {func(o *Options) { o.Audiences = nil }, "config.needs"},
		"a role that is none":   {func(o *Options) { o.Roles["ops"] = []string{"root"} }, "config.role"},
		"a group without roles": {func(o *Options) { o.Roles["ops"] = nil }, "config.role"},
	} {
		o := good
		o.Roles = maps.Clone(good.Roles)
		c.change(&o)
		if _, err := New(o); code(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// hanging answers nothing while it hangs.
type hanging struct{ hangs atomic.Bool }

func (h *hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.hangs.Load() {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return http.DefaultTransport.RoundTrip(r)
}

// TestTheProviderHangs: of a key that it does not tell nobody says that its token is wrong.
func TestTheProviderHangs(t *testing.T) {
	s, p := believing(t)
	h := &hanging{}
	p.asks.next = h
	if _, err := p.Verify(t.Context(), s.Sign(anna(nil))); err != nil {
		t.Fatal(err)
	}
	s.Rotate()
	p.client.Timeout = 300 * time.Millisecond
	h.hangs.Store(true)
	token := s.Sign(anna(nil))
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for range 3 {
				if _, err := p.Verify(t.Context(), token); code(err) != "access.unavailable" {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	h.hangs.Store(false)
	p.client.Timeout = patience // it is asked once a second
	if _, err := p.Verify(t.Context(), token); err != nil {
		t.Error("it answers again:", err)
	}
}
