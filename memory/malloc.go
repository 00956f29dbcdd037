//go:build cgo

package memory

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

// thrift has the C library, from which the embedded store takes its memory, give
// large blocks back when they are free: by default each of its threads keeps
// what it had, and under load that was 140 MiB.
func thrift() { C.thrift() }
