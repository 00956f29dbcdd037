package conn

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/mattn/go-sqlite3"
	"golang.org/x/sys/unix"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Explain turns an error of the driver into a problem, by its code. Anything
// else it returns unchanged. No driver type leaves the package but as a cause.
func Explain(err error, path string) error {
	var e sqlite3.Error
	var p *problem.Error
	if err == nil || errors.As(err, &p) || !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case sqlite3.ErrFull:
		return full(err, path)
	case sqlite3.ErrReadonly, sqlite3.ErrPerm, sqlite3.ErrAuth:
		return readOnly(err, path)
	case sqlite3.ErrCorrupt, sqlite3.ErrNotADB, sqlite3.ErrFormat:
		return problem.Wrap(err, problem.Internal, "store.corrupt", "the database %s is damaged or is no SQLite database", path).
			WithHint("restore it from a backup; sqlite3's .recover may save rows")
	case sqlite3.ErrBusy, sqlite3.ErrLocked:
		return BusyBy(err, path, "")
	case sqlite3.ErrCantOpen:
		if e := unix.Access(filepath.Dir(path), unix.W_OK); errors.Is(e, unix.EROFS) || errors.Is(e, unix.EACCES) {
			return readOnly(err, path)
		}
		return problem.Wrap(err, problem.Unavailable, "store.unreachable", "the database %s cannot be opened", path).
			WithHint("its directory must exist and be writable")
	case sqlite3.ErrIoErr:
		if e.SystemErrno == syscall.ENOSPC || e.SystemErrno == syscall.EDQUOT {
			return full(err, path)
		}
		return problem.Wrap(err, problem.Unavailable, "store.io", "the database %s cannot be read or written", path)
	case sqlite3.ErrNomem:
		return problem.Wrap(err, problem.Unavailable, "store.memory", "no memory for the database %s", path)
	case sqlite3.ErrConstraint, sqlite3.ErrMismatch:
		if e.ExtendedCode == sqlite3.ErrConstraintUnique || e.ExtendedCode == sqlite3.ErrConstraintPrimaryKey || e.ExtendedCode == sqlite3.ErrConstraintRowID {
			return problem.Wrap(err, problem.Conflict, "store.exists", "the key exists")
		}
		return problem.Wrap(err, problem.Invalid, "store.value", "the database does not take a value")
	case sqlite3.ErrError: // what it thinks of JSON has no code of its own
		if strings.Contains(e.Error(), "malformed JSON") {
			return problem.Wrap(err, problem.Invalid, "store.value", "the database does not take a value")
		}
	case sqlite3.ErrTooBig:
		return problem.Wrap(err, problem.TooLarge, "store.too-big", "a value exceeds what SQLite can store")
	}
	return problem.Wrap(err, problem.Internal, "store.sql", "the database %s refused a statement", path)
}

// ExplainFile is Explain for the files beside the database.
func ExplainFile(err error, path string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return readOnly(err, path)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return full(err, path)
	}
	return problem.Wrap(err, problem.Unavailable, "store.unreachable", "%s cannot be opened", path)
}

// BusyBy says who holds the write lock, where that is known.
func BusyBy(err error, path, owner string) error {
	if owner == "" {
		owner = "another program"
	}
	return problem.Wrap(err, problem.Unavailable, "store.busy", "the database %s is locked by %s", path, owner).
		WithHint("nothing was written; let that process go on (kill -CONT), or end it (kill -KILL): neither loses anything")
}

func full(err error, path string) error {
	return problem.Wrap(err, problem.Unavailable, "store.full", "the disk of the database %s is full", path).
		WithHint("make room; nothing was written, the work is repeated")
}

func readOnly(err error, path string) error {
	return problem.Wrap(err, problem.Unavailable, "store.read-only", "the database %s cannot be written", path).
		WithHint("check the permissions of the file and of its directory")
}

// IsBusy says that another connection has the lock.
func IsBusy(err error) bool { return isCode(err, sqlite3.ErrBusy) }

// IsFull says that the disk is full: nothing was written.
func IsFull(err error) bool { return isCode(err, sqlite3.ErrFull) }

// IsConstraint says that a constraint refused a row, and IsUnique that a unique
// index did.
func IsConstraint(err error) bool { return isCode(err, sqlite3.ErrConstraint) }

// IsUnique is of the constraint that a unique index is.
func IsUnique(err error) bool {
	var e sqlite3.Error
	return errors.As(err, &e) && e.ExtendedCode == sqlite3.ErrConstraintUnique
}

func isCode(err error, code sqlite3.ErrNo) bool {
	if err == nil {
		return false
	}
	var e sqlite3.Error
	return errors.As(err, &e) && e.Code == code
}

// Unique turns the violation of a unique index into another error.
func Unique(err, duplicate error) error {
	if IsConstraint(err) {
		return duplicate
	}
	return err
}
