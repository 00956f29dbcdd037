// Package idp is an identity provider for tests: OpenID Connect's discovery, keys that
// change, and the device flow of RFC 8628, for one person who agrees to everything.
package idp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Server is the provider; its URL is the issuer.
type Server struct {
	URL string

	http *httptest.Server
	mu   sync.Mutex
	key  *ecdsa.PrivateKey
	kid  int
	away bool
	asks map[string]int

	claims  map[string]any // of the person, once they have agreed
	life    time.Duration
	refresh int
}

// Run starts a provider.
func Run() *Server {
	s := &Server{asks: map[string]int{}, life: time.Hour}
	s.Rotate()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", s.discovery)
	mux.HandleFunc("GET /keys", s.keys)
	mux.HandleFunc("POST /device", s.device)
	mux.HandleFunc("POST /token", s.token)
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asks[r.URL.Path]++
		away := s.away
		s.mu.Unlock()
		if away {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	s.URL = s.http.URL
	return s
}

// Close ends it.
func (s *Server) Close() { s.http.Close() }

// Rotate makes another key the only one.
func (s *Server) Rotate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key, s.kid = key, s.kid+1
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
	key := jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: s.key, KeyID: fmt.Sprint(s.kid)}}
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
		"id_token_signing_alg_values_supported": []string{"ES256"},
	})
}

func (s *Server) keys(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		{Key: s.key.Public(), KeyID: fmt.Sprint(s.kid), Algorithm: string(jose.ES256), Use: "sig"},
	}})
}

func (s *Server) device(w http.ResponseWriter, r *http.Request) {
	answer(w, http.StatusOK, map[string]any{
		"device_code": "the-device", "user_code": "WDJB-MJHT", "verification_uri": s.URL + "/activate",
		"expires_in": 600, "interval": 1,
	})
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	grant, code := r.FormValue("grant_type"), r.FormValue("device_code")
	switch {
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
	of := map[string]any{"aud": client}
	maps.Copy(of, s.claims)
	signed := s.sign(of, s.life)
	answer(w, http.StatusOK, map[string]any{
		"access_token": signed, "id_token": signed, "token_type": "Bearer",
		"expires_in": int(s.life / time.Second), "refresh_token": fmt.Sprint("refresh-", s.refresh),
	})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // its reader may be gone
}
