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

// block_create makes the function unless it is there, and makes the statement
// a call of it. What is prepared has its function.
int block_create(Pg *pg, Err *e, Stmt *s, const uint16_t *dty) {
    char name[64];
    Buf b = {0}, call = {0};
    block_name(s, dty, name, sizeof name);
    buf_fmt(&call, "SELECT * FROM %s(", name);
    buf_fmt(&b, "CREATE FUNCTION %s(", name);
    for (int i = 0; i < s->t.nph; i++) {
        buf_fmt(&b, "%sINOUT ocisim_b%d %s", i ? "," : "", i + 1, parameter_type(dty[i]));
        buf_fmt(&call, "%s$%d::%s", i ? "," : "", i + 1, parameter_type(dty[i]));
    }
    buf_str(&call, ")");
    int rc = OK;
    free(s->t.sql);
    s->t.sql = call.p;
    int known = prepared_known(pg, s, dty);
    buf_fmt(&b, ") %sLANGUAGE plpgsql AS $ocisim$%s$ocisim$", s->t.nph ? "" : "RETURNS void ", s->t.block);
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
