package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/oauth2"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// Bounds of a renewal.
const (
	renewPatience = 10 * time.Second // with a provider that is away, when the token is over
	renewBriefly  = 5 * time.Second  // the same while it is good, and then until the next try
	renewPause    = 250 * time.Millisecond
	renewPauseMax = 2 * time.Second
	lockPatience  = time.Minute // with other runs of the program that write logins
	lockLook      = 50 * time.Millisecond
)

// session is a login as one run of the program uses it: each request asks it for a token,
// for some commands take longer than one lives.
type session struct {
	of visitor

	mu    sync.Mutex
	has   credential
	again time.Time // before it, a token that is not over is not renewed
}

// bearer is the token of who has logged in to the server; "" = nobody has. Where it is not
// renewed, the one that is not over yet does: the provider may answer a later request.
func (s *session) bearer(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := time.Until(s.has.Expires)
	if left > early || left > 0 && time.Now().Before(s.again) {
		return s.has.Token, nil
	}
	k, err := s.of.credential(ctx)
	if k.Token == s.has.Token { // it was not renewed
		s.again = time.Now().Add(renewBriefly)
	}
	if k.Token == "" && time.Until(s.has.Expires) > 0 {
		return s.has.Token, nil
	}
	s.has = k
	return k.Token, err
}

// credential is that of who has logged in to the server, renewed where that is due; none =
// nobody has. One that cannot be renewed is used until it is over.
func (a visitor) credential(ctx context.Context) (credential, error) {
	all, _, err := a.credentials()
	k, ok := all[a.server]
	left := time.Until(k.Expires)
	switch {
	case err != nil || !ok || left > early || left > 0 && k.Refresh == "":
		return k, err
	case k.Refresh == "":
		return credential{}, problem.New(problem.Denied, "cli.login", "the login to %s has expired", a.server).WithHint("engine-node login")
	}
	forLock, patience := lockPatience, renewPatience
	if left > renewPatience {
		forLock, patience = renewBriefly, renewBriefly
	}
	renewed, err := a.renewed(ctx, forLock, patience)
	var known *problem.Error
	switch {
	case err == nil:
		return renewed, nil
	case time.Until(k.Expires) > 0:
		return k, nil
	case errors.As(err, &known):
		return credential{}, err
	}
	return credential{}, problem.New(problem.Denied, "cli.login", "the login to %s has expired, and is not renewed: %s", a.server, err).WithHint("engine-node login")
}

// renewed renews the login to the server, unless another run has done so. A provider that is
// away is asked again for so long.
func (a visitor) renewed(ctx context.Context, forLock, patience time.Duration) (k credential, err error) {
	err = a.alone(ctx, forLock, func() error {
		all, _, err := a.credentials()
		was, ok := all[a.server]
		if k = was; err != nil || !ok || time.Until(was.Expires) > early {
			return err
		}
		until := time.Now().Add(patience)
		for pause := renewPause; ; pause = min(2*pause, renewPauseMax) {
			next, again, err := was.renew(ctx, until)
			if err == nil || next.Refresh != was.Refresh { // which counts from now on, whatever came with it
				if failed := a.replace(was, next); failed != nil {
					return failed
				}
			}
			if k, was = next, next; err == nil || !again || time.Now().Add(pause).After(until) || !waited(ctx, pause) {
				return err
			}
		}
	})
	return k, err
}

// replace keeps a login that was renewed. The file is read once more: somebody may have
// removed it meanwhile, or an older program, which knows no lock, have written it. A login that
// was ended, or begun anew, stays as they have it.
func (a visitor) replace(was, renewed credential) error {
	all, file, err := a.credentials()
	if now, ok := all[a.server]; err != nil || !ok || now.Refresh != was.Refresh {
		return err
	}
	all[a.server] = renewed
	return all.write(file)
}

// renew asks the provider for another token. With an error it is the login as it is to be kept,
// and whether the provider may do better when it is asked again. Only the first question, which
// changes nothing, ends at a moment: who does not hear the answer to the second has lost the login.
func (k credential) renew(ctx context.Context, until time.Time) (next credential, again bool, err error) {
	l, ctx := client.Login{Issuer: k.Issuer, ClientID: k.ClientID}, patient(ctx)
	first, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	o, v, err := believe(first, l)
	if err != nil {
		return k, true, err
	}
	t, err := o.TokenSource(ctx, &oauth2.Token{RefreshToken: k.Refresh}).Token()
	if err != nil {
		var said *oauth2.RetrieveError
		refused := errors.As(err, &said) && said.Response.StatusCode < http.StatusInternalServerError && said.Response.StatusCode != http.StatusTooManyRequests
		return k, !refused, err
	}
	if next, err = credentialOf(ctx, l, v, t); err != nil {
		var unheard *url.Error
		k.Refresh = t.RefreshToken
		return k, errors.As(err, &unheard), err
	}
	return next, false, nil
}

// alone lets one run of the program at a time write logins: a refresh token may be good for one
// use, and who uses it twice has lost the login. The lock ends with who has it.
func (a visitor) alone(ctx context.Context, patience time.Duration, do func() error) error {
	_, file, err := a.credentials()
	if err != nil {
		return err
	}
	file = filepath.Join(filepath.Dir(file), "credentials.lock")
	err = os.MkdirAll(filepath.Dir(file), 0o700)
	var f *os.File
	if err == nil {
		f, err = os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	}
	if err != nil {
		return problem.Wrap(err, problem.Unavailable, "cli.file", "%s cannot be written", file)
	}
	defer f.Close()
	for until := time.Now().Add(patience); ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return do() // also where the file system knows no locks
		}
		if time.Now().After(until) || !waited(ctx, lockLook) {
			return problem.New(problem.Unavailable, "cli.file", "another engine-node has had the lock %s for %s", file, patience)
		}
	}
}

// waited waits, and reports whether ctx has not ended.
func waited(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
