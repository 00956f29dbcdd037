package files

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// The kernel opens a file lock when its holder dies, however that is.

// lock takes the lock of a file, however long that takes.
func lock(f *os.File) error { return flock(f, unix.LOCK_EX) }

// tryLock takes the lock of a file unless another has it.
func tryLock(f *os.File) (bool, error) {
	err := flock(f, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// unlock gives the lock of a file up.
func unlock(f *os.File) error { return flock(f, unix.LOCK_UN) }

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
