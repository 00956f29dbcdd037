// Package oraclefacts holds what the Oracle store takes for granted about the
// database and its driver and nobody could look up: a table of claims, each with
// a test.
//
// On the stand-in of internal/ocisim those run that it can imitate, which shows
// that the test is sound and no more. On the database that AQUEDUCT_ORACLE_DSN
// names all run that need no operator. The log has a line for every claim that
// says what its run is worth: proved, imitated, or not proved here.
package oraclefacts
