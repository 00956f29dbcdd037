package main

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// standsBefore runs HAProxy before nodes of a script, as it is shipped: proxy CONFIGURATION
// SCHEME FILE..., each file with the address of a node. Only ports, where its
// certificate is, and how long a node on a busy machine may take to say that it is ready
// differ from what is shipped. Its address is in $PROXY.
func standsBefore(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: proxy CONFIGURATION SCHEME FILE...")
	}
	shipped, err := os.ReadFile(filepath.Join("..", "..", "deploy", args[0]))
	ts.Check(err)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	address := free.Addr().String()
	text, servers, _ := strings.Cut(string(shipped), "    server node-1 ")
	if servers == "" {
		ts.Fatalf("%s has no server node-1", args[0])
	}
	text = regexp.MustCompile(`bind :\d+`).ReplaceAllString(text, "bind "+address)
	text = strings.ReplaceAll(text, "/usr/local/etc/haproxy/tls.pem", ts.MkAbs("tls.pem"))
	text = strings.ReplaceAll(text, "    timeout connect 2s\n", "    timeout connect 60s\n    timeout check 60s\n")
	text = strings.ReplaceAll(text, " check-ssl verify none inter 2s ", " check-ssl verify none inter 20s ")
	for i, file := range args[2:] {
		u, err := url.Parse(strings.TrimSpace(ts.ReadFile(file)))
		ts.Check(err)
		text += fmt.Sprintf("    server node-%d %s\n", i+1, u.Host)
	}
	file := ts.MkAbs(args[0])
	ts.Check(os.WriteFile(file, []byte(text), 0o600))
	log, err := os.Create(file + ".log")
	ts.Check(err)
	cmd := exec.Command("haproxy", "-db", "-f", file)
	cmd.Stdout, cmd.Stderr = log, log
	ts.Check(free.Close())
	ts.Check(cmd.Start())
	ts.Defer(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		log.Close()
	})
	ts.Setenv("PROXY", args[1]+"://"+address)
}
