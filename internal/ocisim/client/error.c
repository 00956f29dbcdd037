// Errors: ORA codes for the driver, and PostgreSQL's errors as ORA codes.
#include "ocisim.h"

// seterr fills an error handle and returns ERR.
int seterr(void *err, int code, const char *fmt, ...) {
    Err *e = err;
    va_list ap;
    if (!e)
        return ERR;
    e->code = code;
    e->recoverable = 0;
    int n = snprintf(e->msg, sizeof e->msg, "ORA-%05d: ", code);
    va_start(ap, fmt);
    vsnprintf(e->msg + n, sizeof e->msg - (size_t)n, fmt, ap);
    va_end(ap);
    debug("error %s", e->msg);
    return ERR;
}

// unknown_attr refuses an attribute that is not emulated.
int unknown_attr(void *err, const char *verb, uint32_t type, uint32_t attr) {
    return seterr(err, 24315, "illegal attribute type (ocisim: %s attribute %u of handle type %u)", verb,
                  attr, type);
}

// OCIErrorGet reads the code and the text of an error.
EXPORT int OCIErrorGet(void *h, uint32_t rec, char *st, int32_t *code, char *buf, uint32_t sz, uint32_t t) {
    Err *e = h;
    if (t != H_ERROR || !e) {
        *code = 600;
        snprintf(buf, sz, "ORA-00600: internal error (no error handle)");
        return OK;
    }
    *code = e->code;
    snprintf(buf, sz, "%s\n", e->msg);
    return OK;
}

// Detail is what the text of a code names.
typedef enum { PLAIN, MESSAGE, CONSTRAINT, COLUMN } Detail;

// codes maps SQLSTATE to ORA, where one stands for one.
static const struct {
    const char *state;
    int code;
    const char *text;
    Detail detail;
} codes[] = {
    {"23505", 1, "unique constraint (%s) violated", CONSTRAINT},
    {"23514", 2290, "check constraint (%s) violated", CONSTRAINT},
    {"22001", 12899, "value too large for column (%s)", MESSAGE},
    {"22003", 1438, "value larger than specified precision allowed for this column", PLAIN},
    {"22P02", 1722, "invalid number (%s)", MESSAGE},
    {"22007", 1861, "literal does not match format string (%s)", MESSAGE},
    {"22008", 1861, "literal does not match format string (%s)", MESSAGE},
    {"22012", 1476, "divisor is equal to zero", PLAIN},
    {"22023", 1465, "invalid hex number or argument (%s)", MESSAGE},
    {"21000", 1427, "single-row subquery returns more than one row", PLAIN},
    {"P0002", 1403, "no data found", PLAIN},
    {"P0003", 1422, "exact fetch returns more than requested number of rows", PLAIN},
    {"40P01", 60, "deadlock detected while waiting for resource", PLAIN},
    {"40001", 8177, "can't serialize access for this transaction", PLAIN},
    {"57014", 1013, "user requested cancel of current operation", PLAIN},
    {"34000", 1002, "fetch out of sequence", PLAIN},
    {"24000", 1002, "fetch out of sequence", PLAIN},
    {"42P01", 942, "table or view does not exist (%s)", MESSAGE},
    {"42704", 942, "table or view does not exist (%s)", MESSAGE},
    {"3F000", 942, "table or view does not exist (%s)", MESSAGE},
    {"42703", 904, "invalid identifier (%s)", MESSAGE},
    {"42883", 904, "invalid identifier (%s)", MESSAGE},
    {"42702", 918, "column ambiguously defined (%s)", MESSAGE},
    {"42803", 979, "not a GROUP BY expression (%s)", MESSAGE},
    {"42804", 932, "inconsistent datatypes (%s)", MESSAGE},
    {"42846", 932, "inconsistent datatypes (%s)", MESSAGE},
    {"42P07", 955, "name is already used by an existing object", PLAIN},
    {"42710", 955, "name is already used by an existing object", PLAIN},
    {"42723", 955, "name is already used by an existing object", PLAIN},
    {"42701", 1430, "column being added already exists in table", PLAIN},
    {"42P16", 2260, "table can have only one primary key (%s)", MESSAGE},
    {"42501", 1031, "insufficient privileges", PLAIN},
    {"25006", 1456, "may not perform insert/delete/update operation inside a READ ONLY transaction", PLAIN},
    {"3B001", 1086, "savepoint never established in this session or is invalid", PLAIN},
    {"53300", 12516, "TNS:listener could not find available handler", PLAIN},
};

// field reads a field of a failed result, "" for none.
static const char *field(const PGresult *r, int code) {
    const char *s = r ? PQresultErrorField(r, code) : NULL;
    return s ? s : "";
}

// detail_text writes what the text of a code names.
static void detail_text(const PGresult *r, Detail d, char *out, size_t n) {
    const char *schema = field(r, PG_DIAG_SCHEMA_NAME);
    if (d == CONSTRAINT)
        snprintf(out, n, "%s.%s", schema, field(r, PG_DIAG_CONSTRAINT_NAME));
    else if (d == COLUMN)
        snprintf(out, n, "\"%s\".\"%s\".\"%s\"", schema, field(r, PG_DIAG_TABLE_NAME),
                 field(r, PG_DIAG_COLUMN_NAME));
    else
        snprintf(out, n, "%s", field(r, PG_DIAG_MESSAGE_PRIMARY));
    if (d != MESSAGE)
        upper(out);
}

