//go:build !cgo

package sqlite

func thrift() {}
