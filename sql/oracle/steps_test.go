package oracle

import (
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/sql/steps"
)

// A statement that names what is the engine's is refused before a node works.
func TestStatementsOfTheApplicationNameItsOwn(t *testing.T) {
	t.Parallel()
	for text, name := range map[string]string{
		"update SHOP.STOCK set N = :n":               "",
		"select 1 from MY_WF_LIST":                   "",
		"delete from WF_STREAM":                      "WF_STREAM",
		"delete from AQ_OWNER.wf_stream":             "WF_STREAM",
		`delete from "WF_STREAM"`:                    "WF_STREAM",
		"select * from AQ$WF_SIGNAL_QTAB":            "AQ$WF_SIGNAL_QTAB",
		"merge into T using WF_INSTANCES W on (1=1)": "WF_INSTANCES",
	} {
		set := &steps.Set{}
		if err := set.Add("one", "one.sql", text); err != nil {
			t.Fatal(err)
		}
		err := CheckSteps(set)
		if (name == "") != (err == nil) || name != "" && (problem.CodeOf(err) != "step.statement" || !strings.Contains(err.Error(), name)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
