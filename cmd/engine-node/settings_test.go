package main

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// TestWhatMustBeAlikeIsCompared: each setting that says of itself that it is the same on
// every node is compared, in the words in which it is shown; files of statements are no
// value. A program that sets nothing agrees with a node that sets nothing.
func TestWhatMustBeAlikeIsCompared(t *testing.T) {
	t.Parallel()
	l, err := config.Load(config.Source{})
	if err != nil {
		t.Fatal(err)
	}
	mine, n := alike(l.Config), 0
	for _, v := range l.Values() {
		got, compared := mine[v.Key]
		if strings.Contains(v.Meaning, "the same on every node") && v.Key != "steps.sql" {
			if n++; !compared {
				t.Errorf("%s must be the same on every node, and is not compared", v.Key)
			}
		}
		if compared && got != v.Value {
			t.Errorf("%s is shown as %q, and compared as %q", v.Key, v.Value, got)
		}
		delete(mine, v.Key)
	}
	if n < 4 || len(mine) != 0 {
		t.Errorf("%d settings must be the same; no settings are %v", n, slices.Collect(maps.Keys(mine)))
	}
	mine = alike(l.Config)
	program := runtime.Config{EventTTL: l.Events.TTL}
	for key, value := range program.Settings() {
		if mine[key] != value {
			t.Errorf("%s of a program is %q, of a node %q", key, value, mine[key])
		}
	}
	c := l.Config
	c.Retention.Enabled, c.Queue.Notices = false, 0
	mine = alike(c)
	if _, ok := mine["retention.keep"]; ok || mine["queue.notices"] != "0s" {
		t.Errorf("a node that deletes nothing takes part in windows: %v", mine)
	}
}

// TestAProgramBesideTheNodesDoesAsThey: what is run on the database itself makes turns, and
// its environment does not say how the nodes are set.
func TestAProgramBesideTheNodesDoesAsThey(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Store.URL = "sqlite://" + t.TempDir() + "/a.db"
	c.Events.Sink, c.Events.Lifecycle, c.Events.TTL = "https://sink.example", true, 3*time.Hour
	name := func(c *config.Config, p backend.Parts) error { return join(t.Context(), "n1", *c, p) }
	n, err := wireOn(t.Context(), c, "n1", slog.New(slog.DiscardHandler), name)
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	file := filepath.Join(t.TempDir(), "node.yaml") // of the nodes: their limits are recorded nowhere
	if err := os.WriteFile(file, []byte("limits: {items: 7}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &app{store: c.Store.URL, err: t.Output(), env: []string{"AQUEDUCT_CONFIG=" + file}}
	peer, err := a.peer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.close()
	if r := peer.runtime.Config; !r.Lifecycle || r.EventTTL != 3*time.Hour || r.Limits.Items != 7 {
		t.Errorf("it is set otherwise: %t %s %d", r.Lifecycle, r.EventTTL, r.Limits.Items)
	}
}
