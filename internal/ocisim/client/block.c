// Anonymous blocks: each becomes a function, made once by the second
// connection so that no rollback takes it away, and called with the binds.
#include "ocisim.h"

// parameter_type is PostgreSQL's type for a bind of a block.
static const char *parameter_type(uint16_t dty) {
    switch (dty) {
    case T_BIN:
    case T_LBI:
    case T_BLOB: return "bytea";
    case T_VNU:
    case T_INT:
    case T_UIN: return "numeric";
    case T_BDOUBLE:
    case T_BFLOAT: return "float8";
    case T_TSTZ:
    case T_TSLTZ: return "timestamptz";
    case T_TS:
    case T_ODT:
    case T_DAT: return "timestamp";
    case T_IDS:
    case T_IYM: return "interval";
    case T_BOL: return "boolean";
    }
    return "varchar";
}

// block_name names the function of a block for binds of these types.
static void block_name(const Stmt *s, const uint16_t *dty, char *name, size_t n) {
    uint64_t h = 1469598103934665603ULL;
    for (const char *c = s->t.block; *c; c++)
        h = (h ^ (unsigned char)*c) * 1099511628211ULL;
    for (int i = 0; i < s->t.nph; i++)
        for (const char *c = parameter_type(dty[i]); *c; c++)
            h = (h ^ (unsigned char)*c) * 1099511628211ULL;
    snprintf(name, n, "ocisim_blocks.b%016llx", (unsigned long long)h);
}

// Of more parameters PostgreSQL takes no function: the binds come as an array then.
enum { MAX_PARAMETERS = 100 };

// put_element writes how element i of the array becomes a bind's value: by the function
// that reads the type, since casts from texts are Oracle's here.
static void put_element(Buf *b, int i, const char *type) {
    static const struct {
        const char *type, *by, *more;
    } readers[] = {{"bytea", "byteain", ""},           {"numeric", "numeric_in", ", 0, -1"},
                   {"float8", "float8in", ""},         {"timestamptz", "timestamptz_in", ", 0, -1"},
                   {"interval", "interval_in", ", 0, -1"}, {"timestamp", "timestamp_in", ", 0, -1"},
                   {"boolean", "boolin", ""}};
    for (size_t j = 0; j < sizeof readers / sizeof *readers; j++)
        if (!strcmp(type, readers[j].type)) {
            buf_fmt(b, "ocisim_b%d := pg_catalog.%s(pg_catalog.textout(ocisim_in[%d] #>> '{}')%s); ", i, readers[j].by, i,
                    readers[j].more);
            return;
        }
    buf_fmt(b, "ocisim_b%d := ocisim_in[%d] #>> '{}'; ", i, i);
}

// block_parameters writes the parameters of the function, how it is called, and what
// goes before the body.
static void block_parameters(const Stmt *s, const uint16_t *dty, Buf *head, Buf *call, Buf *before) {
    int many = s->t.nph > MAX_PARAMETERS;
    buf_str(before, many ? "#variable_conflict use_column\n BEGIN " : "");
    if (many) {
        buf_str(head, "ocisim_in jsonb[]");
        buf_str(call, "ARRAY[");
    }
    for (int i = 0; i < s->t.nph; i++) {
        const char *type = parameter_type(dty[i]);
        buf_fmt(head, "%s%s ocisim_b%d %s", many || i ? "," : "", many ? "OUT" : "INOUT", i + 1, type);
        buf_fmt(call, many ? "%sto_jsonb($%d::%s)" : "%s$%d::%s", i ? "," : "", i + 1, type);
        if (many)
            put_element(before, i + 1, type);
    }
    if (many)
        buf_str(call, "]");
}

// block_create makes the function unless it is there, and makes the statement
// a call of it. What is prepared has its function.
int block_create(Pg *pg, Err *e, Stmt *s, const uint16_t *dty) {
    char name[64];
    static const char directive[] = "#variable_conflict use_column\n";
    Buf b = {0}, call = {0}, before = {0};
    block_name(s, dty, name, sizeof name);
    buf_fmt(&call, "SELECT * FROM %s(", name);
    buf_fmt(&b, "CREATE FUNCTION %s(", name);
    block_parameters(s, dty, &b, &call, &before);
    buf_str(&call, ")");
    int rc = OK;
    free(s->t.sql);
    s->t.sql = call.p;
    int known = prepared_known(pg, s, dty);
    const char *body = s->t.block + (*before.p ? sizeof directive - 1 : 0);
    buf_fmt(&b, ") %sLANGUAGE plpgsql AS $ocisim$%s%s%s$ocisim$", s->t.nph ? "" : "RETURNS void ", before.p, body,
            *before.p ? " END;" : "");
    free(before.p);
    if (!known) {
        if (helper_conn(pg)) {
            rc = seterr(e, 12541, "TNS:no listener");
        } else {
            PGresult *r = PQexec(pg->helper, b.p);
            const char *state = pg_ok(r) ? "" : PQresultErrorField(r, PG_DIAG_SQLSTATE);
            if (state && *state && strcmp(state, "42723") && strcmp(state, "23505"))
                rc = seterr(e, 6550, "line 1, column 7:\nPLS-00103: %s",
                            PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY));
            PQclear(r);
        }
    }
    free(b.p);
    return rc;
}
