package embedded

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/survey"
)

// large is a version of an instance whose data have a list of 20 KB, three times.
func large(id string, version int64) store.Change {
	list := "[" + strings.TrimSuffix(strings.Repeat(`{"sku":"a-1"},`, 1_500), ",") + "]"
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	s := &snapshot.Snapshot{InstanceID: id, Version: version, Status: snapshot.Waiting, StartedAt: at, UpdatedAt: at,
		State:    snapshot.State{Input: []byte(`{"lines":` + list + `}`), Context: fmt.Appendf(nil, `{"n":%d,"kept":%s}`, version, list)},
		Branches: []*snapshot.Branch{{Data: fmt.Appendf(nil, `{"lines":%s,"version":%d}`, list, version), Frames: []snapshot.Frame{{Pointer: "/do"}}}},
		Waits:    []snapshot.Wait{{Kind: snapshot.WaitEvent, Token: "t-" + id, Event: "go"}}}
	return store.Change{Snapshot: s, Encoded: must(s.Encode())}
}

// TestLargeDataAreWrittenOnce: a turn writes what it has changed, and not a list beside
// that; who reads by SQL sees the whole.
func TestLargeDataAreWrittenOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s := open(t, path)
	c := must(conn.Open(path, "_query_only=1"))
	defer c.Close()
	for v := int64(1); v <= 6; v++ {
		change := large("a", v)
		if err := s.Commit(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]string{
			"select group_concat(PIECE_ID & 1048575) || ' of ' || min(length(BODY)) from WF_STATE_PIECES":                              "0 of 20999",
			"select length(STATE_JSON) < 1000 from WF_STATES":                                                                          "1",
			"select cast(STATE_JSON as text) from WF_RUNTIME_STATES where INSTANCE_ID = 'a'":                                           string(change.Encoded),
			"select DATA_JSON from WF_V_STATES":                                                                                        string(change.Snapshot.Branches[0].Data),
			"select json_array_length(WORKFLOW_STATE_JSON, '$.input.lines') || RUNTIME_STATUS from WF_V_STATES, WF_RUNTIME_STATES":     "1500waiting",
			"select json_array_length(WORKFLOW_STATE_JSON, '$.context.kept') || WAITING_TOKEN from WF_V_STATES, WF_RUNTIME_STATES":     "1500t-a",
			"select count(*) from WF_RUNTIME_STATES where json_extract(cast(STATE_JSON as text), '$.workflowState.context.n') is null": "0",
		} {
			if got := must(c.Text(text)); got != want {
				t.Errorf("version %d: %s: %.100q (%d bytes), not %.100q (%d)", v, text, got, len(got), want, len(want))
			}
		}
	}
}

// TestARestForgetsPieces: what the writer remembered is gone, and the next version is
// written over whatever pieces there are.
func TestARestForgetsPieces(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s := open(t, path)
	c := must(conn.Open(path, "_query_only=1"))
	defer c.Close()
	for v := int64(1); v <= 4; v++ {
		change := large("a", v)
		if err := s.Commit(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		if err := s.Parts().Caches.Shrink(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := must(c.Text("select cast(STATE_JSON as text) || (select count(*) from WF_STATE_PIECES) from WF_RUNTIME_STATES")); got != string(change.Encoded)+"1" {
			t.Errorf("version %d: %.100q", v, got)
		}
	}
}

// TestADamagedPieceIsTold: a piece that is another, or is gone, is a damaged snapshot.
func TestADamagedPieceIsTold(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s := open(t, path)
	for _, id := range []string{"broken", "gone", "cuts", "quote", "whole"} {
		if err := s.Commit(t.Context(), large(id, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c := must(conn.Open(path, ""))
	for _, text := range []string{
		"update WF_STATE_PIECES set BODY = cast(replace(BODY, 'a-1', 'a-2') as blob) where PIECE_ID >> 20 = (select INSTANCE_NO from WF_STATES where INSTANCE_ID = 'broken')",
		"update WF_STATES set STATE_CUTS = '[[0,' where INSTANCE_ID = 'cuts'",
		"update WF_STATE_PIECES set BODY = cast('\"' || substr(BODY, 2) as blob) where PIECE_ID >> 20 = (select INSTANCE_NO from WF_STATES where INSTANCE_ID = 'quote')",
		"delete from WF_STATE_PIECES where PIECE_ID >> 20 = (select INSTANCE_NO from WF_STATES where INSTANCE_ID = 'gone')",
	} {
		if err := c.Script(text); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	found := look(t, path)
	if f := found["checksums"]; f.Severity == survey.Good || !strings.Contains(f.Found, "broken") || !strings.Contains(f.Found, "gone") || !strings.Contains(f.Found, "cuts") || !strings.Contains(f.Found, "quote") || strings.Contains(f.Found, "whole") {
		t.Errorf("checksums: %+v", f)
	}
	if f := found["streams"]; strings.Contains(f.Found, "malformed") { // then it says nothing of the others
		t.Errorf("streams: %+v", f)
	}
}

// TestPiecesGoWithTheirInstance: what is purged leaves no piece.
func TestPiecesGoWithTheirInstance(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s := open(t, path)
	for _, id := range []string{"ended", "live"} {
		c := large(id, 1)
		c.Rows.Instance = &projections.Instance{ID: id, Status: "waiting", Version: 1}
		if id == "ended" {
			c.Rows.Instance.Status, c.Rows.Instance.EndedAt = "completed", time.Unix(1, 0)
		}
		if err := s.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Parts().Retention.Purge(t.Context(), time.Now(), 10); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	c := must(conn.Open(path, "_query_only=1"))
	defer c.Close()
	left := "select group_concat(distinct R.INSTANCE_ID) from WF_STATE_PIECES P left join WF_STATES R on R.INSTANCE_NO = P.PIECE_ID >> 20"
	if got := must(c.Text(left)); got != "live" {
		t.Errorf("pieces are left of %q", got)
	}
}
