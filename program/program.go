// Package program is a definition that is compiled from a document: a tree of
// tasks, and the interpreter that runs it in the turns of [engine].
//
// A [Program] is all that a definition can be to the engine: it has a schedule,
// states, retry policies, lifecycle events of its tasks, and instances that can
// be moved to another version. It decides by expressions of jq and checks by
// JSON Schemas; of both the engine knows nothing. Whatever it remembers stands
// in the frames of the snapshot's branches, and whatever it asks for it asks of
// the turn: waits, commands, people, events, an end.
package program

import (
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/attribute"
	"github.com/aqueduct-engine/aqueduct/compensate"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/schedule"
	"github.com/aqueduct-engine/aqueduct/schema"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Program is a definition compiled from a document: an immutable tree of
// tasks, each addressed by the JSON pointer it has in the document. The
// pointer is also what a frame of a snapshot remembers.
type Program struct {
	compensate.Compensator

	ID      snapshot.Definition
	Info    Info
	Input   *jq.Template // input.from of the workflow; nil = as it is
	Output  *jq.Template // output.as of the workflow; nil = as it is
	Timeout *jq.Template // an ISO 8601 duration, for the whole run; nil = none
	Schemas Schemas      // of the workflow's input and output
	Machine *Machine     // of a lifecycle, whose root list has states; nil = its tasks run one after the other
	Root    *Node        // KindList at "/do", or at "/states"

	Attributes []attribute.Declared // what instances are found by

	// When instances begin by themselves; nil = never. Its On is a Node, KindListen
	// at /schedule/on: each event that one of its filters takes.
	*schedule.Schedule

	policed
}

// policed are the tasks of a program, with what a policy has laid over them.
type policed struct {
	// Policy is that of a lifecycle, which lies over its states; nil = it is no
	// lifecycle. Former is the program with the policy that the hooks under way are of,
	// where that is another; nil = none is.
	Policy *engine.Policy
	Former *Program

	nodes map[string]*Node
}

// ByPolicy says by which policy the program's instances go; nil = it is no lifecycle.
func (p *policed) ByPolicy() *engine.Policy { return p.Policy }

// GoBy says which policy was laid over a program that nobody else has yet, and which
// program has the hooks that are under way; nil = itself.
func (p *policed) GoBy(policy engine.Policy, former engine.Definition) {
	p.Policy = &policy
	if t, ok := former.(tree); ok {
		p.Former = t.program()
	}
}

// node is the task at a pointer, or nil.
func (p *policed) node(pointer string) *Node {
	n := p.nodes[pointer]
	if n == nil && p.Former != nil {
		return p.Former.nodes[pointer]
	}
	return n
}

// SearchAttributes implements attribute.Searchable.
func (p *Program) SearchAttributes() []attribute.Declared { return p.Attributes }

// Schemas are what the data of a task or a workflow must fit; nil = anything.
type Schemas struct {
	Input  *schema.Schema // of the input as it comes, before input.from
	Output *schema.Schema // of the output, after output.as
	Export *schema.Schema // of the context, after export.as
}

// Info is what $workflow.definition shows.
type Info struct {
	Document any // the canonical source document, as any JSON
}

// NodeKind says what a node does.
type NodeKind string

const (
	KindList       NodeKind = "list" // a sequence of tasks; not itself a task
	KindDo         NodeKind = "do"
	KindSet        NodeKind = "set"
	KindSwitch     NodeKind = "switch"
	KindFor        NodeKind = "for"
	KindFork       NodeKind = "fork"
	KindArms       NodeKind = "arms" // the tasks of a fork, each a branch of its own; not itself a task
	KindRaise      NodeKind = "raise"
	KindTry        NodeKind = "try"
	KindWait       NodeKind = "wait"
	KindListen     NodeKind = "listen"
	KindCall       NodeKind = "call"   // a command for a performer
	KindEach       NodeKind = "each"   // call: forEach, one command per item, at once
	KindPerson     NodeKind = "person" // call: humanTask
	KindCompensate NodeKind = "undo"   // call: compensate
	KindEmit       NodeKind = "emit"
	KindRun        NodeKind = "run"   // a sub-workflow
	KindState      NodeKind = "state" // of a lifecycle
)

// Node is a task, or a list of tasks.
type Node struct {
	Pointer string
	Name    string
	Kind    NodeKind
	Of      string // pointer of the task that this one extends and that $task shows; "" = none
	Policy  string // version of the policy whose hooks are inside; "" = it is no policy's

	If      *jq.Template // nil = always; else a truthy value runs the task
	Input   *jq.Template // input.from; nil = as it is
	Output  *jq.Template // output.as; nil = as it is
	Export  *jq.Template // export.as; nil = context stays
	Timeout *jq.Template // timeout.after as an ISO 8601 duration; nil = none
	Schemas Schemas
	Then    Flow

	// GiveUp is how long a command of the task may wait for a place; 0 = as the
	// task around it says, that of the root list as the definition, and if that
	// says nothing, as the node.
	GiveUp time.Duration

	Compensate *Node // what undoes the task: KindCall, KindPerson or KindRun, in no list; nil = nothing does

	List    []*Node      // KindList, KindArms: the tasks in order
	Body    *Node        // KindDo, KindFor, KindTry: a KindList; KindFork: a KindArms; KindListen: foreach.do
	Set     *jq.Template // KindSet
	Cases   []Case       // KindSwitch
	For     *For         // KindFor
	Compete bool         // KindFork: the first arm that ends is the output
	Any     bool         // KindFork that competes: arms may fail, as long as another has not
	Raise   *Raise       // KindRaise
	Catch   *Catch       // KindTry
	Wait    *jq.Template // KindWait: an ISO 8601 duration
	Listen  *Listen      // KindListen
	Call    *Call        // KindCall, KindEach
	Person  *Person      // KindPerson
	Emit    *jq.Template // KindEmit: the event's attributes, an object
	Run     *Run         // KindRun
	State   *State       // KindState

	parent *Node // the list or task around this one; nil for Root
	index  int   // in the parent's List
	timed  bool  // it is in the root list, and the workflow has a timeout
}

// Flow is a flow directive: where to go after a task.
type Flow struct {
	Directive FlowDirective
	Target    string // FlowTo: name of a task in the same list
	Up        bool   // it is meant for the list around the task around this list
}

// FlowDirective is the verb of a Flow.
type FlowDirective string

const (
	FlowContinue FlowDirective = ""     // the next task of the list
	FlowExit     FlowDirective = "exit" // the end of this list
	FlowEnd      FlowDirective = "end"  // the end of the workflow
	FlowTo       FlowDirective = "to"
)

// Case is one arm of a switch. The first whose When is truthy wins; a case
// without When is the default, wherever it stands.
type Case struct {
	Name string
	When *jq.Template
	Then Flow
}

// For runs its body once for each item.
type For struct {
	Each  string // variable of the item, without $
	At    string // variable of the index, without $
	In    *jq.Template
	While *jq.Template // nil = all items
}

// Raise raises an error. Each field is a template that gives the field's value.
type Raise struct {
	Type, Status, Title, Detail, Instance *jq.Template // Title, Detail, Instance may be nil
}

// Catch says which errors a try takes and what it does with them.
type Catch struct {
	With       map[string]*jq.Template // error fields that must be equal: type, status, title, detail, instance
	As         string                  // variable of the error, without $; "" = error
	When       *jq.Template            // nil = always
	ExceptWhen *jq.Template            // nil = never
	Retry      *RetryPolicy            // nil = none
	Body       *Node                   // KindList; nil = go on, or, after retries, raise
	Then       *Flow                   // after the catch; nil = that of the try
}

// Call is a command.
type Call struct {
	Target string       // "http" or a function's name
	With   *jq.Template // the command's input, as the performer of Target expects it
	In     *jq.Template // KindEach: the items
	Each   string       // KindEach: variable of the item in With, without $

	Compensate *Node // KindEach: what undoes the command of one item; nil = nothing does

	// Key is the author's own idempotency key; nil = that of the effect.
	Key *jq.Template
	// NewKey says that a retry may send another request although nobody knows
	// what became of the one before.
	NewKey bool

	// Ack is an ISO 8601 duration (see [engine.Command.Ack]); nil = the performer's
	// answer is the result.
	Ack *jq.Template
	// AckIf says whether Ack counts; nil = it does. Else the command is but told: see [ack.None].
	AckIf *jq.Template
	// Retries of a delivery, as the rule says that has it told.
	Retries ack.Retries
	// Detached says that nobody waits: the task is completed at once, with its
	// input as its output, and a command that fails is a dead letter.
	Detached bool
}

// Person is a human task. With evaluates to an object with the fields of
// [engine.Task] in the words of the humanTask function.
type Person struct {
	With *jq.Template
}

// New finishes a program: it indexes the tasks and checks that every pointer is
// unique and every flow target exists in its list.
func New(p Program) (*Program, error) {
	p.nodes = map[string]*Node{}
	if p.Root == nil || p.Root.Kind != KindList {
		return nil, fmt.Errorf("program: program %s has no root list", p.ID.Name)
	}
	if p.Machine != nil && p.Policy == nil {
		p.Policy = &engine.Policy{}
	}
	if err := p.index(p.Root, nil, 0); err != nil {
		return nil, err
	}
	if p.Schedule != nil {
		if on, ok := p.Schedule.On.(*Node); ok { // the task that its subscriptions are of
			p.nodes[on.Pointer] = on
		}
	}
	return &p, nil
}

func (p *Program) index(n, parent *Node, i int) error {
	if p.nodes[n.Pointer] != nil {
		return fmt.Errorf("program: two tasks at %s", n.Pointer)
	}
	p.nodes[n.Pointer] = n
	n.parent, n.index, n.timed = parent, i, p.Timeout != nil && parent != nil && parent == p.Root
	if n.GiveUp == 0 && parent != nil {
		n.GiveUp = parent.GiveUp
	}
	for i, child := range n.List {
		if err := p.index(child, n, i); err != nil {
			return err
		}
		flows := []Flow{child.Then}
		for _, c := range child.Cases {
			flows = append(flows, c.Then)
		}
		if child.State != nil {
			for _, tr := range child.State.On {
				flows = append(flows, Flow{Directive: FlowTo, Target: tr.To})
			}
		}
		if child.Catch != nil {
			flows = append(flows, child.caught())
		}
		for _, f := range flows {
			in := n
			if f.Up && n.parent != nil && n.parent.parent != nil {
				in = n.parent.parent
			}
			if f.Directive == FlowTo && in.find(f.Target) < 0 {
				return fmt.Errorf("program: %s goes to %q, which is no task of its list", child.Pointer, f.Target)
			}
		}
	}
	bodies := []*Node{n.Body}
	if n.Catch != nil {
		bodies = append(bodies, n.Catch.Body)
	}
	if n.State != nil {
		bodies = append(bodies, n.State.hooks()...)
	}
	for _, b := range bodies {
		if b != nil && p.nodes[b.Pointer] != b { // a transition from several states has its hooks once
			if err := p.index(b, n, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// find returns the index of a named task in a list, or -1.
func (n *Node) find(name string) int {
	for i, child := range n.List {
		if child.Name == name {
			return i
		}
	}
	return -1
}

// keepsInput reports whether something still asks for the task's input after
// its body has begun.
func (n *Node) keepsInput() bool {
	if n.Kind == KindTry || n.Listen != nil && n.Listen.Each != nil {
		return true
	}
	asks := []*jq.Template{n.Output, n.Export}
	if n.For != nil {
		asks = append(asks, n.For.While)
	}
	if n.Listen != nil {
		asks = append(asks, n.Listen.Until)
	}
	asks = append(asks, n.Compensate.asks()...)
	if n.Call != nil {
		asks = append(asks, n.Call.Compensate.asks()...)
	}
	for _, t := range asks {
		if t != nil && (t.Uses("$input") || t.Uses("$task")) {
			return true
		}
	}
	return false
}

// keepsRaw reports whether a repetition of the task could not start from the
// branch's data, because the task has replaced it.
func (n *Node) keepsRaw() bool {
	composite := n.Body != nil && n.Kind != KindFork // a branch that forks keeps its data
	return n.Input != nil || composite && (n.timed || n.Timeout != nil || n.Output != nil || n.Export != nil ||
		n.Schemas.Output != nil || n.Compensate != nil || n.For != nil && n.For.While != nil)
}
