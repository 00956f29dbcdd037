package openworkflow

import (
	"slices"

	"github.com/aqueduct-engine/aqueduct/program"
)

// extension is what stands around tasks of a kind.
type extension struct {
	name, at string
	extend   string
	fields   map[string]any
}

// extended are the kinds of tasks that an extension can be for.
var extended = map[string][]program.NodeKind{
	"call":      {program.KindCall, program.KindEach, program.KindPerson},
	"composite": {program.KindDo, program.KindFork},
	"emit":      {program.KindEmit}, "for": {program.KindFor}, "listen": {program.KindListen}, "raise": {program.KindRaise},
	"run": {program.KindRun}, "set": {program.KindSet}, "switch": {program.KindSwitch}, "try": {program.KindTry}, "wait": {program.KindWait},
	"all": nil,
}

// useExtensions takes the extensions, in their order, and checks them where
// they stand.
func (c *compiler) useExtensions(at string, use map[string]any) {
	v, ok := use["extensions"]
	if !ok {
		return
	}
	at = join(at, "extensions")
	list, ok := v.([]any)
	if !ok {
		c.wrong(at, "a list of extensions", v)
		return
	}
	c.extending = true
	defer func() { c.extending = false }()
	for i, x := range list {
		named := c.anyObject(item(at, i), x)
		if len(named) != 1 {
			if named != nil {
				c.report(item(at, i), codeType, "begin each extension with a dash of its own", "list item has %d extensions, not one", len(named))
			}
			continue
		}
		name := keys(named)[0]
		e := extension{name: name, at: join(item(at, i), name)}
		e.fields = c.object(e.at, named[name], shape{fields: []string{"extend", "when", "before", "after"}, required: []string{"extend"}})
		if v, ok := e.fields["extend"]; ok {
			e.extend = c.oneOf(join(e.at, "extend"), v, keys(extended)...)
		}
		for _, f := range []string{"before", "after"} {
			if v, ok := e.fields[f]; ok {
				c.list(join(e.at, f), v, functionScope)
			}
		}
		if v, ok := e.fields["when"]; ok {
			c.expression(join(e.at, "when"), v, functionScope)
		}
		if _, known := extended[e.extend]; known {
			c.extensions = append(c.extensions, e)
		}
	}
}

// extend puts the extensions for a task around it, as a list in which it
// stands: what is before it, the task, what is after it. What comes out of an
// extension's tasks is dropped, unless one of them exits: then it is the output
// of the task, which is passed over.
func (c *compiler) extend(n *program.Node) *program.Node {
	if c.extending {
		return n
	}
	at := join(n.Pointer, "extensions")
	list := &program.Node{Pointer: join(at, "do"), Kind: program.KindList}
	var after []*program.Node
	for _, e := range c.extensions {
		if kinds := extended[e.extend]; e.extend != "all" && !slices.Contains(kinds, n.Kind) {
			continue
		}
		if b := c.around(at, e, "before", n); b != nil {
			list.List = append(list.List, b)
		}
		if a := c.around(at, e, "after", n); a != nil {
			after = append([]*program.Node{a}, after...) // the first is the outermost
		}
	}
	if len(list.List)+len(after) == 0 {
		return n
	}
	list.List = append(append(list.List, n), after...)
	outer := &program.Node{Pointer: at, Name: n.Name, Kind: program.KindDo, If: n.If, Then: n.Then, Body: list}
	n.If, n.Then = nil, program.Flow{}
	c.leaving(n, outer.Then, len(after) > 0)
	return outer
}

// around compiles the tasks of an extension before or after a task.
func (c *compiler) around(at string, e extension, field string, of *program.Node) *program.Node {
	v, ok := e.fields[field]
	if !ok {
		return nil
	}
	findings, dropped, warnings := len(c.findings), c.dropped, len(c.warnings)
	c.extending = true
	p := join(join(at, e.name), field)
	n := &program.Node{Pointer: p, Name: of.Name, Of: of.Pointer, Kind: program.KindDo, Body: c.list(join(p, "do"), v, functionScope)}
	if w, ok := e.fields["when"]; ok {
		n.If = c.expression(join(e.at, "when"), w, functionScope)
	}
	n.Output = c.expression(e.at, "$input", functionScope) // it leaves the data as it was
	c.extending = false
	c.findings, c.dropped, c.warnings = c.findings[:findings], dropped, c.warnings[:warnings] // reported where it stands
	for _, task := range n.Body.List {
		task.Of = of.Pointer
	}
	if field == "before" {
		for _, task := range n.Body.List {
			exits(&task.Then)
			for i := range task.Cases {
				exits(&task.Cases[i].Then)
			}
			if task.Catch != nil && task.Catch.Then != nil {
				exits(task.Catch.Then)
			}
		}
	}
	return n
}

// exits makes an exit leave the extended task.
func exits(f *program.Flow) {
	if f.Directive == program.FlowExit {
		f.Up = true
	}
}

// leaving has the flow directives inside of an extended task lead out of the
// list that was put around it. They would pass over what comes after the task,
// so that is refused. A catch that continues passes over then, which the list has now,
// unless something comes after: such documents are stored, and go on as they did.
func (c *compiler) leaving(n *program.Node, then program.Flow, after bool) {
	flows := map[string]*program.Flow{}
	for i := range n.Cases {
		flows[join(item("switch", i), n.Cases[i].Name)+"/then"] = &n.Cases[i].Then
	}
	var catchThen *program.Flow
	if n.Catch != nil && n.Catch.Then != nil {
		catchThen = n.Catch.Then
		flows["catch/then"] = catchThen
	}
	for _, field := range keys(flows) {
		f := flows[field]
		stays := f.Directive == program.FlowContinue && (f != catchThen || then.Directive == program.FlowContinue || after)
		if stays || f.Directive == program.FlowEnd && !after {
			continue
		}
		f.Up = f.Directive != program.FlowEnd
		if after {
			c.report(join(n.Pointer, "")+field, codeUnsupported, "leave after out, or let the case continue",
				"a task with a flow directive of its own inside, in an extension with after, is outside the supported profile")
		}
	}
}
