package openworkflow

import (
	"github.com/aqueduct-engine/aqueduct/program"
)

// latest is how the language names the latest version.
const latest = "latest"

// processes are the ways to run something that is no workflow.
var processes = map[string]string{
	"container": "containers", "script": "scripts", "shell": "shell commands",
}

// run compiles a sub-workflow.
func (c *compiler) run(at string, m map[string]any, n *program.Node, vars scope, _ []string) {
	at = join(at, "run")
	r := c.object(at, m["run"], shape{fields: []string{"workflow", "await", "return"}, unsupported: processes})
	n.Run = &program.Run{Await: true}
	if v, ok := r["await"]; ok {
		if n.Run.Await, ok = v.(bool); !ok {
			c.wrong(join(at, "await"), "true or false", v)
		}
	}
	if _, ok := r["return"]; ok && r["workflow"] != nil {
		c.reportKey(join(at, "return"), codeUnsupported, "leave it out: the output is that of the workflow", "what a process returns is not known of a workflow")
	}
	v, ok := r["workflow"]
	if !ok {
		if r != nil && r["container"] == nil && r["script"] == nil && r["shell"] == nil {
			c.reportKey(at, codeMissing, "", "field workflow is missing")
		}
		return
	}
	at = join(at, "workflow")
	w := c.object(at, v, shape{fields: []string{"namespace", "name", "version", "input"}, required: []string{"namespace", "name"}})
	if w == nil {
		return
	}
	const form = "a name of up to 63 letters, digits and hyphens"
	n.Run.Definition = c.matching(join(at, "namespace"), w["namespace"], label, form) + "/" + c.matching(join(at, "name"), w["name"], label, form)
	if v, ok := w["version"]; ok && v != latest {
		n.Run.Version = c.matching(join(at, "version"), v, semantic, "a semantic version such as '1.0.0', or latest")
	}
	if v, ok := w["input"]; ok {
		n.Run.Input = c.template(join(at, "input"), v, vars)
	}
	own := n.Run.Definition == c.id.Name && (n.Run.Version == "" || n.Run.Version == c.id.Version)
	if own && n.Run.Await {
		c.report(at, codeCyclic, "loop with then or for, or start it with await: false", "%s waits for another run of itself", n.Run.Definition)
	}
}
