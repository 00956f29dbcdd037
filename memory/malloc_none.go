//go:build !cgo

package memory

func thrift() {}
