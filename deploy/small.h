/*
 * C that is not SQLite, whose driver says this name by its flags, is made small instead
 * of fast: it runs once for each call of a database far away.
 */
#ifndef SQLITE_THREADSAFE
#pragma GCC optimize("Os")
#endif
