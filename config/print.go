package config

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Value is one setting as it is in force.
type Value struct {
	Key      string `json:"key"`
	Value    string `json:"value"` // secrets masked
	From     Origin `json:"from"`
	Default  string `json:"default"`
	Unit     string `json:"unit,omitempty"`
	Variable string `json:"variable"`
	Flag     string `json:"flag"`
	Meaning  string `json:"meaning"`
}

// Values returns every setting, in the order of the table.
func (l *Loaded) Values() []Value {
	standard := Default()
	var all []Value
	for _, s := range settings() {
		value := text(s.field(&l.Config))
		if s.secret {
			value = mask(value)
			if value != "" && !strings.Contains(value, "://") {
				value = "***"
			}
		}
		all = append(all, Value{
			Key: s.key, Value: value, From: l.Origins[s.key], Default: text(s.field(&standard)),
			Unit: s.unit, Variable: s.variable(), Flag: "--" + s.flag(), Meaning: s.usage(),
		})
	}
	return all
}

// Print writes what is in force and where it came from: a table for people, or
// JSON for programs.
func (l *Loaded) Print(w io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(map[string]any{"file": l.File, "settings": l.Values()})
	}
	if l.File != "" {
		if _, err := fmt.Fprintf(w, "file: %s\n\n", l.File); err != nil {
			return err
		}
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, v := range l.Values() {
		value := v.Value
		if value == "" {
			value = `""`
		}
		if _, err := fmt.Fprintf(table, "%s\t%s\t%s\n", v.Key, value, v.From); err != nil {
			return err
		}
	}
	return table.Flush()
}

// mask hides the password and the parameters of a store's address.
func mask(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok || scheme+"://" == schemeSQLite {
		return address
	}
	rest, _, parameters := strings.Cut(rest, "?")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user := rest[:at]
		if i := strings.IndexAny(user, ":/"); i >= 0 {
			user = user[:i] + ":***"
		}
		rest = user + rest[at:]
	}
	if parameters {
		rest += "?***"
	}
	return scheme + "://" + rest
}
