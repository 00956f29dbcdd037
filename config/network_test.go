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
