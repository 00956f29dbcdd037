//go:build !cgo

package conn

func thrift() {}
