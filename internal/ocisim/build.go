package ocisim

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed client
var client embed.FS

// compilerFlags build the library: only marked symbols are exported, and a
// warning is an error. Signatures are OCI's, so parameters may be unused.
var compilerFlags = []string{"-O1", "-g", "-std=gnu17", "-fPIC", "-fvisibility=hidden",
	"-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"}

// buildLibrary compiles the stand-in into a directory of the cache that is
// named for everything that goes into it, unless it is there already. AddressSanitizer is added
// where OCISIM_ASAN is set; the test binary must then preload libasan.
func buildLibrary(ctx context.Context, pg postgres) (string, error) {
	flags := append([]string{"-I" + pg.include}, compilerFlags...)
	if os.Getenv("OCISIM_ASAN") != "" {
		flags = append(flags, "-fsanitize=address", "-fno-omit-frame-pointer")
	}
	key, err := sourceHash(flags)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("aqueduct-ocisim-%d", os.Getuid()), key)
	if _, err := os.Stat(filepath.Join(dir, "libclntsh.so")); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(dir), "build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	if err := compile(ctx, scratch, flags); err != nil {
		return "", err
	}
	if err := os.Chmod(scratch, 0o755); err != nil {
		return "", err
	}
	// Whoever is first wins; the others have built the same.
	if err := os.Rename(scratch, dir); err != nil {
		if _, serr := os.Stat(filepath.Join(dir, "libclntsh.so")); serr != nil {
			return "", err
		}
	}
	return dir, nil
}

// sourceHash names a build by its sources and flags.
func sourceHash(flags []string) (string, error) {
	h := sha256.New()
	io.WriteString(h, strings.Join(flags, "\x00"))
	err := fs.WalkDir(client, "client", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		source, err := client.ReadFile(path)
		fmt.Fprintf(h, "\x00%s\x00%d\x00", path, len(source))
		h.Write(source)
		return err
	})
	return hex.EncodeToString(h.Sum(nil))[:16], err
}

// compile writes the sources into dir and leaves libclntsh.so there.
func compile(ctx context.Context, dir string, flags []string) error {
	sub, err := fs.Sub(client, "client")
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, sub); err != nil {
		return err
	}
	sources, err := fs.Glob(sub, "*.c")
	if err != nil {
		return err
	}
	args := append([]string{"-shared", "-Wl,-soname,libclntsh.so", "-o", "libclntsh.so"}, flags...)
	args = append(args, sources...)
	args = append(args, "-lpq", "-lpthread", "-lm")
	cmd := exec.CommandContext(ctx, "gcc", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ocisim: gcc: %w\n%s", err, tail(out))
	}
	return nil
}
