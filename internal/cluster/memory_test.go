package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/nodes"
)

// memoryMax is what the node of TestHostileLoadKeepsToTheMemory has.
const memoryMax = 512 << 20

// confined starts a node in a control group of 512 MiB. Where none can be made,
// the node is told its limit, and most is compared with it.
func confined(t *testing.T) (n *node, most func() float64) {
	t.Helper()
	settings := nodes.Settings{
		Program: build(t), Name: "confined", Store: "sqlite://" + filepath.Join(t.TempDir(), "a.db"), Log: filepath.Join(t.TempDir(), "log"),
		Flags: []string{"--activity-attempts", "2", "--activity-delay", "100ms"}, Ready: startMax,
	}
	group, err := nodes.Limit("test", memoryMax)
	if err != nil {
		t.Logf("no control group: %v", err)
		settings.Flags = append(settings.Flags, "--memory-limit", strconv.Itoa(memoryMax))
	} else {
		settings.Group = group
		t.Cleanup(func() { _ = group.Close() }) // empty by then
	}
	started, err := nodes.Launch(settings)
	if err != nil {
		t.Fatalf("the node does not start: %v", err)
	}
	t.Cleanup(started.Kill)
	n = &node{started}
	peak := 0.0
	return n, func() float64 { // pages of files are given back when the kernel wants them
		peak = max(peak, n.status("RssAnon:"))
		return peak
	}
}

// status is a line of the process's status in MiB.
func (n *node) status(name string) float64 {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.Pid())) // of one that is gone it is empty
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == name {
			kib, _ := strconv.ParseFloat(f[1], 64)
			return kib / 1024
		}
	}
	return 0
}

// hostile are definitions within every documented limit.
func hostile(world string) map[string]string {
	document := func(name, do string) string {
		return "document: {dsl: '1.0.3', namespace: hostile, name: " + name + ", version: '1.0.0'}\ndo:\n" + do
	}
	all := map[string]string{
		"each":  document("each", "  - all: {call: forEach, with: {in: '${ [range(200)] }', call: http, with: {method: get, endpoint: '"+world+"/large'}}}\n"),
		"large": document("large", "  - one: {call: http, with: {method: get, endpoint: '"+world+"/large'}}\n  - two: {wait: PT0.1S}\n  - three: {call: http, with: {method: get, endpoint: '"+world+"/large'}}\n"),
		"grow": document("grow", "  - all:\n      for: {each: n, in: '${ [range(40)] }'}\n      do:\n"+
			"        - more: {set: {text: '${ [range(5000)] | map(tostring + \"0123456789\") | join(\",\") }', input: '${ .input }'}}\n"+
			"        - keep: {set: {n: 1}, export: {as: '${ $context + {(\"k\" + ($task.startedAt.epoch.milliseconds | tostring)): ([range(3000)] | map(tostring) | join(\",\"))} }'}}\n"),
	}
	for i := range 2 {
		var tasks strings.Builder
		for j := 0; tasks.Len() < 900_000; j++ {
			fmt.Fprintf(&tasks, "  - t%d: {if: '${ .a != %d }', set: {a: '${ .a + %d }', b: [1, 2, {c: '${ .x // \"y\" }'}]}}\n", j, j, i)
		}
		all[fmt.Sprint("long", i)] = document(fmt.Sprint("long", i), tasks.String())
	}
	return all
}

// TestHostileLoadKeepsToTheMemory: definitions, inputs, answers and fan-outs at
// their limits, all at once, do not kill a node of 512 MiB, and it works after.
func TestHostileLoadKeepsToTheMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	large, _ := json.Marshal(strings.Repeat("0123456789", 100_000)) // a string cannot fail
	world := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/large" {
			_, _ = w.Write(large) // who hung up does not want it
			return
		}
		fmt.Fprint(w, `{"ok":true}`)
	}))
	defer world.Close()
	n, most := confined(t)
	post := func(path, kind string, body []byte) int {
		client := http.Client{Timeout: 90 * time.Second}
		resp, err := client.Post(n.URL+path, kind, bytes.NewReader(body))
		if err != nil {
			return 0
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body) // its status says all
		return resp.StatusCode
	}
	counts := map[int]int{}
	var mu sync.Mutex
	count := func(status int) {
		mu.Lock()
		defer mu.Unlock()
		counts[status]++
	}
	var all sync.WaitGroup
	definitions := hostile(world.URL)
	for _, name := range []string{"each", "large", "grow"} {
		if s := post("/v1/definitions", "application/yaml", []byte(definitions[name])); s != http.StatusCreated {
			t.Fatalf("publish %s: %d\n%s", name, s, n.Tail())
		}
	}
	for name, source := range definitions {
		if strings.HasPrefix(name, "long") {
			all.Go(func() { count(post("/v1/definitions", "application/yaml", []byte(source))) })
		}
	}
	input := strings.Repeat("x", 250_000)
	for i := range 60 {
		name := []string{"large", "grow", "each"}[i%3]
		body := fmt.Appendf(nil, `{"definition":"hostile/%s","instanceId":"i%d","input":{"input":%q}}`, name, i, input)
		all.Go(func() { count(post("/v1/instances", "application/json", body)) })
	}
	for i := range 120 { // and everybody looks at what there is
		path := []string{"/v1/instances/i%d", "/v1/instances/i%d/stream?limit=500", "/v1/definitions/hostile/each/1.0.0/source", "/v1/instances?limit=500&after="}[i%4]
		all.Go(func() {
			resp, err := http.Get(n.URL + strings.ReplaceAll(path, "%d", strconv.Itoa(i/2)))
			if err != nil {
				return
			}
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body) // who is refused asks again
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for over := false; !over && !n.Gone(); most() {
		select {
		case <-done:
			over = true
		case <-time.After(200 * time.Millisecond):
		}
	}
	for i := 0; i < 20 && !n.Gone(); i++ {
		most()
		time.Sleep(500 * time.Millisecond) // the load goes on inside of the node
	}
	t.Logf("answers by status: %v; at most %.0f MiB resident", counts, most())
	if n.Gone() || most() > memoryMax>>20 {
		t.Fatalf("gone: %t (%v), %.0f MiB\n%s", n.Gone(), n.Err, most(), n.Tail())
	}
	if counts[http.StatusCreated] == 0 {
		t.Errorf("nothing was done: %v", counts)
	}
	small := "document: {dsl: '1.0.3', namespace: hostile, name: small, version: '1.0.0'}\ndo: [{a: {set: {x: 1}}}]\n"
	for _, c := range []struct{ path, kind, body string }{
		{"/v1/definitions", "application/yaml", small}, {"/v1/instances", "application/json", `{"definition":"hostile/small","instanceId":"last"}`},
	} {
		until := time.Now().Add(2 * time.Minute)
		for s := 0; s != http.StatusCreated; s = post(c.path, c.kind, []byte(c.body)) {
			if n.Gone() || time.Now().After(until) {
				t.Fatalf("%s is answered %d\n%s", c.path, s, n.Tail())
			}
		}
	}
}
