package conn

/*
#include <stdlib.h>
#if defined(__GLIBC__)
#include <malloc.h>
static void trim(void) { malloc_trim(0); }
#else
static void trim(void) {}
#endif
*/
import "C"

// Trim gives the system what SQLite has freed: pages of 4 KiB lie between others, and the
// C library keeps them unless it is told. It takes milliseconds, and every malloc waits.
func Trim() { C.trim() }
