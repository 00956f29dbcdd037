// Package cluster holds the tests of several nodes on one Oracle database: the
// real program in processes of its own, applications that signal in their own
// transactions, and everything that can end at a bad moment.
//
// The database is the stand-in of internal/ocisim, or the one that
// AQUEDUCT_ORACLE_DSN names, where nobody kills sessions and restarts nothing.
// AQUEDUCT_CLUSTER_SECONDS is how long TestCluster lasts (60; 20 with -short),
// AQUEDUCT_CLUSTER_SEED repeats its decisions. What happened is judged by
// package history, which knows nothing of the engine.
package cluster
