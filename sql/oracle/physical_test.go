package oracle

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
)

// indexBytes is the most that a column adds to the key of an index, in AL32UTF8.
func indexBytes(t *testing.T, kind string) int {
	t.Helper()
	m := regexp.MustCompile(`^(?:VARCHAR2|RAW|NUMBER)\((\d+)( CHAR)?\)$`).FindStringSubmatch(kind)
	switch {
	case kind == "TIMESTAMP(6)":
		return 11
	case strings.HasPrefix(kind, "NUMBER"):
		return 22
	case m == nil:
		t.Fatalf("what has a key of %s?", kind)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	if m[2] != "" {
		n = min(4*n, 4_000)
	}
	return n
}

// hashed is a part of a key that is the digest of a column.
var hashed = regexp.MustCompile(`STANDARD_HASH\(\w+, 'SHA256'\)`)

// onlineMax lists keys that are longer than a rebuild ONLINE allows, each with the
// reason why it stays.
var onlineMax = map[string]string{}

// TestIndexKeysFit: a key longer than three quarters of a block of 8 KB has no index
// (ORA-01450), and one longer than about two fifths none that is rebuilt ONLINE, by way of
// a journal whose key it is.
func TestIndexKeysFit(t *testing.T) {
	t.Parallel()
	const whole, online = 6_398, 3_215
	all := tables(t)
	keys := map[string][2]string{} // table and columns, by index
	for _, u := range allUnits(t) {
		if m := indexOn.FindStringSubmatch(u.text); m != nil {
			keys[m[2]] = [2]string{m[3], m[4]}
		}
		if m := createTable.FindStringSubmatch(u.text); m != nil {
			if k := primaryKey.FindStringSubmatch(u.text); k != nil {
				keys[k[1]] = [2]string{m[1], k[2]}
			}
		}
	}
	longest, which := 0, ""
	name := regexp.MustCompile(`\b[A-Z][A-Z_]+\b`)
	for index, key := range keys {
		bytes := 0
		columns := hashed.ReplaceAllStringFunc(key[1], func(string) string {
			bytes += 32 + 2 // whatever it is of
			return "*"
		})
		for part := range strings.SplitSeq(columns, ", ") {
			if _, then, ok := strings.Cut(part, " THEN "); ok {
				part = then
			}
			for _, column := range name.FindAllString(literal.ReplaceAllString(part, ""), -1) {
				if kind := all[key[0]][column]; kind != "" {
					bytes += indexBytes(t, kind) + 2
				}
			}
		}
		if bytes == 0 || bytes > whole {
			t.Errorf("%s has a key of %d bytes, at most %d", index, bytes, whole)
		}
		if _, known := onlineMax[index]; known != (bytes > online) {
			t.Errorf("%s has a key of %d bytes; it cannot be rebuilt online beyond %d; known: %t", index, bytes, online, known)
		}
		if bytes > longest {
			longest, which = bytes, index
		}
	}
	if len(keys) < 35 {
		t.Errorf("only %d keys", len(keys))
	}
	page, err := os.ReadFile("../../docs/oracle.md")
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.ReplaceAll(string(page), "\n", " "); !strings.Contains(text, fmt.Sprintf("the longest key, of `%s`, has %d bytes", which, longest)) {
		t.Errorf("the page does not say that the longest key, of `%s`, has %d bytes", which, longest)
	}
}

// TestQueueTablesHaveTheirStorage: when they are made, for nobody may alter them.
func TestQueueTablesHaveTheirStorage(t *testing.T) {
	t.Parallel()
	made := 0
	upgrades, err := upgradesFrom(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range append(allUnits(t), upgrades...) {
		if !strings.Contains(u.text, "CREATE_QUEUE_TABLE") {
			continue
		}
		made++
		if !strings.Contains(u.text, "storage_clause => 'INITRANS 8 LOB (USER_DATA) STORE AS (CACHE)'") {
			t.Errorf("%s, line %d: a queue table without its storage", u.script, u.line)
		}
	}
	if made < 5 {
		t.Errorf("only %d queue tables", made)
	}
	d := standIn(t)
	_, err = opened(t, Options{DSN: d.DSN()}).db.ExecContext(t.Context(), "BEGIN DBMS_AQADM.CREATE_QUEUE_TABLE('QT', 'RAW', storage_clause => 'INITRANS 8 LOB (PAYLOAD) STORE AS (CACHE)'); END;")
	if err == nil || !strings.Contains(err.Error(), "storage_clause") {
		t.Errorf("the stand-in takes any clause: %v", err)
	}
}

// An upgrade gives a former schema the shorter key, also when it is broken off before it
// or behind it.
func TestAnUpgradeShortensTheKeyOfWaits(t *testing.T) {
	t.Parallel()
	a := installApart(t)
	key := func() string {
		t.Helper()
		text, err := a.d.Postgres(t.Context(), "select indexdef from pg_indexes where indexname = 'wf_waits_key'")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	fresh := key()
	if !strings.Contains(fresh, "standard_hash") {
		t.Fatalf("the key is %s", fresh)
	}
	for _, broken := range []string{"", "BEGIN EXECUTE IMMEDIATE 'DROP INDEX WF_WAITS_KEY'; END;"} {
		a.run(t, a.owner, oracletest.Former[1])
		if former := key(); strings.Contains(former, "standard_hash") {
			t.Fatalf("the former key is %s", former)
		}
		if broken != "" {
			a.run(t, a.owner, broken)
		}
		if from, to, err := Migrate(t.Context(), Installation{DSN: a.d.UserDSN(a.owner), RuntimeUser: a.runtime}); from != 1 || to != 2 || err != nil {
			t.Fatal(from, to, err)
		}
		if got := key(); got != fresh {
			t.Errorf("%q: upgraded to %s, and a new one is %s", broken, got, fresh)
		}
	}
}

// An upgrade leaves the indexes by age that a new schema has.
func TestAnUpgradeMakesTheIndexesByAgeOfANewSchema(t *testing.T) {
	t.Parallel()
	a := installApart(t)
	indexes := func() string {
		t.Helper()
		text, err := a.d.Postgres(t.Context(), "select string_agg(indexdef, chr(10) order by indexname) from pg_indexes where indexname like 'wf_%_age'")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	fresh := indexes()
	if !strings.Contains(fresh, "(occurred_on_utc, audit_id)") {
		t.Fatalf("the indexes are %s", fresh)
	}
	a.run(t, a.owner, oracletest.Former[1])
	if from, to, err := Migrate(t.Context(), Installation{DSN: a.d.UserDSN(a.owner), RuntimeUser: a.runtime}); from != 1 || to != 2 || err != nil {
		t.Fatal(from, to, err)
	}
	if got := indexes(); got != fresh {
		t.Errorf("upgraded:\n%s\n\nnew:\n%s", got, fresh)
	}
}

// TestWhatIsOverdueIsInAnIndex: of those that are open only.
func TestWhatIsOverdueIsInAnIndex(t *testing.T) {
	t.Parallel()
	indexed := map[string]bool{}
	view := ""
	for _, u := range allUnits(t) {
		if m := indexOn.FindStringSubmatch(u.text); m != nil {
			indexed[m[3]+" "+strings.Trim(m[4], "()")] = true
		}
		if strings.HasPrefix(u.text, "CREATE OR REPLACE VIEW WF_V_OVERDUE") {
			view = u.text
		}
	}
	found := regexp.MustCompile(`FROM (\w+) [A-Z]\nWHERE (CASE .*? END) < `).FindAllStringSubmatch(view, -1)
	if len(found) != 2 {
		t.Fatalf("%d conditions in %s", len(found), view)
	}
	for _, m := range found {
		expression := strings.Trim(regexp.MustCompile(`\b[RT]\.`).ReplaceAllString(m[2], ""), "()")
		begins := func(key string) bool { return strings.HasPrefix(key+")", m[1]+" "+expression+")") }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(indexed)), begins) {
			t.Errorf("no index of %s is on %s", m[1], expression)
		}
	}
}

// TestAPageBeginsInTheIndex: an OR alone is a filter, with every page from the start.
func TestAPageBeginsInTheIndex(t *testing.T) {
	t.Parallel()
	r := read("instance_select")
	behind(r, "I.STARTED_ON_UTC", "<", "CAST(? AS TIMESTAMP(6))", time.Unix(1, 0).UTC(), "I.INSTANCE_ID", "i")
	const want = "\nwhere I.STARTED_ON_UTC <= CAST(:1 AS TIMESTAMP(6)) and (I.STARTED_ON_UTC < CAST(:2 AS TIMESTAMP(6)) or I.STARTED_ON_UTC = CAST(:3 AS TIMESTAMP(6)) and I.INSTANCE_ID < :4)"
	if _, got, _ := strings.Cut(r.Text(), "from WF_INSTANCES I"); strings.TrimSpace(got) != strings.TrimSpace(want) || len(r.Args) != 4 {
		t.Errorf("%s with %d arguments", got, len(r.Args))
	}
}

// TestLargeValuesOfTurnsAreCached: by default each is read from disk and written to it
// by the turn that waits for it.
func TestLargeValuesOfTurnsAreCached(t *testing.T) {
	t.Parallel()
	uncached := map[string]bool{"WF_DEFINITIONS": true, "WF_DEAD_LETTERS": true, "WF_INBOX": true, "WF_NODES": true} // no turn reads them
	all := tables(t)
	for _, u := range allUnits(t) {
		m := createTable.FindStringSubmatch(u.text)
		if m == nil {
			continue
		}
		stored, _, _ := strings.Cut(m[3], ") STORE AS (CACHE)")
		for column, kind := range all[m[1]] {
			if named := regexp.MustCompile(`LOB \(.*\b` + column + `\b`).MatchString(stored); kind == "BLOB" && named == uncached[m[1]] {
				t.Errorf("%s.%s: cached %t", m[1], column, named)
			}
		}
	}
}
