package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"
)

// service answers one effect: number counts the effects of its path from 1.
type service func(r *http.Request, body []byte, number int) any

// services returns the paths that have effects.
func services() map[string]service {
	return map[string]service{
		"POST /scoring":             score,
		"POST /notifications":       notify,
		"POST /fines/system-number": serial("systemNumber", "SYS-%06d"),
		"POST /fines/manual-code":   serial("manualCode", "MAN-%06d"),
		"POST /fines/issue":         serial("fine", "FINE-%06d"),
		"POST /checkout/{guest}":    checkout,
		"POST /effects/{name}":      anything,
	}
}

// handler serves until ctx ends; then what is slow answers at once.
func (w *world) handler(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	for pattern, s := range services() {
		mux.HandleFunc(pattern, func(rw http.ResponseWriter, r *http.Request) { w.serve(ctx, rw, r, s) })
	}
	mux.HandleFunc("GET /effects", func(rw http.ResponseWriter, _ *http.Request) {
		all := w.list()
		effects, attempts := 0, 0
		for _, r := range all {
			effects += r.Effects
			attempts += r.Attempts
		}
		reply(rw, http.StatusOK, map[string]any{"effects": effects, "attempts": attempts, "keys": all})
	})
	mux.HandleFunc("GET /control", func(rw http.ResponseWriter, _ *http.Request) { reply(rw, http.StatusOK, w.allControls()) })
	mux.HandleFunc("PUT /control/{path...}", w.putControl)
	mux.HandleFunc("DELETE /control/{path...}", func(rw http.ResponseWriter, r *http.Request) {
		w.setControl("/"+r.PathValue("path"), nil)
		rw.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /reset", func(rw http.ResponseWriter, _ *http.Request) {
		if err := w.reset(); err != nil {
			refuse(rw, http.StatusInternalServerError, err)
			return
		}
		rw.WriteHeader(http.StatusNoContent)
	})
	return mux
}

// serve performs one request. A slow request goes on when its client has left,
// as it would in a real service; that is what makes the key necessary.
func (w *world) serve(ctx context.Context, rw http.ResponseWriter, r *http.Request, s service) {
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxBodyBytes))
	if err != nil {
		refuse(rw, http.StatusRequestEntityTooLarge, err)
		return
	}
	t := target{Path: r.URL.Path, Key: r.Header.Get("Idempotency-Key")}
	if t.Key == "" {
		refuse(rw, http.StatusBadRequest, errors.New("the header Idempotency-Key is missing"))
		return
	}
	trouble, err := w.attempt(t)
	if err != nil {
		refuse(rw, http.StatusInsufficientStorage, err)
		return
	}
	if !trouble.after && !trouble.pass(ctx, rw) {
		return
	}
	answer, repeated, err := w.perform(t, body, func(number int) any { return s(r, body, number) })
	switch {
	case errors.Is(err, errKeyReused):
		refuse(rw, http.StatusUnprocessableEntity, err)
		return
	case err != nil:
		refuse(rw, http.StatusInternalServerError, err)
		return
	}
	if trouble.after && !trouble.pass(ctx, rw) {
		return
	}
	if repeated {
		rw.Header().Set("Idempotency-Replayed", "true")
	}
	reply(rw, http.StatusOK, answer)
	if path := r.Header.Get("Aqueduct-Ack"); path != "" && w.node != "" {
		go w.acknowledge(ctx, path)
	}
}

// pass waits out the delay and fails the request if it must; ok means go on.
func (t trouble) pass(ctx context.Context, rw http.ResponseWriter) (ok bool) {
	if t.delay > 0 {
		timer := time.NewTimer(t.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if t.status == 0 {
		return true
	}
	refuse(rw, t.status, errors.New("told to fail"))
	return false
}

func (w *world) putControl(rw http.ResponseWriter, r *http.Request) {
	d := json.NewDecoder(http.MaxBytesReader(rw, r.Body, maxBodyBytes))
	d.DisallowUnknownFields()
	c := &control{}
	if err := d.Decode(c); err != nil {
		refuse(rw, http.StatusBadRequest, err)
		return
	}
	if err := c.check(); err != nil {
		refuse(rw, http.StatusBadRequest, err)
		return
	}
	w.setControl("/"+r.PathValue("path"), c)
	rw.WriteHeader(http.StatusNoContent)
}

func reply(rw http.ResponseWriter, status int, v any) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(v) // the client may have left
}

func refuse(rw http.ResponseWriter, status int, err error) {
	reply(rw, status, map[string]any{"title": http.StatusText(status), "status": status, "detail": err.Error()})
}

// score judges a loan: 850 for nothing asked, 300 for ten times the income.
func score(_ *http.Request, body []byte, _ int) any {
	var loan struct{ Amount, Income float64 }
	_ = json.Unmarshal(body, &loan) // an unreadable application has the worst score
	share := 1.0
	if loan.Income > 0 {
		share = min(max(loan.Amount/(10*loan.Income), 0), 1)
	}
	return map[string]any{"score": int(math.Round(850 - 550*share))}
}

func notify(_ *http.Request, _ []byte, number int) any {
	return map[string]any{"notification": fmt.Sprintf("NOTE-%06d", number), "accepted": true}
}

func serial(name, format string) service {
	return func(_ *http.Request, _ []byte, number int) any {
		return map[string]any{name: fmt.Sprintf(format, number)}
	}
}

func checkout(r *http.Request, _ []byte, _ int) any {
	guest := r.PathValue("guest")
	return map[string]any{"guest": guest, "status": "checked-out", "invoice": "INV-" + guest}
}

// anything echoes what it was asked.
func anything(r *http.Request, body []byte, number int) any {
	var echo any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if d.Decode(&echo) != nil {
		echo = string(body)
	}
	return map[string]any{"name": r.PathValue("name"), "number": number, "echo": echo}
}
