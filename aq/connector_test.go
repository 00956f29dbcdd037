package aq

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/godror/godror"
)

// asked is a database that hears who wants to connect.
type asked struct {
	driver.Connector
	passwords []string
}

func (a *asked) Connect(context.Context) (driver.Conn, error) {
	return nil, errors.New("nobody is let in")
}

// TestThePasswordIsReadWhenConnecting: a connection is made with the password as it is
// then; while it cannot be read, or is written just now, with the one before.
func TestThePasswordIsReadWhenConnecting(t *testing.T) {
	t.Parallel()
	params, err := godror.ParseDSN(`user="u" password="first" connectString="db"`)
	if err != nil {
		t.Fatal(err)
	}
	text, failed := "", errors.New("no file")
	a := &asked{}
	c := newConnector(params, func() (string, error) { return text, failed }).(*connector)
	c.connect = func(p godror.ConnectionParams) driver.Connector {
		a.passwords = append(a.passwords, p.Password.Secret())
		return a
	}
	connect := func(want string) {
		t.Helper()
		if _, err := c.Connect(t.Context()); err == nil || a.passwords[len(a.passwords)-1] != want {
			t.Fatalf("connected as %q, want %q: %v", a.passwords[len(a.passwords)-1], want, err)
		}
	}
	connect("first")
	text, failed = "second", nil
	connect("second")
	text = ""
	connect("second")
	failed = errors.New("gone")
	connect("second")
	text, failed = "third", nil
	connect("third")
}

func TestSessionsCompareByteByByte(t *testing.T) {
	t.Parallel()
	var params godror.ConnectionParams
	inOneWay(&params)
	want := [][2]string{{"NLS_COMP", "BINARY"}, {"NLS_SORT", "BINARY"}, {"TIME_ZONE", "UTC"}}
	if !slices.Equal(params.AlterSession, want) || params.Timezone != time.UTC {
		t.Errorf("sessions begin with %v", params.AlterSession)
	}
}
