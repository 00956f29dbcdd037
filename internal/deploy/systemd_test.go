package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/config"
)

// The unit starts the program as it is called, and leaves it the time to drain.
func TestUnitOfSystemd(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(root, "deploy", "systemd", "engine-node.service"))
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]string{}
	for _, line := range strings.Split(string(raw), "\n") {
		if key, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			set[key] = value
		}
	}
	stop, err := strconv.Atoi(set["TimeoutStopSec"])
	if err != nil || time.Duration(stop)*time.Second <= config.Default().DrainTimeout+10*time.Second {
		t.Errorf("TimeoutStopSec=%s, and a node drains for %s", set["TimeoutStopSec"], config.Default().DrainTimeout)
	}
	if set["ExecStart"] != "/usr/local/bin/engine-node serve --config /etc/aqueduct/node.yaml" || set["KillSignal"] != "SIGTERM" {
		t.Errorf("%v", set)
	}
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return // not every system has it
	}
	// With a program that is there, as the one it names need not be.
	unit := filepath.Join(t.TempDir(), "engine-node.service")
	text := regexp.MustCompile(`(?m)^ExecStart=\S+`).ReplaceAll(raw, []byte("ExecStart=/bin/true"))
	if err := os.WriteFile(unit, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "verify", unit).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze: %v\n%s", err, out)
	}
}
