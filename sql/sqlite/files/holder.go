package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// walWriteLock is the byte of the -shm file that SQLite locks to write
// (sqlite.org/walformat.html, 2.2.1).
const walWriteLock = 120

// Holder names the process that holds the write lock of a database, as far as the
// kernel tells: nothing when nobody holds it, or who does is in another
// namespace.
//
// The question is put on the file that SQLite has open itself: to open it once
// more, and close it, would drop the locks of this process.
func Holder(path string) string {
	fd, ok := opened(path + "-shm")
	if !ok {
		return ""
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: walWriteLock, Len: 1}
	if err := unix.FcntlFlock(uintptr(fd), unix.F_GETLK, &lock); err != nil || lock.Type == unix.F_UNLCK || lock.Pid <= 0 {
		return ""
	}
	return describe(int(lock.Pid))
}

// opened finds a file among those that this process has open.
func opened(path string) (fd int, ok bool) {
	want, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0, false
	}
	for _, name := range names {
		got, err := os.Stat(filepath.Join("/proc/self/fd", name.Name()))
		if err != nil || !os.SameFile(want, got) {
			continue
		}
		if fd, err = strconv.Atoi(name.Name()); err == nil {
			return fd, true
		}
	}
	return 0, false
}

// describe is a process by its id, its name, and whether it is stopped.
func describe(pid int) string {
	text := fmt.Sprintf("process %d", pid)
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return text
	}
	// "PID (NAME) STATE ...", where the name may hold anything.
	_, rest, _ := strings.Cut(string(stat), "(")
	end := strings.LastIndex(rest, ") ")
	if end < 0 || len(rest) < end+3 {
		return text
	}
	text += " (" + rest[:end]
	if state := rest[end+2]; state == 'T' || state == 't' {
		text += ", stopped"
	}
	return text + ")"
}
