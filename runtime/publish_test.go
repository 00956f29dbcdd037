package runtime_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

func together(texts ...string) (all []definition.Document) {
	for i, text := range texts {
		all = append(all, definition.Document{File: fmt.Sprintf("%c.yaml", 'a'+i), Source: []byte(text)})
	}
	return all
}

// published are the versions of a name that a database has, and those of a policy.
func published(t *testing.T, st *testdb.Database, name string) (all []string) {
	t.Helper()
	records, err := st.Versions(t.Context(), name, 0)
	if err != nil && problem.KindOf(err) != problem.NotFound {
		t.Fatal(err)
	}
	for _, r := range records {
		all = append(all, r.Version)
	}
	return all
}

// audited counts who has published what.
func audited(t *testing.T, st *testdb.Database) (all []string) {
	t.Helper()
	for after := ""; ; {
		page, err := st.Audit.Audit(t.Context(), backend.AuditQuery{Action: "publish", Limit: 200, After: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range page.Items {
			all = append(all, a.Target)
		}
		if after = page.Next; after == "" {
			slices.Sort(all)
			return all
		}
	}
}

// A lifecycle, what lies over it, and workflows are published in one commit, with who has
// done it: a policy may name a state of a version that comes with it.
func TestDefinitionsAndPoliciesTogether(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		n := start(t, place, nil)
		other := start(t, place, nil)
		n.publish(t, policedDocument)
		if _, err := other.trigger(t, "t/policed", "old", "submit"); err != nil {
			t.Fatal(err)
		}
		next := strings.NewReplacer("1.0.0", "2.0.0", "Review", "Check").Replace(policedDocument)
		long := scheduledDoc("sched", "1.1.0", "{every: PT1H}") + strings.Repeat("# much is said of it\n", 30_000)
		before := audited(t, n.store)
		wrong := together(policyOf("1.0.0", "{Check: {timeout: PT2H}, Gone: {timeout: PT3H}}"), next, long)
		if _, err := n.cat.PublishAll(t.Context(), wrong); problem.CodeOf(err) != "policy.invalid" || !strings.Contains(err.Error(), "a.yaml:5") {
			t.Errorf("%v", err)
		}
		_, schedules := n.runs(t, "t/sched")
		if got := audited(t, n.store); len(got) != len(before) || len(published(t, n.store, "t/policed")) != 1 || len(published(t, n.store, "t/sched")) > 0 || len(schedules) > 0 {
			t.Errorf("%q, schedules %v", got, schedules)
		}
		right := together(policyOf("1.0.0", "{Check: {timeout: PT2H}}"), long, next, scheduledDoc("sched", "1.0.0", "{every: PT1H}"), scheduledDoc("plain", "1.0.0", "{after: PT1H}"))
		out, err := n.cat.PublishAll(t.Context(), right)
		if err != nil || slices.ContainsFunc(out, func(p definition.Published) bool { return !p.Created }) {
			t.Fatalf("%v", err)
		}
		want := append(before, "policy:t/policed@1.0.0", "t/plain@1.0.0", "t/policed@2.0.0", "t/sched@1.0.0", "t/sched@1.1.0")
		slices.Sort(want)
		if got := audited(t, n.store); !slices.Equal(got, want) {
			t.Errorf("audited %q, want %q", got, want)
		}
		if got := published(t, n.store, "t/sched"); !slices.Equal(got, []string{"1.0.0", "1.1.0"}) {
			t.Errorf("in the order %q", got)
		}
		_, schedules = n.runs(t, "t/sched")
		if len(schedules) != 1 || schedules[0].Definition.Version != "1.1.0" {
			t.Errorf("schedules %+v", schedules)
		}
		if id, err := other.trigger(t, "t/policed", "new", "submit"); err != nil || other.timer(t, id) != 2*time.Hour || other.last(t, id, "StateChanged").Policy != "1.0.0" {
			t.Errorf("timer of %v, %v", other.timer(t, id), err)
		}
		if r, err := n.store.Definition(t.Context(), "t/sched", "1.1.0"); err != nil || string(r.Source) != long {
			t.Errorf("%d bytes, %v", len(r.Source), err)
		}
		again, err := other.cat.PublishAll(t.Context(), right)
		if err != nil || slices.ContainsFunc(again, func(p definition.Published) bool { return p.Created }) || len(audited(t, n.store)) != len(want) {
			t.Errorf("again: %v", err)
		}
	})
}

// publications are the documents of one version of each name.
func publications(version int) []definition.Document {
	v := fmt.Sprintf("1.0.%d", version)
	return together(
		policyOf(v, "{Review: {timeout: PT1H}}"), strings.ReplaceAll(policedDocument, "1.0.0", v),
		scheduledDoc("sched", v, "{every: PT1H}"), scheduledDoc("more", v, "{every: PT1H}")+strings.Repeat("# much is said of it\n", 5_000),
	)
}

// publishChild publishes, version after version, until it is killed.
func publishChild() int {
	n, err := openSet(context.Background(), os.Getenv("AQUEDUCT_TEST_FILE"), func(*runtime.Config) {}, nil)
	for version := 1; err == nil; version++ {
		if _, err = n.cat.PublishAll(context.Background(), publications(version)); err == nil {
			fmt.Println(version)
		}
	}
	fmt.Fprintln(os.Stderr, "child:", err)
	return 1
}

// A process that is killed while it publishes has published all that belong together, or
// none of them; the next goes on.
func TestAKilledPublisherLeavesAllOrNone(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place, last := fresh(), 0
		for round := range 4 {
			cmd := child(t, "publish", place, "")
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			for seen := 0; seen < last+2 && lines.Scan(); seen++ { // it begins with those that are there
			}
			kill := time.AfterFunc(time.Duration(round)*7*time.Millisecond, func() { _ = cmd.Process.Kill() })
			_, _ = io.Copy(io.Discard, out)
			kill.Stop()
			if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("it ended by itself: %v", err)
			}
			st, err := testdb.Open(t.Context(), place)
			if err != nil {
				t.Fatal(err)
			}
			want := published(t, st, "t/policed")
			for _, name := range []string{"policy:t/policed", "t/sched", "t/more"} {
				if got := published(t, st, name); !slices.Equal(got, want) {
					t.Errorf("%s %q, and of the others %q", name, got, want)
				}
			}
			if got := audited(t, st); len(got) != 4*len(want) {
				t.Errorf("%d audited of %d", len(got), 4*len(want))
			}
			if len(want) < last+2 {
				t.Errorf("%d versions after round %d", len(want), round)
			}
			last = len(want)
			if err := testdb.Verify(t.Context(), place); err != nil {
				t.Error(err)
			}
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
