package main

import (
	"bytes"
	"strings"
	"testing"
)

// What is wrong on the command line is said, in the form that was asked for wherever the flag for
// that stands, and before anything is asked of a node or a database.
func TestWhatIsWrongOnTheCommandLine(t *testing.T) {
	t.Parallel()
	for args, says := range map[string]string{
		"list --bogus --json":                        `{"code":"cli.usage","detail":"unknown flag: --bogus",`,
		"list --limit x --json=true":                 `{"code":"cli.usage",`,
		"list --bogus --json=false":                  "error: unknown flag: --bogus ",
		"list --bogus -- --json":                     "error: unknown flag: --bogus ",
		"lst --limit 3 --json":                       `{"code":"cli.usage","detail":"unknown command \"lst\" for \"engine-node\"","hint":"did you mean engine-node list?"}`,
		"tasks clam x --bogus":                       `error: unknown command "clam" for "engine-node tasks" `,
		"bulk plan cancel --definition= --because X": "error: --definition is empty",
		"dlq replay --queue signal --reason=":        "error: --reason is empty",
		"tasks list --group=":                        "error: --group is empty",
		"resume i1 --because=":                       "error: --because is empty",
		"list --store=":                              "error: --store is empty",
		"show i1 --store-url sqlite://a.db":          "error: settings are for --at",
		"show i1 --at 1 --timeline --store no.db":    "error: if any flags in the group [at timeline] are set",
	} {
		var out, errs bytes.Buffer
		if code := Run(t.Context(), strings.Fields(args), strings.NewReader(""), &out, &errs); code != exitUsage || !strings.HasPrefix(errs.String(), says) {
			t.Errorf("%s: %d, %s", args, code, &errs)
		}
	}
}
