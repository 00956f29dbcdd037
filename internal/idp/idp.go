// Package idp is an identity provider for tests and for trying out: OpenID Connect's
// discovery, keys that change, the code flow with PKCE, and the device flow of RFC 8628,
// for one person who agrees to everything, or for several of whom one says who one is.
// Nobody proves anything.
package idp

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Server is the provider; its URL is the issuer.
type Server struct {
	URL string

	http *httptest.Server
	mu   sync.Mutex
	key  crypto.Signer
	alg  jose.SignatureAlgorithm
	kid  int
	away bool
	asks map[string]int

	claims  map[string]any // of the person, once they have agreed
	life    time.Duration
	refresh int
	logins  map[string]url.Values // what a browser was sent here with, by the code that it got
	secret  string                // of the client; "" = it is a public one
	people  []Person
}

// Run starts a provider.
func Run() *Server {
	s := New("")
	s.http = httptest.NewServer(s.Handler())
	s.URL = s.http.URL
	return s
}

// New makes a provider that is to be served at an address.
func New(address string) *Server {
	s := &Server{URL: address, asks: map[string]int{}, life: time.Hour, logins: map[string]url.Values{}}
	s.Rotate()
	return s
}

// Handler is what the provider answers.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", s.discovery)
	mux.HandleFunc("GET /keys", s.keys)
	mux.HandleFunc("GET /authorize", s.authorize)
	mux.HandleFunc("GET /activate", s.activate)
	mux.HandleFunc("POST /device", s.device)
	mux.HandleFunc("POST /token", s.token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asks[r.URL.Path]++
		away := s.away
		s.mu.Unlock()
		if away {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// Close ends it.
func (s *Server) Close() { s.http.Close() }

// Rotate makes another key the only one.
func (s *Server) Rotate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.rotate(key, jose.ES256, err)
}

// RotateRSA makes an RSA key of so many bits the only one.
func (s *Server) RotateRSA(bits int) {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	s.rotate(key, jose.RS256, err)
}

func (s *Server) rotate(key crypto.Signer, alg jose.SignatureAlgorithm, err error) {
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key, s.alg, s.kid = key, alg, s.kid+1
}

// Away lets it answer 503, or no longer.
func (s *Server) Away(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// Asked counts the requests to a path.
func (s *Server) Asked(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asks[path]
}

// Agree says who the person is that agrees to what is asked, and how long their tokens live.
func (s *Server) Agree(claims map[string]any, life time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims, s.life = claims, life
}

// Sign makes a token of the provider, valid for an hour where the claims do not say otherwise.
func (s *Server) Sign(claims map[string]any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sign(claims, time.Hour)
}

func (s *Server) sign(claims map[string]any, life time.Duration) string {
	all := map[string]any{"iss": s.URL, "iat": time.Now().Unix(), "exp": time.Now().Add(life).Unix()}
	maps.Copy(all, claims)
	payload, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	key := jose.SigningKey{Algorithm: s.alg, Key: jose.JSONWebKey{Key: s.key, KeyID: fmt.Sprint(s.kid)}}
	signer, err := jose.NewSigner(key, nil)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		panic(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return token
}

func (s *Server) discovery(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{
		"issuer": s.URL, "jwks_uri": s.URL + "/keys", "token_endpoint": s.URL + "/token",
		"authorization_endpoint": s.URL + "/authorize", "device_authorization_endpoint": s.URL + "/device",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{"ES256", "RS256"},
	})
}

func (s *Server) keys(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		{Key: s.key.Public(), KeyID: fmt.Sprint(s.kid), Algorithm: string(s.alg), Use: "sig"},
	}})
}

// Confide gives the client a secret, which it must know from now on.
func (s *Server) Confide(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secret = secret
}

// authorize sends the browser back: the person agrees, if somebody has said who they are.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, back := r.URL.Query(), url.Values{"state": {r.URL.Query().Get("state")}}
	switch {
	case q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("nonce") == "":
		back.Set("error", "invalid_request")
	case len(s.people) > 0 && !here(q.Get("redirect_uri")):
		http.Error(w, "nobody is sent elsewhere than to a node on this machine", http.StatusBadRequest)
		return
	case len(s.people) > 0 && q.Get(chosen) == "":
		s.ask(w, r)
		return
	case len(s.people) > 0 && s.person(q.Get(chosen)) != nil, len(s.people) == 0 && s.claims != nil:
		code := rand.Text()
		s.logins[code] = q
		back.Set("code", code)
	default:
		back.Set("error", "access_denied")
		back.Set("error_description", "nobody <is> here")
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// logged is the login of a code, which is good for one use, by who has begun it.
func (s *Server) logged(r *http.Request) (url.Values, bool) {
	code := r.FormValue("code")
	q, ok := s.logins[code]
	delete(s.logins, code)
	hash := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	_, secret, _ := r.BasicAuth()
	if secret == "" {
		secret = r.FormValue("client_secret")
	}
	return q, ok && q.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(hash[:]) && q.Get("redirect_uri") == r.FormValue("redirect_uri") && secret == s.secret
}

func (s *Server) device(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.people) > 0 {
		s.claims = nil // they have not said yet who they are
	}
	answer(w, http.StatusOK, map[string]any{
		"device_code": "the-device", "user_code": "WDJB-MJHT", "verification_uri": s.URL + "/activate",
		"expires_in": 600, "interval": 1,
	})
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	grant, code := r.FormValue("grant_type"), r.FormValue("device_code")
	of := map[string]any{}
	switch {
	case grant == "authorization_code":
		q, ok := s.logged(r)
		if !ok {
			answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
			return
		}
		of["nonce"] = q.Get("nonce")
		if who := s.person(q.Get(chosen)); who != nil {
			s.claims = who
		}
	case grant == "urn:ietf:params:oauth:grant-type:device_code" && code == "the-device" && s.claims == nil:
		answer(w, http.StatusBadRequest, map[string]any{"error": "authorization_pending"})
		return
	case grant == "urn:ietf:params:oauth:grant-type:device_code" && code == "the-device":
	case grant == "refresh_token" && r.FormValue("refresh_token") == fmt.Sprint("refresh-", s.refresh):
	default:
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	s.refresh++ // each is good for one use
	client := r.FormValue("client_id")
	if id, _, ok := r.BasicAuth(); ok {
		client = id
	}
	of["aud"] = client
	maps.Copy(of, s.claims)
	signed := s.sign(of, s.life)
	said := map[string]any{"access_token": signed, "id_token": signed, "token_type": "Bearer", "expires_in": int(s.life / time.Second)}
	if len(s.people) == 0 { // else it would not be known whose it is
		said["refresh_token"] = fmt.Sprint("refresh-", s.refresh)
	}
	answer(w, http.StatusOK, said)
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // its reader may be gone
}
