package main

import (
	"os"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/aqueduct-engine/aqueduct/internal/idp"
)

// provides is an identity provider of a script: idp run | agree NAME GROUP LIFE | sign NAME GROUP
// FILE | rotate | away | back. run puts its address into $IDP.
func provides(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: idp run | agree NAME GROUP LIFE | sign NAME GROUP FILE | rotate | away | back")
	}
	if args[0] == "run" {
		s := idp.Run()
		ts.Defer(s.Close)
		ts.Setenv("IDP", s.URL)
		providers.Store(s.URL, s)
		return
	}
	found, ok := providers.Load(ts.Getenv("IDP"))
	if !ok {
		ts.Fatalf("idp run comes first")
	}
	s := found.(*idp.Server)
	switch {
	case args[0] == "agree" && len(args) == 4:
		life, err := time.ParseDuration(args[3])
		ts.Check(err)
		s.Agree(map[string]any{"sub": args[1], "groups": []string{args[2]}}, life)
	case args[0] == "sign" && len(args) == 4:
		token := s.Sign(map[string]any{"sub": args[1], "groups": []string{args[2]}, "aud": "aqueduct-cli"})
		ts.Check(os.WriteFile(ts.MkAbs(args[3]), []byte(token), 0o600))
	case args[0] == "rotate":
		s.Rotate()
	case args[0] == "away", args[0] == "back":
		s.Away(args[0] == "away")
	default:
		ts.Fatalf("idp: %q", args)
	}
}

// providers are those of all scripts, by their address.
var providers sync.Map