// constraint_error maps the states whose text depends on the statement.
static int constraint_error(Err *e, const PGresult *r, int stype) {
    const char *state = field(r, PG_DIAG_SQLSTATE);
    char name[400];
    if (!strcmp(state, "23502")) {
        detail_text(r, COLUMN, name, sizeof name);
        return stype == S_UPDATE ? seterr(e, 1407, "cannot update (%s) to NULL", name)
                                 : seterr(e, 1400, "cannot insert NULL into (%s)", name);
    }
    if (!strcmp(state, "23503")) {
        detail_text(r, CONSTRAINT, name, sizeof name);
        return strstr(field(r, PG_DIAG_MESSAGE_DETAIL), "still referenced")
                   ? seterr(e, 2292, "integrity constraint (%s) violated - child record found", name)
                   : seterr(e, 2291, "integrity constraint (%s) violated - parent key not found", name);
    }
    return OK;
}

// special_error maps the states whose code depends on more than themselves.
static int special_error(Err *e, const PGresult *r, int stype) {
    const char *state = field(r, PG_DIAG_SQLSTATE), *message = field(r, PG_DIAG_MESSAGE_PRIMARY);
    const char *ora = strstr(message, "ORA-");
    int block = stype == S_BEGIN || stype == S_DECLARE || stype == S_CALL;
    if (!strcmp(state, "P0001") && ora)
        return seterr(e, atoi(ora + 4), "%s", strlen(ora) > 11 ? ora + 11 : "");
    const char *context = field(r, PG_DIAG_CONTEXT);
    if (!strcmp(state, "22001") && (strstr(context, "variable initialization") || strstr(context, "at assignment")))
        return seterr(e, 6502, "PL/SQL: numeric or value error: character string buffer too small");
    if (!strcmp(state, "55P03")) {
        int code = strstr(message, "lock timeout") ? 30006 : 54;
        const char *text = "resource busy and acquire with NOWAIT specified or timeout expired";
        const char *line = strstr(context, " line ");
        if (block && line) // of the function, whose text begins a line before the block's
            return seterr(e, code, "%s\nORA-06512: at line %d", text, atoi(line + 6) - 1);
        return seterr(e, code, "%s", text);
    }
    int undeclared = !strcmp(state, "42883") || !strcmp(state, "3F000") ||
                     (!strcmp(state, "42501") && strstr(message, "schema"));
    if (block && undeclared)
        return seterr(e, 6550, "line 1, column 7:\nPLS-00201: identifier must be declared (%s)", message);
    return constraint_error(e, r, stype);
}

// lost_error says that the connection is gone, and that the driver may retry.
static int lost_error(Pg *pg, Err *e, const char *message) {
    pg->dead = 1;
    seterr(e, 3113, "end-of-file on communication channel (%s)", *message ? message : PQerrorMessage(pg->c));
    if (e)
        e->recoverable = 1;
    return ERR;
}

// pg_error reports a failed result (NULL: nothing came back) as Oracle would
// for a statement of this kind. Returns ERR.
int pg_error(Pg *pg, Err *e, PGresult *r, int stype) {
    const char *state = field(r, PG_DIAG_SQLSTATE), *message = field(r, PG_DIAG_MESSAGE_PRIMARY);
    char text[600];
    if (pg->timed_out) {
        pg->timed_out = 0;
        return seterr(e, 3156, "OCI call timed out");
    }
    if (is_broken(pg) && !strcmp(state, "25P02")) // the break ended an earlier statement of this call
        return seterr(e, 1013, "user requested cancel of current operation");
    if (pg->dead || !*state || !strncmp(state, "57P", 3) || !strncmp(state, "08", 2))
        return lost_error(pg, e, message);
    if (special_error(e, r, stype))
        return ERR;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (strcmp(state, codes[i].state))
            continue;
        detail_text(r, codes[i].detail, text, sizeof text);
        const char *at = strstr(codes[i].text, "%s");
        if (!at)
            return seterr(e, codes[i].code, "%s", codes[i].text);
        return seterr(e, codes[i].code, "%.*s%s%s", (int)(at - codes[i].text), codes[i].text, text, at + 2);
    }
    if (!strncmp(state, "42", 2))
        return seterr(e, 900, "invalid SQL statement (ocisim: [%s] %s)", state, message);
    return seterr(e, 20998, "ocisim: no code for PostgreSQL's [%s] %s", state, message);
}

// connect_error reports a connection that did not come about.
int connect_error(PGconn *c, Err *e) {
    static const struct {
        const char *part;
        int code;
        const char *text;
    } causes[] = {
        {"password", 1017, "invalid username/password; logon denied"},
        {"role \"", 1017, "invalid username/password; logon denied"},
        {"authentication", 1017, "invalid username/password; logon denied"},
        {"database \"", 12514, "TNS:listener does not currently know of service requested"},
        {"too many clients", 12516, "TNS:listener could not find available handler"},
        {"starting up", 1033, "ORACLE initialization or shutdown in progress"},
        {"shutting down", 1033, "ORACLE initialization or shutdown in progress"},
        {"timeout", 12170, "TNS:Connect timeout occurred"},
    };
    const char *m = PQerrorMessage(c);
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (strstr(m, causes[i].part))
            return seterr(e, causes[i].code, "%s (%s)", causes[i].text, m);
    return seterr(e, 12541, "TNS:no listener (%s)", m);
}
