package testdb

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// Bytes of Oracle's blocks: of a row with its entry in the block's directory, of a
// locator, of an index entry beside its key (header, ROWID), and what of a block its
// header, PCTFREE and half-empty leaves leave.
const (
	rowBytes, locatorBytes, entryBytes = 5, 30, 10
	rowFill, entryFill                 = 0.85, 0.7
)

var (
	indexText = regexp.MustCompile(`(?m)^CREATE (?:UNIQUE )?INDEX \w+ ON (\w+) \((.*)\)`)
	tableText = regexp.MustCompile(`(?ms)^CREATE TABLE (WF_\w+) \(\n(.*?)^\)`)
	keyText   = regexp.MustCompile(`(?:PRIMARY KEY|UNIQUE) \(([^)]*)\)`)
	columnOf  = regexp.MustCompile(`\b[A-Z][A-Z_]{2,}\b`)
)

// Sizes is what the rows of each table would take on Oracle, with their indexes. Tables
// that do not grow with instances are left out.
func Sizes(ctx context.Context, place string) (map[string]int, error) {
	_, self, _, _ := runtime.Caller(0)
	schema, err := os.ReadFile(filepath.Join(filepath.Dir(self), "../../sql/oracle/schema/10_tables.sql"))
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("godror", place)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	keys := map[string][]string{}
	for _, m := range indexText.FindAllStringSubmatch(string(schema), -1) {
		keys[m[1]] = append(keys[m[1]], m[2])
	}
	total := map[string]int{}
	for _, m := range tableText.FindAllStringSubmatch(string(schema), -1) {
		for _, k := range keyText.FindAllStringSubmatch(m[2], -1) {
			keys[m[1]] = append(keys[m[1]], k[1])
		}
		switch m[1] {
		case "WF_RUNTIME_STATES", "WF_INSTANCES", "WF_STREAM", "WF_TASKS", "WF_TASK_ACTORS", "WF_TASK_EVENTS":
			if total[m[1]], err = bytesOf(ctx, db, m[1], keys[m[1]]); err != nil {
				return nil, err
			}
		}
	}
	return total, nil
}

func bytesOf(ctx context.Context, db *sql.DB, table string, keys []string) (int, error) {
	rows, err := db.QueryContext(ctx, "select * from "+table)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	inRows, inKeys := 0, 0
	for rows.Next() {
		values, at := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			at[i] = &values[i]
		}
		if err := rows.Scan(at...); err != nil {
			return 0, err
		}
		bytes := map[string]int{}
		inRows += rowBytes
		for i, c := range columns {
			bytes[c] = bytesOfValue(values[i], strings.HasSuffix(c, "_JSON") && table == "WF_RUNTIME_STATES")
			inRows += bytes[c]
		}
		for _, key := range keys {
			n := 0
			for _, c := range columnOf.FindAllString(key, -1) {
				n += bytes[c]
			}
			inKeys += n + entryBytes
		}
	}
	fill := rowFill
	if table == "WF_RUNTIME_STATES" {
		fill -= 0.2 // its PCTFREE is 30, not 10
	}
	return int(float64(inRows)/fill + float64(inKeys)/entryFill), rows.Err()
}

// bytesOfValue is a value with the length before it.
func bytesOfValue(v any, large bool) int {
	n := 0
	switch v := v.(type) {
	case nil:
		return 1
	case []byte:
		n = len(v)
	case string:
		n = len(v)
	case time.Time:
		n = 11
	default: // a number: two digits a byte
		n = 1 + (len(fmt.Sprint(v))+1)/2
	}
	if large {
		n += locatorBytes
	}
	if n > 250 {
		return n + 3
	}
	return n + 1
}
