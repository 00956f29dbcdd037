package activity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Fetch gets a document of at most max bytes for the one who publishes a
// definition that refers to it. It sends nothing of its own and follows
// redirects. Its errors name the place without the query of the URI.
func (p *Performer) Fetch(ctx context.Context, uri string, max int64) ([]byte, error) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("it is not at an HTTP URL")
	}
	ctx, cancel := context.WithTimeout(ctx, p.config.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, uri, nil)
	if err != nil {
		return nil, fmt.Errorf("it is not at an HTTP URL")
	}
	req.Header.Set("Accept", "application/json, application/yaml, */*;q=0.5")
	resp, err := p.fetcher.Do(req)
	if refused := notAllowed(err); refused != nil {
		return nil, refused
	}
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, fmt.Errorf("%s: %w", place(u), err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s", place(u), resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, max+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place(u), err)
	}
	if int64(len(body)) > max {
		return nil, fmt.Errorf("%s has more than %d bytes", place(u), max)
	}
	return body, nil
}
