package nodes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Group is a control group whose processes the kernel gives no more memory than
// its limit: it kills one of them first.
type Group struct {
	dir, procs, kills string
}

// versions are where control groups are, and how their files are called.
var versions = []struct{ root, limit, swap, kills string }{
	{"/sys/fs/cgroup", "memory.max", "memory.swap.max", "memory.events"},
	{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control"},
}

// Limit makes a control group, of version 2 or 1, with a limit of memory. The
// error says why this user, on this system, can not.
func Limit(name string, bytes int64) (*Group, error) {
	err := errors.New("there are no control groups")
	for _, v := range versions {
		if _, e := os.Stat(filepath.Join(v.root, "cgroup.procs")); e != nil {
			continue
		}
		dir := filepath.Join(v.root, fmt.Sprintf("aqueduct-%s-%d", name, os.Getpid()))
		if err = os.Mkdir(dir, 0o700); err != nil {
			continue
		}
		if err = os.WriteFile(filepath.Join(dir, v.limit), []byte(strconv.FormatInt(bytes, 10)), 0o600); err != nil {
			_ = os.Remove(dir)
			continue
		}
		swap := strconv.FormatInt(bytes, 10) // version 1 counts both together
		if v.swap == "memory.swap.max" {
			swap = "0"
		}
		_ = os.WriteFile(filepath.Join(dir, v.swap), []byte(swap), 0o600) // a kernel may not count swap
		return &Group{dir: dir, procs: filepath.Join(dir, "cgroup.procs"), kills: filepath.Join(dir, v.kills)}, nil
	}
	return nil, err
}

// Kills is how many of its processes the kernel has killed for memory.
func (g *Group) Kills() int {
	raw, _ := os.ReadFile(g.kills) // an old kernel does not count
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "oom_kill" {
			n, _ := strconv.Atoi(f[1]) // the kernel writes numbers
			return n
		}
	}
	return 0
}

// Close removes the group, which has no processes any more.
func (g *Group) Close() error { return os.Remove(g.dir) }
