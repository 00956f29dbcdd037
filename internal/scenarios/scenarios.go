// Package scenarios proves what a durable runtime of the Open Workflow DSL
// promises, in text that an author of workflows can read.
//
// The files in features are Gherkin. Each scenario is tagged with its number
// (@S01 to @S48), and runs against the real runtime on both stores: an SQLite
// file, and the Oracle store over the stand-in for Oracle's client library. The
// package has no code but its tests; the steps are in steps_test.go.
package scenarios
