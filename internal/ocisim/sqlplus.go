package ocisim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Script runs a script as SQL*Plus does: &1, &2 ... are its arguments, DEFINE
// names them, a line with a slash ends a statement. Errors whose text holds one
// of the codes in harmless, such as "ORA-00955", are passed over.
func (d *Database) Script(ctx context.Context, user, script string, arguments, harmless []string) (err error) {
	return d.plus(ctx, user, func(p *plus) error { return p.run(ctx, script, arguments, harmless) })
}

// ScriptFile is Script for a file, which may call others beside it with @@NAME and
// arguments.
func (d *Database) ScriptFile(ctx context.Context, user string, folder fs.FS, name string, arguments []string) error {
	return d.plus(ctx, user, func(p *plus) error {
		p.folder = folder
		return p.file(ctx, name, arguments)
	})
}

// plus is a session of SQL*Plus.
type plus struct {
	db     *sql.DB
	folder fs.FS // of the script
}

func (d *Database) plus(ctx context.Context, user string, run func(*plus) error) (err error) {
	db, err := sql.Open("godror", d.UserDSN(user))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	return run(&plus{db: db})
}

func (p *plus) file(ctx context.Context, name string, arguments []string) error {
	script, err := fs.ReadFile(p.folder, name)
	if err == nil {
		err = p.run(ctx, string(script), arguments, nil)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (p *plus) run(ctx context.Context, script string, arguments, harmless []string) error {
	defined := map[string]string{}
	for i, a := range arguments {
		defined[fmt.Sprint(i+1)] = a
	}
	var statement []string
	for n, line := range strings.Split(script, "\n") {
		line = substitute(line, defined)
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case word == "/":
			if err := runStatement(ctx, p.db, strings.Join(statement, "\n"), harmless); err != nil {
				return fmt.Errorf("line %d: %w", n+1, err)
			}
			statement = nil
		case len(statement) > 0:
			statement = append(statement, line)
		case strings.HasPrefix(word, "--"), word == "", word == "PROMPT", word == "SET", word == "WHENEVER":
		case strings.HasPrefix(word, "@@"):
			if err := p.file(ctx, word[2:], strings.Fields(rest)); err != nil {
				return err
			}
		case word == "DEFINE":
			name, value, ok := strings.Cut(rest, "=")
			if !ok {
				return fmt.Errorf("line %d: DEFINE without a value", n+1)
			}
			defined[strings.TrimSpace(name)] = strings.TrimSpace(value)
		default:
			statement = append(statement, line)
		}
	}
	if len(statement) > 0 {
		return fmt.Errorf("the last statement is not ended: %s", statement[0])
	}
	return nil
}

func runStatement(ctx context.Context, db *sql.DB, text string, harmless []string) error {
	_, err := db.ExecContext(ctx, text)
	for _, code := range harmless {
		if err != nil && strings.Contains(err.Error(), code) {
			return nil
		}
	}
	return err
}

// substitute puts in what is defined. A dot ends the name of a variable.
func substitute(line string, defined map[string]string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(line, "&")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		end := strings.IndexFunc(after, func(c rune) bool {
			return c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
		})
		if end < 0 {
			end = len(after)
		}
		value, ok := defined[after[:end]]
		if !ok {
			value = "&" + after[:end]
		}
		b.WriteString(value)
		line = strings.TrimPrefix(after[end:], ".")
	}
}
