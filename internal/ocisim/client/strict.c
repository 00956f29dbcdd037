// What PostgreSQL would take and Oracle 19c would not: words and signs. Clauses
// are in clauses.c. OCISIM_STRICT=0 turns both off.
#include "sql.h"

// Where a denied word counts: anywhere, as a function, or as a type in DDL.
typedef enum { ANYWHERE, AS_CALL, AS_TYPE } Where;

static const struct {
    const char *word;
    int code;
    const char *message;
    Where where;
} denied[] = {
    {"LIMIT", 933, "SQL command not properly ended", ANYWHERE},
    {"ILIKE", 920, "invalid relational operator", ANYWHERE},
    {"SIMILAR", 920, "invalid relational operator", ANYWHERE},
    {"CONFLICT", 933, "SQL command not properly ended", ANYWHERE},
    {"EXCEPT", 933, "SQL command not properly ended", ANYWHERE},
    {"ISNULL", 920, "invalid relational operator", ANYWHERE},
    {"NOTNULL", 920, "invalid relational operator", ANYWHERE},
    {"TRUE", 904, "\"TRUE\": invalid identifier", ANYWHERE},
    {"FALSE", 904, "\"FALSE\": invalid identifier", ANYWHERE},
    {"FILTER", 923, "FROM keyword not found where expected", AS_CALL},
    {"TEXT", 902, "invalid datatype", AS_TYPE},
    {"BYTEA", 902, "invalid datatype", AS_TYPE},
    {"JSONB", 902, "invalid datatype", AS_TYPE},
    {"BIGINT", 902, "invalid datatype", AS_TYPE},
    {"SERIAL", 902, "invalid datatype", AS_TYPE},
    {"BIGSERIAL", 902, "invalid datatype", AS_TYPE},
    {"TIMESTAMPTZ", 902, "invalid datatype", AS_TYPE},
    {"UUID", 902, "invalid datatype", AS_TYPE},
    {"BOOLEAN", 902, "invalid datatype", AS_TYPE},
    {"BOOL", 902, "invalid datatype", AS_TYPE},
};

// reserved words cannot name a column or a table.
static const char *const reserved[] = {
    "ACCESS",     "ADD",      "ALL",        "ALTER",    "AND",        "ANY",        "AS",        "ASC",
    "AUDIT",      "BETWEEN",  "BY",         "CHAR",     "CHECK",      "CLUSTER",    "COLUMN",    "COMMENT",
    "COMPRESS",   "CONNECT",  "CREATE",     "CURRENT",  "DATE",       "DECIMAL",    "DEFAULT",   "DELETE",
    "DESC",       "DISTINCT", "DROP",       "ELSE",     "EXCLUSIVE",  "EXISTS",     "FILE",      "FLOAT",
    "FOR",        "FROM",     "GRANT",      "GROUP",    "HAVING",     "IDENTIFIED", "IMMEDIATE", "IN",
    "INCREMENT",  "INDEX",    "INITIAL",    "INSERT",   "INTEGER",    "INTERSECT",  "INTO",      "IS",
    "LEVEL",      "LIKE",     "LOCK",       "LONG",     "MAXEXTENTS", "MINUS",      "MLSLABEL",  "MODE",
    "MODIFY",     "NOAUDIT",  "NOCOMPRESS", "NOT",      "NOWAIT",     "NULL",       "NUMBER",    "OF",
    "OFFLINE",    "ON",       "ONLINE",     "OPTION",   "OR",         "ORDER",      "PCTFREE",   "PRIOR",
    "PUBLIC",     "RAW",      "RENAME",     "RESOURCE", "REVOKE",     "ROW",        "ROWID",     "ROWNUM",
    "ROWS",       "SELECT",   "SESSION",    "SET",      "SHARE",      "SIZE",       "SMALLINT",  "START",
    "SUCCESSFUL", "SYNONYM",  "SYSDATE",    "TABLE",    "THEN",       "TO",         "TRIGGER",   "UID",
    "UNION",      "UNIQUE",   "UPDATE",     "USER",     "VALIDATE",   "VALUES",     "VARCHAR",   "VARCHAR2",
    "VIEW",       "WHENEVER", "WHERE",      "WITH",     NULL};

