package ctk_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
)

// petstore is the part of the Petstore's document that the kit asks for.
const petstore = `{
  "swagger": "2.0",
  "info": {"title": "Swagger Petstore", "version": "1.0.7"},
  "host": "petstore.swagger.io", "basePath": "/v2", "schemes": ["https", "http"],
  "paths": {
    "/pet/findByStatus": {"get": {
      "operationId": "findPetsByStatus", "produces": ["application/json"],
      "parameters": [{"name": "status", "in": "query", "required": true, "type": "array", "collectionFormat": "multi",
        "items": {"type": "string", "enum": ["available", "pending", "sold"], "default": "available"}}],
      "responses": {"200": {"description": "successful operation"}}}},
    "/pet/{petId}": {"get": {
      "operationId": "getPetById", "produces": ["application/json"],
      "parameters": [{"name": "petId", "in": "path", "required": true, "type": "integer", "format": "int64"}],
      "responses": {"200": {"description": "successful operation"}}}}
  }
}`

// stub stands for the hosts that the kit calls.
func stub(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v) // the test notices what is missing
	}
	pet := func(id int, status string) map[string]any {
		return map[string]any{"id": id, "name": "pet " + strconv.Itoa(id), "status": status}
	}
	mux.HandleFunc("GET /petstore.swagger.io/v2/swagger.json", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, json.RawMessage(petstore))
	})
	mux.HandleFunc("GET /petstore.swagger.io/v2/pet/findByStatus", func(w http.ResponseWriter, r *http.Request) {
		status := r.URL.Query().Get("status")
		if status != "available" {
			answer(w, http.StatusBadRequest, map[string]any{"message": "status " + status})
			return
		}
		answer(w, http.StatusOK, []any{pet(1, status), pet(2, status)})
	})
	mux.HandleFunc("GET /petstore.swagger.io/v2/pet/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.Atoi(r.PathValue("id"))
		if err != nil {
			answer(w, http.StatusBadRequest, map[string]any{"message": "not an id"})
			return
		}
		answer(w, http.StatusOK, pet(id, "available"))
	})
	mux.HandleFunc("GET /httpbin.org/basic-auth/{user}/{password}", func(w http.ResponseWriter, r *http.Request) {
		user, password, ok := r.BasicAuth()
		if !ok || user != r.PathValue("user") || password != r.PathValue("password") {
			w.Header().Set("WWW-Authenticate", `Basic realm="stub"`)
			answer(w, http.StatusUnauthorized, map[string]any{"authenticated": false})
			return
		}
		answer(w, http.StatusOK, map[string]any{"authenticated": true, "user": user})
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv
}

// toStub is a transport that leads every host to the stub, which finds it as
// the first segment of the path.
type toStub string

func (s toStub) RoundTrip(r *http.Request) (*http.Response, error) {
	to, err := url.Parse(string(s))
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	raw := "/" + r.URL.Host + r.URL.EscapedPath()
	if r.URL.Path, err = url.PathUnescape(raw); err != nil {
		return nil, err
	}
	r.URL.RawPath = raw
	r.URL.Scheme, r.URL.Host, r.Host = to.Scheme, to.Host, ""
	return http.DefaultTransport.RoundTrip(r)
}
