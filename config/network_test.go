package config

import (
	"strings"
	"testing"
	"time"
)

// A connect string says how long to wait and when to probe, where it is one.
func TestConnectStringOfOracle(t *testing.T) {
	for _, c := range []struct {
		url                string
		connect, keepalive time.Duration
		want               string
	}{
		{"oracle://u:p@db:1521/pdb", 10 * time.Second, 2 * time.Minute, `connectString="db:1521/pdb?connect_timeout=10&transport_connect_timeout=5&expire_time=2"`},
		{"oracle://u:p@db:1521/pdb?schema=S", 1500 * time.Millisecond, 61 * time.Second, `connectString="db:1521/pdb?connect_timeout=2&transport_connect_timeout=1&expire_time=2"`},
		{"oracle://u:p@db/pdb", 3 * time.Second, 0, `connectString="db/pdb?connect_timeout=3&transport_connect_timeout=2"`},
		{"oracle://u:p@ALIAS", 10 * time.Second, 2 * time.Minute, `connectString="ALIAS"`},
	} {
		dsn, ok := Store{URL: c.url, ConnectTimeout: c.connect, Keepalive: c.keepalive}.DataSource()
		if !ok || !strings.Contains(dsn, " "+c.want+" ") {
			t.Errorf("%s: %s", c.url, dsn)
		}
	}
}

// A wallet brings TLS to an address by host, and its user to one without.
func TestWallet(t *testing.T) {
	for url, want := range map[string][]string{
		"oracle://u:p@db:2484/pdb":            {`connectString="tcps://db:2484/pdb?wallet_location=/w"`, `configDir="/w"`, `user="u"`},
		"oracle://ALIAS":                      {`connectString="ALIAS"`, `configDir="/w"`, `externalAuth="1"`, `user=""`},
		"oracle://u:p@ALIAS?configDir=/etc/o": {`connectString="ALIAS"`, `configDir="/etc/o"`},
	} {
		dsn, ok := Store{URL: url, Wallet: "/w"}.DataSource()
		for _, part := range want {
			if !ok || !strings.Contains(dsn+" ", part+" ") {
				t.Errorf("%s: %s has no %s", url, dsn, part)
			}
		}
	}
	l, err := load(t, "store: {url: 'oracle://db/pdb', wallet: /w}", nil)
	if err != nil || !strings.Contains(first(l.Store.DataSource()), "externalAuth") {
		t.Error(l.Store, err)
	}
}

func first(dsn string, _ bool) string { return dsn }

func TestNetworkSettings(t *testing.T) {
	l, err := load(t, "store: {url: 'oracle://u:p@db/pdb', connect-timeout: 4s, keepalive: 5m}", nil)
	if err != nil {
		t.Fatal(err)
	}
	if dsn, _ := l.Store.DataSource(); !strings.Contains(dsn, "db/pdb?connect_timeout=4&transport_connect_timeout=2&expire_time=5") {
		t.Error(dsn)
	}
	if _, err := load(t, "store: {connect-timeout: 0s}", nil); err == nil {
		t.Error("no time to connect is accepted")
	}
}