// functions are those Oracle has, and words that take parentheses.
static const char *const functions[] = {"ABS",
                                        "ADD_MONTHS",
                                        "ALL",
                                        "AND",
                                        "ANY",
                                        "AS",
                                        "ASCII",
                                        "AVG",
                                        "BETWEEN",
                                        "BITAND",
                                        "BY",
                                        "CASE",
                                        "CAST",
                                        "CEIL",
                                        "CHAR",
                                        "CHECK",
                                        "CHR",
                                        "COALESCE",
                                        "CONCAT",
                                        "CORR",
                                        "COUNT",
                                        "CUME_DIST",
                                        "CURRENT_TIMESTAMP",
                                        "DBTIMEZONE",
                                        "DECODE",
                                        "DENSE_RANK",
                                        "DISTINCT",
                                        "DUMP",
                                        "ELSE",
                                        "EMPTY_BLOB",
                                        "EMPTY_CLOB",
                                        "EXISTS",
                                        "EXP",
                                        "EXTRACT",
                                        "FIRST_VALUE",
                                        "FLOOR",
                                        "FROM",
                                        "FROM_TZ",
                                        "GREATEST",
                                        "GROUPING",
                                        "HAVING",
                                        "HEXTORAW",
                                        "IN",
                                        "INITCAP",
                                        "INSERT",
                                        "INSTR",
                                        "INSTRB",
                                        "INTERSECT",
                                        "INTO",
                                        "JOIN",
                                        "JSON_ARRAY",
                                        "JSON_ARRAYAGG",
                                        "JSON_EXISTS",
                                        "JSON_OBJECT",
                                        "JSON_OBJECTAGG",
                                        "JSON_QUERY",
                                        "JSON_TABLE",
                                        "JSON_VALUE",
                                        "LAG",
                                        "LAST_DAY",
                                        "LAST_VALUE",
                                        "LATERAL",
                                        "LEAD",
                                        "LEAST",
                                        "LENGTH",
                                        "LENGTHB",
                                        "LENGTHC",
                                        "LIKE",
                                        "LISTAGG",
                                        "LN",
                                        "LOCALTIMESTAMP",
                                        "LOG",
                                        "LOWER",
                                        "LPAD",
                                        "LTRIM",
                                        "MAX",
                                        "MEDIAN",
                                        "MIN",
                                        "MINUS",
                                        "MOD",
                                        "MONTHS_BETWEEN",
                                        "NANVL",
                                        "NEXT",
                                        "FIRST",
                                        "NOT",
                                        "NTILE",
                                        "NULLIF",
                                        "NUMBER",
                                        "NUMTODSINTERVAL",
                                        "NUMTOYMINTERVAL",
                                        "NVARCHAR2",
                                        "NVL",
                                        "NVL2",
                                        "OF",
                                        "OFFSET",
                                        "ON",
                                        "OR",
                                        "ORA_HASH",
                                        "OVER",
                                        "PERCENTILE_CONT",
                                        "PERCENTILE_DISC",
                                        "PERCENT_RANK",
                                        "POWER",
                                        "RANK",
                                        "RATIO_TO_REPORT",
                                        "RAW",
                                        "RAWTOHEX",
                                        "REGEXP_COUNT",
                                        "REGEXP_INSTR",
                                        "REGEXP_LIKE",
                                        "REGEXP_REPLACE",
                                        "REGEXP_SUBSTR",
                                        "REPLACE",
                                        "ROUND",
                                        "ROW_NUMBER",
                                        "RPAD",
                                        "RTRIM",
                                        "SELECT",
                                        "SESSIONTIMEZONE",
                                        "SET",
                                        "SIGN",
                                        "SOME",
                                        "SQRT",
                                        "STANDARD_HASH",
                                        "STDDEV",
                                        "SUBSTR",
                                        "SUBSTRB",
                                        "SUM",
                                        "SYSTIMESTAMP",
                                        "SYS_CONTEXT",
                                        "SYS_EXTRACT_UTC",
                                        "SYS_GUID",
                                        "TABLE",
                                        "THEN",
                                        "TIMESTAMP",
                                        "TO_BLOB",
                                        "TO_CHAR",
                                        "TO_CLOB",
                                        "TO_DATE",
                                        "TO_DSINTERVAL",
                                        "TO_NUMBER",
                                        "TO_TIMESTAMP",
                                        "TO_TIMESTAMP_TZ",
                                        "TRANSLATE",
                                        "TRIM",
                                        "TRUNC",
                                        "UNION",
                                        "UPPER",
                                        "USERENV",
                                        "USING",
                                        "VALUES",
                                        "VARCHAR2",
                                        "VARIANCE",
                                        "VSIZE",
                                        "WHEN",
                                        "WHERE",
                                        "WITH",
                                        "WITHIN",
                                        "XMLTABLE",
                                        "PARTITION",
                                        "KEEP",
                                        "DAY",
                                        "SECOND",
                                        "UPDATE",
                                        "FOR",
                                        NULL};

