package console

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
)

// formTimeout is how long a form may take to arrive.
const formTimeout = 10 * time.Second

// body is what has arrived of a form, and how it ended.
type body struct {
	bytes.Reader
	end error
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && b.end != nil {
		err = b.end
	}
	return n, err
}

func (*body) Close() error { return nil }

// arrives reads what a request brings, so that who sends slowly keeps nobody waiting but
// themselves. What is too large is told on the page that reads the form.
func arrives(w http.ResponseWriter, r *http.Request) error {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(formTimeout)) // net/http ends it with the body; a writer that has none is a test's
	form, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxFormBytes))
	var large *http.MaxBytesError
	if err != nil && !errors.As(err, &large) {
		return err
	}
	b := &body{end: err}
	b.Reset(form)
	r.Body = b
	return nil
}
