// Prepared statements of a connection. The server infers the types of
// parameters first, from the text alone; then the types of the binds correct
// it where PostgreSQL would refuse what Oracle converts.
#include "ocisim.h"

// bind_type is PostgreSQL's type for a bind, 0 for one that fits any.
static Oid bind_type(uint16_t dty) {
    switch (dty) {
    case T_TSTZ:
    case T_TSLTZ: return PG_TIMESTAMPTZ;
    case T_TS:
    case T_ODT:
    case T_DAT: return PG_TIMESTAMP;
    case T_VNU:
    case T_INT:
    case T_UIN:
    case T_BDOUBLE:
    case T_BFLOAT: return PG_NUMERIC;
    case T_BIN:
    case T_LBI:
    case T_BLOB: return PG_BYTEA;
    case T_IDS:
    case T_IYM: return PG_INTERVAL;
    case T_CHR: return PG_TEXT;
    }
    return 0;
}

// fits says whether a value of a bind can be sent as an inferred type.
static int fits(uint16_t dty, Oid type) {
    switch (bind_type(dty)) {
    case PG_TIMESTAMP:
    case PG_TIMESTAMPTZ: return type == PG_TIMESTAMP || type == PG_TIMESTAMPTZ || type == PG_DATE;
    case PG_NUMERIC: return type == PG_NUMERIC || type == PG_INT8 || type == PG_FLOAT4 || type == PG_FLOAT8;
    case PG_BYTEA: return type == PG_BYTEA;
    case PG_INTERVAL: return type == PG_INTERVAL;
    }
    return 1;
}

// cache_key names a prepared statement: its text and the types of its binds.
static char *cache_key(const Stmt *s, const uint16_t *dty, int n) {
    Buf b = {0};
    buf_fmt(&b, "%s\n", s->t.sql);
    for (int i = 0; i < n; i++)
        buf_fmt(&b, "%d,", dty[i]);
    return b.p;
}

// cache_find finds a prepared statement and moves it to the front.
static PStmt *cache_find(Pg *pg, const char *key) {
    for (PStmt **q = &pg->prepared; *q; q = &(*q)->next) {
        PStmt *x = *q;
        if (strcmp(x->key, key))
            continue;
        *q = x->next;
        x->next = pg->prepared;
        pg->prepared = x;
        return x;
    }
    return NULL;
}

// prepared_known says whether a statement is prepared for binds of these types.
int prepared_known(Pg *pg, const Stmt *s, const uint16_t *dty) {
    char *key = cache_key(s, dty, s->t.nph - s->t.nout);
    int known = cache_find(pg, key) != NULL;
    free(key);
    return known;
}

// prepared_drop forgets a prepared statement.
void prepared_drop(Pg *pg, PStmt *x) {
    char b[64];
    snprintf(b, sizeof b, "DEALLOCATE %s", x->name);
    for (PStmt **q = &pg->prepared; *q; q = &(*q)->next) {
        if (*q == x) {
            *q = x->next;
            break;
        }
    }
    pg_run(pg, b);
    free(x->key);
    free(x->types);
    free(x);
    pg->nprepared--;
}

// prepare_guarded prepares under a new name. In a transaction a savepoint keeps
// a failure from breaking it. Returns the failed result, NULL on success.
static PGresult *prepare_guarded(Pg *pg, char *name, size_t size, const char *sql, int n, const Oid *types) {
    int guard = pg->in_txn && PQtransactionStatus(pg->c) == PQTRANS_INTRANS;
    char fresh[24];
    snprintf(fresh, sizeof fresh, "os%d", ++pg->prepared_no);
    if (guard)
        pg_run(pg, "SAVEPOINT ocisim_p");
    PGresult *r = pg_prepare(pg, fresh, sql, n, types);
    if (pg_ok(r)) {
        PQclear(r);
        r = NULL;
        snprintf(name, size, "%s", fresh);
    } else if (!r) {
        r = PQmakeEmptyPGresult(pg->c, PGRES_FATAL_ERROR);
    }
    if (guard && !pg->dead)
        pg_run(pg, r ? "ROLLBACK TO SAVEPOINT ocisim_p; RELEASE SAVEPOINT ocisim_p"
                     : "RELEASE SAVEPOINT ocisim_p");
    return r;
}

// infer_types asks which types the server inferred. Returns 1 when a bind does
// not fit its own; want then has what the binds want.
static int infer_types(Pg *pg, const char *name, int n, const uint16_t *dty, Oid *types, Oid *want) {
    int wrong = 0;
    if (!PQsendDescribePrepared(pg->c, name))
        return 0;
    PGresult *r = pg_collect(pg);
    for (int i = 0; i < n; i++) {
        types[i] = want[i] = i < PQnparams(r) ? PQparamtype(r, i) : PG_TEXT;
        if (!fits(dty[i], types[i])) {
            want[i] = bind_type(dty[i]);
            wrong = 1;
        }
    }
    PQclear(r);
    return wrong;
}

// prepare_typed prepares a statement for binds of these types.
static int prepare_typed(Pg *pg, Err *e, Stmt *s, int n, const uint16_t *dty, char *name, size_t size,
                         Oid *types) {
    PGresult *failed = prepare_guarded(pg, name, size, s->t.sql, 0, NULL), *r;
    Oid *want = xcalloc(sizeof(Oid) * (size_t)(n + 1));
    int rc = OK;
    if (failed) { // such as :t + INTERVAL '1' DAY: try the types of the binds
        for (int i = 0; i < n; i++)
            types[i] = bind_type(dty[i]);
        r = n && !pg->dead ? prepare_guarded(pg, name, size, s->t.sql, n, types) : failed;
        if (r)
            rc = pg_error(pg, e, failed, s->t.type);
        if (r != failed)
            PQclear(r);
        PQclear(failed);
    } else if (n && infer_types(pg, name, n, dty, types, want)) {
        r = prepare_guarded(pg, name, size, s->t.sql, n, want);
        if (!r)
            memcpy(types, want, sizeof(Oid) * (size_t)n);
        PQclear(r);
    }
    free(want);
    return rc;
}

// prepared_get gives the prepared statement for binds of these types.
PStmt *prepared_get(Pg *pg, Err *e, Stmt *s, const uint16_t *dty) {
    int n = s->t.nph - s->t.nout;
    char *key = cache_key(s, dty, n);
    PStmt *x = cache_find(pg, key);
    if (x) {
        free(key);
        return x;
    }
    x = xcalloc(sizeof *x);
    x->key = key;
    x->types = xcalloc(sizeof(Oid) * (size_t)(n + 1));
    if (prepare_typed(pg, e, s, n, dty, x->name, sizeof x->name, x->types)) {
        free(x->key);
        free(x->types);
        free(x);
        return NULL;
    }
    x->next = pg->prepared;
    pg->prepared = x;
    if (++pg->nprepared > MAX_PREPARED) {
        PStmt *last = pg->prepared;
        while (last->next)
            last = last->next;
        prepared_drop(pg, last);
    }
    return x;
}
