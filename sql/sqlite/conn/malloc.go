//go:build cgo

package conn

/*
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
// Before there is a thread: each has an arena of its own, made with its first block.
__attribute__((constructor)) static void thrift(void) {
	mallopt(M_ARENA_MAX, 2);
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
}
#endif
*/
import "C"

// The C library, from which SQLite takes its memory, gives large blocks back when they
// are free, and has few arenas to keep small ones. By default each thread has one and
// keeps what it had: under load the process had 40 MiB more beside 25 MiB of pages, on
// two processors, and a node of 512 MiB was killed. Settings of SQLite bound what it
// uses, not what the library keeps.
