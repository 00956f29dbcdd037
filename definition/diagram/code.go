package diagram

// coded draws what a workflow in Go declares: its steps, and where its functions lead.
// One that leads nowhere ends the instance.
func coded(root map[string]any, marks []Mark, ended bool) string {
	d := &drawing{classes: map[string]string{}}
	d.line("flowchart TD")
	d.depth++
	ids, stays := map[string]string{}, map[string]string{}
	steps, _ := root["steps"].([]any)
	for _, x := range steps {
		step, _ := x.(map[string]any)
		ids[text(step["name"])] = d.fresh()
	}
	start := "start"
	for _, m := range marks {
		name := ""
		if keys := split(m.Pointer); len(keys) > 0 {
			name = keys[0]
		}
		stays[name] += "<br/>► " + label(m.Text)
		if id := ids[name]; id != "" {
			d.class(id, m)
		} else {
			d.class("S", m)
			start += "<br/>► " + label(m.Text)
		}
	}
	d.line(`S(["%s"])`, start)
	d.leads("S", root["start"], ids, "")
	for _, x := range steps {
		step, _ := x.(map[string]any)
		name, shown := text(step["name"]), text(step["kind"])
		if target := text(step["target"]); target != "" && target != shown {
			shown += " " + target
		}
		d.line(`%s["%s<br/>%s%s"]`, ids[name], label(name), label(shown), stays[name])
		d.leads(ids[name], step["to"], ids, "")
		d.leads(ids[name], step["onFailure"], ids, "failure")
	}
	d.line(`E(["end"])`)
	if ended {
		d.classes["E"] = "here"
	}
	d.finish()
	return d.text.String()
}

// leads draws an arrow for each step that a function may ask for.
func (d *drawing) leads(from string, to any, ids map[string]string, why string) {
	list, said := to.([]any)
	if said && len(list) == 0 {
		d.edge(from, "E", why)
	}
	for _, x := range list {
		if id := ids[text(x)]; id != "" {
			d.edge(from, id, why)
		}
	}
}
