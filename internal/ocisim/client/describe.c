// Describe: PostgreSQL's columns as Oracle's types. ODPI-C keeps the first
// description of a statement, so sizes must not depend on the rows of one run
// more than they must.
#include "ocisim.h"
#include <ctype.h>

enum { CACHE_SIZE = 256 };

// cache remembers which columns are BLOBs: bytea cannot tell them from RAW.
static struct {
    Oid table;
    int column, blob;
} cache[CACHE_SIZE];
static int cached;
static pthread_mutex_t cache_mu = PTHREAD_MUTEX_INITIALIZER; // guards cache and cached

// cache_look returns whether a column is a BLOB, -1 if it is not known.
static int cache_look(Oid table, int column) {
    int found = -1;
    pthread_mutex_lock(&cache_mu);
    for (int i = 0; i < cached && i < CACHE_SIZE; i++)
        if (cache[i].table == table && cache[i].column == column)
            found = cache[i].blob;
    pthread_mutex_unlock(&cache_mu);
    return found;
}

// is_blob asks the server about a column, once.
static int is_blob(Pg *pg, Oid table, int column) {
    char q[200];
    int blob = table ? cache_look(table, column) : 0;
    if (blob >= 0)
        return blob;
    snprintf(q, sizeof q,
             "SELECT t.typname='blob' FROM pg_attribute a JOIN pg_type t ON t.oid=a.atttypid WHERE "
             "a.attrelid=%u AND a.attnum=%d",
             table, column);
    PGresult *r = pg_query(pg, q);
    blob = pg_ok(r) && PQntuples(r) && PQgetvalue(r, 0, 0)[0] == 't';
    PQclear(r);
    pthread_mutex_lock(&cache_mu);
    int k = cached++ % CACHE_SIZE;
    cache[k].table = table;
    cache[k].column = column;
    cache[k].blob = blob;
    pthread_mutex_unlock(&cache_mu);
    return blob;
}

// longest is the length of the longest value of a column.
static int longest(const PGresult *r, int column) {
    int n = 0;
    for (int i = 0; i < PQntuples(r); i++)
        if (PQgetlength(r, i, column) > n)
            n = PQgetlength(r, i, column);
    return n;
}

// describe_name gives the name: upper case, unless it was quoted.
static char *describe_name(const Stmt *s, const char *name) {
    for (const char *c = name; *c; c++)
        if (isupper((unsigned char)*c))
            return xstrdup(name);
    for (int i = 0; i < s->t.nquoted; i++)
        if (!strcmp(s->t.quoted[i], name))
            return xstrdup(name);
    return upper(xstrdup(name));
}

// describe_number describes numeric columns by their type modifier.
static void describe_number(Param *c, Oid type, int mod) {
    c->dty = T_NUM;
    c->scale = -127;
    if (type == PG_NUMERIC && mod >= 4) {
        c->prec = (int16_t)(((mod - 4) >> 16) & 0xffff);
        c->scale = (int8_t)((((mod - 4) & 0x7ff) ^ 1024) - 1024);
    }
}

// describe_bytes describes bytea: a BLOB by its column, or when it is long.
static void describe_bytes(Pg *pg, const PGresult *r, int i, Param *c) {
    int n = longest(r, i) / 2;
    c->dty = T_BIN;
    c->size = n > 2000 ? 32767 : 2000;
    if (n > 32767 || is_blob(pg, PQftable(r, i), PQftablecol(r, i)))
        c->dty = T_BLOB;
}

// describe_text describes strings; text of a table is a CLOB.
static void describe_text(const PGresult *r, int i, Oid type, int mod, Param *c) {
    int n = mod >= 4 ? (mod - 4) * 4 : 4000;
    c->dty = type == PG_BPCHAR ? T_AFC : T_CHR;
    c->size = (uint16_t)(n > 32767 ? 32767 : n);
    if (type == PG_TEXT && PQftable(r, i))
        c->dty = T_CLOB;
    else if (mod < 4 && longest(r, i) > 32767)
        c->dty = T_CLOB;
    else if (mod < 4 && longest(r, i) > 4000)
        c->size = 32767;
}

// describe_column describes one column.
static void describe_column(Pg *pg, const PGresult *r, int i, Param *c) {
    int mod = PQfmod(r, i);
    Oid type = PQftype(r, i);
    switch (type) {
    case PG_NUMERIC:
    case PG_INT8:
    case PG_INT2:
    case PG_INT4:
    case PG_OID: describe_number(c, type, mod); break;
    case PG_FLOAT4: c->dty = T_IBFLOAT; break;
    case PG_FLOAT8: c->dty = T_IBDOUBLE; break;
    case PG_DATE: c->dty = T_DAT; break;
    case PG_TIMESTAMP:
        c->dty = mod == 0 ? T_DAT : T_TS;
        c->scale = (int8_t)(mod < 0 ? 6 : mod);
        break;
    case PG_TIMESTAMPTZ:
        c->dty = T_TSTZ;
        c->scale = (int8_t)(mod < 0 ? 6 : mod);
        break;
    case PG_INTERVAL:
        c->dty = T_IDS;
        c->prec = 9;
        c->scale = 6;
        break;
    case PG_BYTEA: describe_bytes(pg, r, i, c); break;
    default: describe_text(r, i, type, mod, c);
    }
}

// describe describes the columns of a result. A condition is no value in
// Oracle's SQL before 23ai.
int describe(Stmt *s, Err *e) {
    s->ncol = PQnfields(s->res);
    s->cols = xcalloc(sizeof(Param) * (size_t)(s->ncol + 1));
    for (int i = 0; i < s->ncol; i++) {
        Param *c = &s->cols[i];
        c->h = (Hdr){HANDLE_MAGIC, D_PARAM};
        c->nullok = 1;
        c->name = describe_name(s, PQfname(s->res, i));
        describe_column(s->svc->pg, s->res, i, c);
    }
    for (int i = 0; i < s->ncol; i++)
        if (PQftype(s->res, i) == PG_BOOL)
            return seterr(e, 923, "FROM keyword not found where expected (a condition is no column)");
    return OK;
}
