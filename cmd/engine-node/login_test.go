package main

import (
	"testing"
	"time"

	"golang.org/x/oauth2"
)

// What a provider answers when a login begins is held to what RFC 8628 says before
// anybody is asked to do something.
func TestWhatAProviderAsksForIsBounded(t *testing.T) {
	t.Parallel()
	good := oauth2.DeviceAuthResponse{DeviceCode: "d", UserCode: "AB-CD", VerificationURI: "https://id.example/device", Interval: 1, Expiry: time.Now().Add(time.Minute)}
	for name, change := range map[string]func(*oauth2.DeviceAuthResponse){
		"a script":           func(a *oauth2.DeviceAuthResponse) { a.VerificationURI = "javascript:alert(1)" },
		"a file":             func(a *oauth2.DeviceAuthResponse) { a.VerificationURIComplete = "file:///etc/passwd" },
		"no host":            func(a *oauth2.DeviceAuthResponse) { a.VerificationURI = "https:///x" },
		"an escape":          func(a *oauth2.DeviceAuthResponse) { a.VerificationURI = "https://id.example/\u009b2J" },
		"no address":         func(a *oauth2.DeviceAuthResponse) { a.VerificationURI = "" },
		"no code":            func(a *oauth2.DeviceAuthResponse) { a.UserCode = "" },
		"no device":          func(a *oauth2.DeviceAuthResponse) { a.DeviceCode = "" },
		"a negative pause":   func(a *oauth2.DeviceAuthResponse) { a.Interval = -1 },
		"a pause of a year ": func(a *oauth2.DeviceAuthResponse) { a.Interval = 365 * 24 * 3600 },
	} {
		a := good
		change(&a)
		if err := bounded(&a); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	for _, expiry := range []time.Time{{}, time.Now().Add(1000 * time.Hour)} {
		a := good
		a.Expiry = expiry
		if err := bounded(&a); err != nil || time.Until(a.Expiry) > loginMax {
			t.Errorf("%v: until %s", err, a.Expiry)
		}
	}
}
