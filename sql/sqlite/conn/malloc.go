//go:build cgo

package conn

/*
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
static void thrift(void) {
	mallopt(M_ARENA_MAX, 2);
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
}
#else
static void thrift(void) {}
#endif
*/
import "C"

import "sync"

// thrift has the C library, from which SQLite takes its memory, give large
// blocks back when they are free, and few arenas keep small ones. By default
// each thread has an arena of its own and keeps what it had: under load the
// process had 40 MiB more beside 25 MiB of pages, on two processors, and a node
// of 512 MiB was killed. Settings of SQLite bound what it uses, not what the
// library keeps.
var thrift = sync.OnceFunc(func() { C.thrift() })