// check_word judges one word.
static void check_word(Trans *t, const Tok *k, int i) {
    int qualified = i > 0 && is_punct(&k[i - 1], "."), call = is_punct(&k[i + 1], "(");
    if (strlen(k[i].text) > 128)
        refuse(t, 972, "identifier is too long: %.40s...", k[i].text);
    for (size_t j = 0; j < sizeof denied / sizeof *denied && !qualified; j++) {
        int counts = denied[j].where == ANYWHERE || (denied[j].where == AS_CALL && call) ||
                     (denied[j].where == AS_TYPE && t->ddl && i > 0 && k[i - 1].kind != K_PUNCT);
        if (counts && is_word(&k[i], denied[j].word))
            refuse(t, denied[j].code, "%s", denied[j].message);
    }
    int named =
        i > 0 && (is_word(&k[i - 1], "INTO") || is_word(&k[i - 1], "WITH") || is_word(&k[i - 1], "AS"));
    int cte = i > 1 && is_punct(&k[i - 1], ",") && is_punct(&k[i - 2], ")"); // WITH a AS (...), b (x) AS
    if (!t->ddl && call && !qualified && !named && !cte && !in_words(&k[i], functions))
        refuse(t, 904, "\"%s\": invalid identifier", k[i].text);
}

// check_punct judges one sign.
static void check_punct(Trans *t, const Tok *k, int i) {
    static const char *const signs[] = {"::", "->", "@>", "..", "^", "~", "%", "[",  "]", "{",
                                        "}",  "&",  "|",  "$",  "?", "!", "#", "\\", "`", NULL};
    for (int j = 0; signs[j]; j++)
        if (is_punct(&k[i], signs[j]))
            refuse(t, 911, "invalid character: %s", k[i].text);
    if (is_punct(&k[i], ";"))
        refuse(t, k[i + 1].kind == K_END ? 911 : 933, "invalid character or command not properly ended: ;");
}

// check_columns judges the names of columns of CREATE TABLE.
static void check_columns(Trans *t, const Tok *k, int n) {
    int i = 0, depth = 0;
    while (i < n && !is_punct(&k[i], "("))
        i++;
    for (; i < n; i++) {
        int start = is_punct(&k[i], "(") || is_punct(&k[i], ",");
        depth += is_punct(&k[i], "(") - is_punct(&k[i], ")");
        static const char *const constraints[] = {"CONSTRAINT", "PRIMARY",      "UNIQUE", "CHECK",
                                                  "FOREIGN",    "SUPPLEMENTAL", NULL};
        if (depth == 1 && start && !in_words(&k[i + 1], constraints) && in_words(&k[i + 1], reserved))
            refuse(t, 904, "%s: invalid identifier (reserved word as a column)", k[i + 1].text);
    }
}

// check_options judges options of DDL that Oracle 19c does not have.
static void check_options(Trans *t, const Tok *k, int n) {
    for (int i = 0; i < n; i++) {
        int not_exists = !*seq(k, i, "IF NOT EXISTS"), exists = !*seq(k, i, "IF EXISTS");
        if (not_exists || exists)
            refuse(t, not_exists ? 922 : 933, "missing or invalid option: IF %sEXISTS",
                   not_exists ? "NOT " : "");
        if (t->type == S_DROP && i == n - 1 && i > 2 && is_word(&k[i], "CASCADE") && is_word(&k[1], "TABLE"))
            refuse(t, 905, "missing keyword (CASCADE CONSTRAINTS)");
    }
    int index = t->type == S_CREATE && (is_word(&k[1], "INDEX") || is_word(&k[2], "INDEX"));
    for (int i = 0; index && i < n; i++)
        if (is_word(&k[i], "WHERE") || is_word(&k[i], "INCLUDE"))
            refuse(t, 2158, "invalid CREATE INDEX option: %s", k[i].text);
    if (t->type == S_CREATE && is_word(&k[1], "TABLE"))
        check_columns(t, k, n);
}

// check_interval wants INTERVAL '1' DAY, not INTERVAL '1 day'.
static void check_interval(Trans *t, const Tok *k, int i) {
    static const char *const units[] = {"YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", NULL};
    if (is_word(&k[i], "INTERVAL") && k[i + 1].kind == K_STRING && !in_words(&k[i + 2], units))
        refuse(t, 30089, "missing or invalid <datetime field>");
}

// check_strict judges a statement that is no block.
void check_strict(Trans *t, const Tok *k, int n) {
    for (int i = 0; i < n; i++) {
        if (k[i].kind == K_WORD)
            check_word(t, k, i);
        else if (k[i].kind == K_PUNCT)
            check_punct(t, k, i);
        else if (k[i].kind == K_NUMBER && i > 0 && is_punct(&k[i - 1], "$"))
            refuse(t, 911, "invalid character: $");
        check_interval(t, k, i);
    }
    if (t->ddl)
        check_options(t, k, n);
    int view =
        t->type == S_CREATE && (is_word(&k[1], "VIEW") || is_word(&k[3], "VIEW") || is_word(&k[4], "VIEW"));
    if (!t->ddl || view)
        check_clauses(t, k, n);
}
