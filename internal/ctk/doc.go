// Package ctk runs the official conformance kit of the Open Workflow DSL
// against a real node: each scenario is published to a store, started, worked
// off by the runtime, and judged by what the store holds in the end. The
// kit's feature files are read as they are; its HTTP calls reach a local stub,
// because the performer's transport leads every host there.
//
// Every scenario runs in four modes: on SQLite and on the Oracle store,
// undisturbed and with a process killed after every commit.
package ctk
