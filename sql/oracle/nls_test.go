package oracle

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/aq"
)

// Conversions of a session's own: what they make depends on its NLS settings, which are the
// caller's in a package of ours, too.
var (
	oneArgument = regexp.MustCompile(`\bTO_(?:CHAR|DATE|TIMESTAMP|TIMESTAMP_TZ|NUMBER|DSINTERVAL|YMINTERVAL)\(([^(),']*)\)`)
	formOnly    = regexp.MustCompile(`\bTO_(?:CHAR|DATE|TIMESTAMP|TIMESTAMP_TZ|NUMBER)\([^'()]*, '[^']*'\)`)
	castOfText  = regexp.MustCompile(`\bCAST\('[^']*' AS (?:DATE|TIMESTAMP|NUMBER)`)
	momentNames = regexp.MustCompile(`\b(\w+)\s+(?:IN\s+)?(?:TIMESTAMP|DATE|INTERVAL)\b`)
	unsure      = regexp.MustCompile(`\b(?:SYSDATE|CURRENT_DATE|LOCALTIMESTAMP|CURRENT_TIMESTAMP)\b`)
	numberText  = regexp.MustCompile(`":' \|\| ([\w.]+)`)
)

// wholeNumbers are whole as text, in whatever session: without a point, and checked where
// they come from a caller.
var wholeNumbers = []string{"M.PRIORITY", "M.ATTEMPTS", "M.DELAY", "R.STATE_CHECKSUM", "S.POSITION", "p_position", "-p_code"}

// inJSONTexts are what a package writes into JSON behind a name: texts that are JSON, and whole
// numbers.
var inJSONTexts = []string{"quoted", "p_sequence", "v_size", "p_command", "TRUNC", "p_output", "p_error", "p_data", "p_input"}

// dependsOnSession finds what a text leaves to the settings of its session; "" = nothing.
func dependsOnSession(text string) string {
	for _, m := range oneArgument.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(wholeNumbers, m[1]) {
			return m[0]
		}
	}
	for _, m := range numberText.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(inJSONTexts, m[1]) {
			return m[0]
		}
	}
	for _, shape := range []*regexp.Regexp{formOnly, castOfText, unsure} {
		if m := shape.FindString(wordOf(shape, text)); m != "" {
			return m
		}
	}
	names := map[string]bool{}
	for _, m := range momentNames.FindAllStringSubmatch(text, -1) {
		names[m[1]] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		beside := regexp.MustCompile(`\|\| (?:\w\.)?` + name + `\b[^(]|[^(]\b` + name + ` \|\|`)
		if m := beside.FindString(text); m != "" {
			return m
		}
	}
	return regexp.MustCompile(`\|\| \w\.\w+_UTC\b|_UTC \|\|`).FindString(text)
}

// wordOf is the text in which a shape is looked for: words of literals are no code.
func wordOf(shape *regexp.Regexp, text string) string {
	if shape == unsure {
		return literal.ReplaceAllString(text, "''")
	}
	return text
}

// Law: what a package or a statement writes and reads does not depend on NLS_NUMERIC_CHARACTERS,
// NLS_DATE_FORMAT, NLS_TIMESTAMP_FORMAT and their like.
func TestNoTextDependsOnTheSession(t *testing.T) {
	t.Parallel()
	for _, planted := range []string{
		"v := TO_CHAR(p_amount);", "v := TO_NUMBER(p_text);", "v := TO_CHAR(v_now, 'YYYY-MM-DD');", "v := TO_DATE(p_text, 'YYYY-MM-DD');",
		"x := CAST('2026-01-01' AS TIMESTAMP);", "x := SYSDATE;", "v_at TIMESTAMP(6); BEGIN v := 'at ' || v_at; END;",
		"p_at IN TIMESTAMP) IS BEGIN v := p_at || ' is over';", "select 'due ' || T.DUE_ON_UTC from WF_TASKS T", `v := '{"delay":' || p_delay || '}';`,
	} {
		if dependsOnSession(planted) == "" {
			t.Errorf("not found: %s", planted)
		}
	}
	texts := map[string]string{"the block of a dequeue": (&aq.Beside{Declare: carriedVars, Do: carriedDo}).Block()}
	for _, u := range append(allUnits(t), optionalUnits(t)...) {
		texts[fmt.Sprintf("%s, line %d", u.script, u.line)] = uncommented(u.text)
	}
	for name, st := range statements {
		texts[name] = st.text
	}
	for name, block := range keptBlocks {
		texts[string(name)] = block
	}
	for name, text := range texts {
		if found := dependsOnSession(text); found != "" {
			t.Errorf("%s: %s", name, found)
		}
	}
}

// uncommented is a text without its comments of a line.
func uncommented(text string) string {
	return regexp.MustCompile(`(?m)--.*$`).ReplaceAllString(text, "")
}

// Law: the width of a column is in characters or is what the database has at most, whatever
// NLS_LENGTH_SEMANTICS the owner's session has.
func TestWidthsDependOnNoSession(t *testing.T) {
	t.Parallel()
	for name, columns := range tables(t) {
		for column, kind := range columns {
			if strings.HasPrefix(kind, "VARCHAR2(") && !strings.HasSuffix(kind, " CHAR)") && kind != fmt.Sprintf("VARCHAR2(%d)", textMax) {
				t.Errorf("%s.%s is a %s", name, column, kind)
			}
		}
	}
}

// TestOperatorsCompareByteByByte: a session that compares without case would purge, and
// discard, what is another's.
func TestOperatorsCompareByteByByte(t *testing.T) {
	t.Parallel()
	c := openControl(t)
	c.ended(t, "I-9", nil)
	c.dead(t, "l-1", "signal", []byte("x"))
	set := func(comp, sort string) {
		t.Helper()
		const update = "UPDATE ocisim.nls_parameter SET value = CASE parameter WHEN 'NLS_COMP' THEN '%s' ELSE '%s' END WHERE parameter IN ('NLS_COMP', 'NLS_SORT')"
		if _, err := c.d.Postgres(t.Context(), fmt.Sprintf(update, comp, sort)); err != nil {
			t.Fatal(err)
		}
	}
	const impossible = 20804
	set("LINGUISTIC", "BINARY_CI")
	for _, block := range []string{
		"REPLAY('l-1', 'r')", "DISCARD('l-1', 'r')",
		"V := AQUEDUCT.AQUEDUCT_ADMIN.PURGE('r', 'I-9')", "V := AQUEDUCT.AQUEDUCT_ADMIN.SUSPEND('I-9', 'r')",
		"V := AQUEDUCT.AQUEDUCT_ADMIN.PURGE_TOKENS('r', SYS_EXTRACT_UTC(SYSTIMESTAMP))",
	} {
		var err error
		if _, call, ok := strings.Cut(block, ":= "); ok {
			kind := "NUMBER"
			if strings.Contains(call, "SUSPEND") {
				kind = "VARCHAR2(200)"
			}
			_, err = c.db.ExecContext(t.Context(), "DECLARE V "+kind+"; BEGIN V := "+call+"; END;")
		} else {
			err = c.call(t, true, block)
		}
		c.refused(t, err, block, impossible, "the session compares texts by NLS_SORT")
	}
	set("BINARY", "GERMAN") // it orders otherwise, and compares byte by byte
	if err := c.call(t, true, "DISCARD('l-1', 'r')"); err != nil {
		t.Error(err)
	}
	if n := c.purge(t, true, "p_instance_id => 'I-9'"); n != 1 {
		t.Errorf("%d purged", n)
	}
}
