package ocisim

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// postgres is an installed PostgreSQL.
type postgres struct {
	bin     string // directory of initdb, postgres and psql
	include string // directory of libpq-fe.h
}

// packages are what Debian calls the things we need.
var packages = []string{"postgresql", "libpq-dev", "gcc", "libc6-dev"}

// findPostgres finds PostgreSQL, its headers and a C compiler, and installs
// them where it may.
func findPostgres(ctx context.Context) (postgres, error) {
	pg, err := lookPostgres()
	if err == nil {
		return pg, nil
	}
	if ierr := install(ctx); ierr != nil {
		return postgres{}, fmt.Errorf("%w: %w; %w", errMissing, err, ierr)
	}
	pg, err = lookPostgres()
	if err != nil {
		return postgres{}, fmt.Errorf("%w: %w", errMissing, err)
	}
	return pg, nil
}

// lookPostgres looks where distributions put PostgreSQL, the newest first.
func lookPostgres() (postgres, error) {
	pg := postgres{}
	dirs, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return pg, err
	}
	for i := len(dirs) - 1; i >= 0 && pg.bin == ""; i-- {
		if _, err := os.Stat(filepath.Join(dirs[i], "initdb")); err == nil {
			pg.bin = dirs[i]
		}
	}
	if initdb, err := exec.LookPath("initdb"); pg.bin == "" && err == nil {
		pg.bin = filepath.Dir(initdb)
	}
	if pg.bin == "" {
		return pg, fmt.Errorf("no initdb in PATH or /usr/lib/postgresql")
	}
	candidates := []string{"/usr/include/postgresql", "/usr/include", filepath.Join(filepath.Dir(pg.bin), "include")}
	for _, dir := range candidates {
		if _, err := os.Stat(filepath.Join(dir, "libpq-fe.h")); err == nil {
			pg.include = dir
			break
		}
	}
	if pg.include == "" {
		return pg, fmt.Errorf("no libpq-fe.h")
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		return pg, err
	}
	return pg, nil
}

// install asks Debian's package manager, as root only.
func install(ctx context.Context) error {
	how := "install them, for example: sudo apt-get install -y " + strings.Join(packages, " ")
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("%s", how)
	}
	for _, args := range [][]string{{"update", "-q"}, append([]string{"install", "-y", "-q", "--no-install-recommends"}, packages...)} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w: %s; %s", args[0], err, tail(out), how)
		}
	}
	return nil
}

// tail is the end of a command's output, for an error.
func tail(out []byte) string {
	const limit = 2000
	s := strings.TrimSpace(string(out))
	if len(s) > limit {
		s = "..." + s[len(s)-limit:]
	}
	return s
}
