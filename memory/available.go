package memory

import (
	"os"
	"path"
	"strconv"
	"strings"
)

// Available is how much memory this process may have: the least limit of its
// control groups, else half of what the machine has, else fallback.
func Available() int64 {
	if n := limitOfGroups("/proc/self/cgroup", "/sys/fs/cgroup"); n > 0 {
		return n
	}
	if n := installed("/proc/meminfo"); n > 0 {
		return n / 2
	}
	return fallback
}

// fallback is for systems that do not say.
const fallback = 1 << 30

// limitOfGroups reads the limits of control groups, of version 2 and 1, of this
// process and of those above it; 0 = none.
func limitOfGroups(list, root string) int64 {
	raw, _ := os.ReadFile(list) // what is not there says nothing
	least := int64(0)
	for line := range strings.Lines(string(raw)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 || part[1] != "" && part[1] != "memory" {
			continue
		}
		dir, file := root, "/memory.max"
		if part[1] == "memory" {
			dir, file = root+"/memory", "/memory.limit_in_bytes"
		}
		for at := path.Clean("/" + part[2]); ; at = path.Dir(at) {
			if n := number(dir + at + file); n > 0 && n < 1<<60 && (least == 0 || n < least) {
				least = n
			}
			if at == "/" {
				break
			}
		}
	}
	return least
}

func number(file string) int64 {
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64) // "max" is no limit
	return n
}

// installed is the memory of the machine.
func installed(file string) int64 {
	raw, _ := os.ReadFile(file) // what is not there says nothing
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}
