#!/usr/bin/env bash
# Runs the tests with the library under AddressSanitizer. The sanitizer's own
# library has to be there before the test binary starts; signals stay Go's, and
# leaks are looked for by TestMemoryStaysFlat, which freed memory kept back for
# checks would fail.
set -euo pipefail
cd "$(dirname "$0")"

runtime=$(gcc -print-file-name=libasan.so)
export OCISIM_ASAN=1
go test -count=1 -skip "^TestMemoryStaysFlat$" \
	-exec "env LD_PRELOAD=$runtime ASAN_OPTIONS=detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:abort_on_error=1" \
	"$@" .
