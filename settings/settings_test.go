package settings_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/settings"
	"github.com/aqueduct-engine/aqueduct/sql/embedded"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// kept keeps settings in memory.
type kept struct {
	mu     sync.Mutex
	list   backend.Recorded
	by     []store.Audit
	failed error
}

func (k *kept) Settings(context.Context) ([]backend.Setting, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.list.List(), k.failed
}

func (k *kept) Record(_ context.Context, list []backend.Setting, by ...store.Audit) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range list {
		if s.Number != k.list[s.Key].Number+1 {
			return store.ErrDuplicate
		}
	}
	for _, s := range list {
		k.list[s.Key] = s
	}
	k.by = append(k.by, by...)
	return nil
}

func book() (*settings.Book, *kept) {
	k := &kept{list: backend.Recorded{}}
	return &settings.Book{Kept: k, Now: func() time.Time { return time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC) }}, k
}

// TestWhoIsSetOtherwiseDoesNotBegin: the first node's settings are those of all, until
// somebody says otherwise.
func TestWhoIsSetOtherwiseDoesNotBegin(t *testing.T) {
	t.Parallel()
	b, k := book()
	ctx := t.Context()
	with := map[string]string{"events.sink": "https://x.example", "ack.age": "1d"}
	without := map[string]string{"events.sink": "", "ack.age": "1d"}
	for range 2 {
		if err := b.Join(ctx, "n1", with); err != nil {
			t.Fatal(err)
		}
	}
	err := b.Join(ctx, "n2", without)
	if problem.CodeOf(err) != "settings.differ" || !strings.Contains(err.Error(), `events.sink is "" here, and "https://x.example" in the database since 2026-11-01T12:00:00Z, by n1`) ||
		!strings.Contains(err.Error(), "engine-node config accept") || strings.Contains(err.Error(), "ack.age") {
		t.Fatal(err)
	}
	if k.list["events.sink"].Value == "" || len(k.by) != 0 {
		t.Fatal("a refusal has changed what is recorded")
	}
	fresh, err := b.Accept(ctx, "anna", without)
	if err != nil || len(fresh) != 1 || fresh[0].Key != "events.sink" || fresh[0].By != "anna" || fresh[0].Number != 2 {
		t.Fatal(fresh, err)
	}
	if len(k.by) != 1 || k.by[0].Action != "accept-setting" || k.by[0].Target != "events.sink" {
		t.Fatal(k.by)
	}
	if err := b.Join(ctx, "n2", without); err != nil {
		t.Fatal(err)
	}
	if err := b.Join(ctx, "n1", with); problem.CodeOf(err) != "settings.differ" {
		t.Fatal(err)
	}
	if fresh, err := b.Accept(ctx, "anna", without); err != nil || len(fresh) != 0 || len(k.by) != 1 {
		t.Fatal("what holds already is accepted anew", fresh, err)
	}
}

// TestVersionsKnowOtherSettings: a newer version records what it has more, and an older
// one does not mind it.
func TestVersionsKnowOtherSettings(t *testing.T) {
	t.Parallel()
	b, k := book()
	old, newer := map[string]string{"a": "1"}, map[string]string{"a": "1", "b": "2"}
	for _, mine := range []map[string]string{old, newer, old, newer} {
		if err := b.Join(t.Context(), "n", mine); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Join(t.Context(), "n", map[string]string{"a": "2", "c": "3"}); err == nil {
		t.Fatal("it joins")
	}
	if _, ok := k.list["c"]; ok {
		t.Fatal("who is refused has recorded something")
	}
	if err := (&settings.Book{Now: time.Now}).Join(t.Context(), "n", newer); err != nil {
		t.Fatal(err)
	}
	k.failed = errors.New("away")
	if err := b.Join(t.Context(), "n", newer); !errors.Is(err, k.failed) {
		t.Fatal(err)
	}
}

// TestOneOfManyIsFirst: of nodes that begin at once with other settings, those of one
// hold, and the rest are refused.
func TestOneOfManyIsFirst(t *testing.T) {
	t.Parallel()
	s, err := embedded.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "a.db"), Node: "n"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := &settings.Book{Kept: s.Parts().Settings, Now: time.Now}
	var began, refused sync.Map
	var all sync.WaitGroup
	for _, sink := range []string{"a", "b", "c", "a", "b", "c"} {
		all.Go(func() {
			switch err := b.Join(t.Context(), "n-"+sink, map[string]string{"events.sink": sink, "events.ttl": "1h"}); problem.CodeOf(err) {
			case "settings.differ":
				refused.Store(sink, true)
			default:
				if err != nil {
					t.Error(err)
				}
				began.Store(sink, true)
			}
		})
	}
	all.Wait()
	n, m := 0, 0
	began.Range(func(any, any) bool { n++; return true })
	refused.Range(func(any, any) bool { m++; return true })
	if n != 1 || m != 2 {
		t.Fatalf("%d kinds of nodes began, %d were refused", n, m)
	}
}
