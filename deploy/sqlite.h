/*
 * What of SQLite the program is built without: full text search and R-trees, which
 * the driver's package asks for and nothing here uses. The compiler reads this after
 * the driver's flags (gcc's -include comes behind every -D), by the line of the
 * Dockerfile.
 */
#undef SQLITE_ENABLE_FTS3
#undef SQLITE_ENABLE_FTS3_PARENTHESIS
#undef SQLITE_ENABLE_RTREE
