package aq

import (
	"context"
	"database/sql/driver"
	"sync"

	"github.com/godror/godror"
)

// connector asks for the password each time it connects: one that is changed needs no
// other node. While it cannot be read, the one before counts.
type connector struct {
	params   godror.ConnectionParams
	password func() (string, error)
	connect  func(godror.ConnectionParams) driver.Connector // tests

	mu   sync.Mutex
	last string
}

func newConnector(params godror.ConnectionParams, password func() (string, error)) driver.Connector {
	if password == nil {
		return godror.NewConnector(params)
	}
	return &connector{params: params, password: password, connect: godror.NewConnector, last: params.Password.Secret()}
}

// Connect implements driver.Connector.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	c.mu.Lock()
	if text, err := c.password(); err == nil && text != "" {
		c.last = text
	}
	params := c.params
	params.Password = godror.NewPassword(c.last)
	c.mu.Unlock()
	return c.connect(params).Connect(ctx)
}

// Driver implements driver.Connector.
func (c *connector) Driver() driver.Driver { return c.connect(c.params).Driver() }
