package nodes

import (
	"os"
	"os/exec"
	"testing"
)

// The kernel kills what takes more than a group has, and the group counts it.
func TestGroupLimitsMemory(t *testing.T) {
	t.Parallel()
	const limit = 64 << 20
	g, err := Limit("test", limit)
	if err != nil {
		t.Skipf("no control group can be made here: %v", err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	cmd := exec.Command("/bin/sh", "-c", `echo $$ > "$0" && exec head -c 200000000 /dev/zero | sort -S 300M > /dev/null`, g.procs)
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if g.Kills() == 0 {
		t.Errorf("200 MB of %d are allowed: %v %s", limit, err, out)
	}
}
