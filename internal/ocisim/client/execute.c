// Execution: one row of binds at a time, or an array in one pipeline. A
// statement that fails leaves the transaction as it was before it: a savepoint
// stands for Oracle's statement-level rollback.
#include "ocisim.h"

// Run is one execution: the binds in the order of parameters.
typedef struct {
    Stmt *s;
    Pg *pg;
    Err *e;
    int n; // parameters
    Bind **binds;
    uint16_t *dty;
    int *ph; // the placeholder of each
    const char **values;
} Run;

// run_refused judges the lengths of row it of the binds.
static int run_refused(Run *r, uint32_t it) {
    int after = 0, rc = OK;
    for (int i = 0; i < r->n && !rc; i++)
        rc = long_refused(&r->s->t, r->ph[i], r->binds[i], it, &after, r->e);
    return rc;
}

// run_values reads row it of the binds. A string for a RAW is hexadecimal.
static void run_values(Run *r, uint32_t it, const PStmt *ps) {
    for (int i = 0; i < r->n; i++) {
        Val v = bind_value(r->binds[i], it);
        int text = r->dty[i] == T_CHR || r->dty[i] == T_AFC;
        if (v.v && text && ps->types[i] == PG_BYTEA) {
            char *hex = NULL;
            if (asprintf(&hex, "\\x%s", v.v) < 0)
                abort();
            free(v.v);
            v.v = hex;
        }
        r->values[i] = v.v;
    }
}

// run_forget frees the values.
static void run_forget(Run *r) {
    for (int i = 0; i < r->n; i++) {
        free((char *)r->values[i]);
        r->values[i] = NULL;
    }
}

// run_start finds the binds of all placeholders.
static int run_start(Run *r, Stmt *s, Err *e) {
    size_t n = (size_t)(s->t.nph - s->t.nout) + 1;
    *r = (Run){.s = s, .pg = s->svc->pg, .e = e, .n = s->t.nph - s->t.nout};
    r->binds = xcalloc(sizeof(Bind *) * n);
    r->dty = xcalloc(sizeof(uint16_t) * n);
    r->ph = xcalloc(sizeof(int) * n);
    r->values = xcalloc(sizeof(char *) * n);
    for (int i = 0, k = 0; i < s->t.nph; i++) {
        if (s->t.isout[i])
            continue;
        Bind *b = bind_find(s, i);
        if (!b)
            return seterr(e, 1008, "not all variables bound (:%s)", s->t.ph[i]);
        r->binds[k] = b;
        r->ph[k] = i;
        r->dty[k++] = b->dty;
    }
    return OK;
}

// run_end frees what a run holds.
static void run_end(Run *r) {
    run_forget(r);
    free(r->binds);
    free(r->dty);
    free(r->ph);
    free(r->values);
}

// row_count is how many rows a result says were touched; a block counts as one.
static uint64_t row_count(const Stmt *s, PGresult *res) {
    return s->t.block ? 1 : strtoull(PQcmdTuples(res), NULL, 10);
}

// give_back returns what came out: columns of RETURNING, or what a block set.
static void give_back(Run *r, uint32_t it, const PGresult *res) {
    Stmt *s = r->s;
    for (int i = 0, column = 0; i < s->t.nph; i++) {
        Bind *b = bind_find(s, i);
        if (s->t.block && b && s->t.isset[i] && PQntuples(res))
            bind_return(b, it, res, 0, i);
        if (!s->t.isout[i])
            continue;
        if (b)
            b->rows_returned = (uint32_t)PQntuples(res);
        for (int row = 0; b && row < PQntuples(res); row++)
            bind_return(b, it, res, row, column);
        column++;
    }
}

// send_row runs the prepared statement between the savepoint or BEGIN before it
// and the release after it, in one exchange. NULL when nothing came.
static PGresult *send_row(Run *r, const PStmt *ps, int savepoint, int begin) {
    PGresult *res = NULL, *failed = NULL;
    int at = 0;
    if (pipe_begin(r->pg))
        return NULL;
    if (savepoint || begin)
        pipe_sql(r->pg, savepoint ? "SAVEPOINT ocisim_s" : "BEGIN");
    PQsendQueryPrepared(r->pg->c, ps->name, r->n, r->values, NULL, NULL, 0);
    if (savepoint)
        pipe_sql(r->pg, "RELEASE SAVEPOINT ocisim_s");
    if (pipe_end(r->pg, &res, savepoint || begin, 1, &failed, &at)) {
        PQclear(res);
        res = failed;
    }
    if (begin && !r->pg->dead)
        r->pg->in_txn = 1;
    return res;
}

// undo rolls back the statement that failed.
static void undo(Pg *pg) {
    if (!pg->dead && PQtransactionStatus(pg->c) == PQTRANS_INERROR)
        pg_run(pg, "ROLLBACK TO SAVEPOINT ocisim_s; RELEASE SAVEPOINT ocisim_s");
}

// is_stale says that a table changed under a prepared statement.
static int is_stale(const PGresult *res) {
    const char *state = res ? PQresultErrorField(res, PG_DIAG_SQLSTATE) : NULL;
    const char *message = res ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    return state && message && !strcmp(state, "0A000") && strstr(message, "cached plan");
}

// execute_prepared prepares and runs one row, again when the plan was stale.
static PGresult *execute_prepared(Run *r, uint32_t it, int begin, int *rc) {
    int savepoint = r->pg->in_txn;
    for (int again = 0;; again++) {
        PStmt *ps = prepared_get(r->pg, r->e, r->s, r->dty);
        if (!ps) {
            *rc = ERR;
            return NULL;
        }
        run_forget(r);
        run_values(r, it, ps);
        PGresult *res = send_row(r, ps, savepoint, begin && !savepoint);
        if (again || !is_stale(res))
            return res;
        undo(r->pg);
        prepared_drop(r->pg, ps);
        PQclear(res);
    }
}

// execute_row executes row it of the binds. The result of a query is kept.
static int execute_row(Stmt *s, Err *e, uint32_t it, int keep, int begin) {
    Run r;
    PGresult *res = NULL;
    int rc = run_start(&r, s, e);
    if (!rc)
        rc = run_refused(&r, it);
    if (!rc && s->t.block)
        rc = block_create(r.pg, e, s, r.dty);
    if (!rc)
        res = s->t.ddl ? pg_query(r.pg, s->t.sql) : execute_prepared(&r, it, begin, &rc);
    if (!rc && !pg_ok(res))
        rc = pg_error(r.pg, e, res, s->t.type);
    if (rc) {
        if (!s->t.ddl)
            undo(r.pg);
    } else {
        uint64_t n = row_count(s, res);
        if (s->rowcounts && it < s->nrowcounts)
            s->rowcounts[it] = n;
        s->rows = keep ? 0 : s->rows + n;
        give_back(&r, it, res);
        if (keep) {
            s->res = res;
            res = NULL;
        }
    }
    PQclear(res);
    run_end(&r);
    return rc;
}

// send_rows runs the rows [0, n) of an array under one savepoint. On failure
// *bad is the row that failed.
static int send_rows(Run *r, const PStmt *ps, uint32_t n, PGresult **res, uint32_t *bad) {
    PGresult *failed = NULL;
    int at = 0;
    *bad = 0;
    if (pipe_begin(r->pg))
        return pg_error(r->pg, r->e, NULL, S_UNKNOWN);
    pipe_sql(r->pg, "SAVEPOINT ocisim_s");
    for (uint32_t i = 0; i < n; i++) {
        run_values(r, i, ps);
        PQsendQueryPrepared(r->pg->c, ps->name, r->n, r->values, NULL, NULL, 0);
        run_forget(r);
    }
    pipe_sql(r->pg, "RELEASE SAVEPOINT ocisim_s");
    if (!pipe_end(r->pg, res, 1, (int)n, &failed, &at))
        return OK;
    pg_error(r->pg, r->e, failed, r->s->t.type);
    PQclear(failed);
    *bad = at > 0 ? (uint32_t)at - 1 : 0;
    r->e->rowoff = (int32_t)*bad;
    if (!r->pg->dead)
        pg_run(r->pg, "ROLLBACK TO SAVEPOINT ocisim_s; RELEASE SAVEPOINT ocisim_s");
    return ERR;
}

// execute_array executes array DML in one pipeline. As in Oracle the rows
// before the one that failed stay: they are sent again.
static int execute_array(Stmt *s, Err *e, uint32_t n) {
    Run r;
    int rc = run_start(&r, s, e);
    for (uint32_t i = 0; i < n && !rc; i++)
        rc = run_refused(&r, i);
    PStmt *ps = rc ? NULL : prepared_get(r.pg, e, s, r.dty);
    PGresult **res = xcalloc(sizeof(PGresult *) * n);
    uint32_t upto = ps ? n : 0, bad = 0;
    if (!ps)
        rc = ERR;
    for (int pass = 0; pass < 2 && upto; pass++) {
        Err *report = e, ignored = {0};
        r.e = pass ? &ignored : report;
        memset(res, 0, sizeof(PGresult *) * n);
        int failed = send_rows(&r, ps, upto, res, &bad);
        for (uint32_t i = 0; i < upto; i++) {
            uint64_t count = failed ? 0 : strtoull(PQcmdTuples(res[i]), NULL, 10);
            s->rows += count;
            if (s->rowcounts)
                s->rowcounts[i] = count;
            PQclear(res[i]);
        }
        if (!failed)
            break;
        rc = ERR;
        upto = r.pg->dead ? 0 : bad;
    }
    free(res);
    run_end(&r);
    return rc;
}

// keep_error adds the error of row i to the batch.
static void keep_error(Stmt *s, Err *e, uint32_t i) {
    e->batch = xrealloc(e->batch, sizeof(Err) * (s->nerrors + 1));
    Err *x = &e->batch[s->nerrors++];
    *x = *e;
    x->batch = NULL;
    x->nbatch = 0;
    x->rowoff = (int32_t)i;
    e->nbatch = s->nerrors;
}

// execute_rows executes n rows, one by one where they may not share a fate.
static int execute_rows(Stmt *s, Err *e, uint32_t n, uint32_t mode, int begin) {
    int batch = (mode & EXEC_BATCH_ERRORS) != 0, rc = OK;
    if (n > 1 && !batch && !s->t.nout && !s->t.block)
        return execute_array(s, e, n);
    for (uint32_t i = 0; i < n && !rc; i++) {
        rc = execute_row(s, e, i, s->t.type == S_SELECT, begin);
        if (!rc)
            continue;
        if (batch && !s->svc->pg->dead) {
            keep_error(s, e, i);
            rc = OK;
        } else {
            e->rowoff = (int32_t)i;
        }
    }
    return rc;
}

// first_rows fetches what the client of Oracle would prefetch from a cursor.
static int first_rows(Stmt *s, Err *e) {
    Pg *pg = s->svc->pg;
    char b[64];
    PQclear(s->res);
    s->cur = s->t.cursor;
    s->cur_eof = 0;
    snprintf(b, sizeof b, "FETCH %d FROM ocisim_c%d", s->prefetch, s->cur);
    pg_run(pg, "SAVEPOINT ocisim_s");
    s->res = pg_query(pg, b);
    if (pg_ok(s->res)) {
        pg_run(pg, "RELEASE SAVEPOINT ocisim_s");
        return OK;
    }
    int rc = pg_error(pg, e, s->res, S_SELECT);
    PQclear(s->res);
    s->res = NULL;
    s->cur = 0;
    if (!pg->dead)
        pg_run(pg, "ROLLBACK TO SAVEPOINT ocisim_s; RELEASE SAVEPOINT ocisim_s");
    return rc;
}

// execute_in_txn executes a statement, beginning a transaction where it needs
// one, and committing where the driver asks for it.
static int execute_in_txn(Stmt *s, Err *e, uint32_t iters, uint32_t mode) {
    Pg *pg = s->svc->pg;
    int query = s->t.type == S_SELECT, commit = (mode & EXEC_COMMIT_ON_SUCCESS) != 0;
    uint32_t n = query || !iters ? 1 : iters;
    int begin = !pg->in_txn && (!query || s->t.for_update) && (!commit || n > 1 || s->t.cursor || s->t.block);
    if (begin && (n > 1 || s->t.lock_wait || s->t.block) && txn_begin(pg, e))
        return ERR;
    if (s->t.lock_wait && pg->in_txn) {
        char b[64];
        snprintf(b, sizeof b, "SET LOCAL lock_timeout='%dms'",
                 s->t.lock_wait > 1 ? (s->t.lock_wait - 1) * 1000 : 1);
        pg_run(pg, b);
    }
    int rc = execute_rows(s, e, n, mode, begin);
    if (rc && begin && n == 1 && !pg->dead && pg->in_txn) {
        pg_run(pg, "ROLLBACK");
        txn_lost(pg);
    }
    if (!rc && (commit || s->t.commit_after) && pg->in_txn && !s->t.cursor)
        rc = txn_commit(pg, e);
    if (!rc && s->t.cursor)
        rc = first_rows(s, e);
    if (s->t.lock_wait && pg->in_txn && !pg->dead)
        pg_run(pg, "SET LOCAL lock_timeout=0");
    return rc;
}

// execute_waiting executes a block that takes messages, again as long as it waits for
// the first of them.
static int execute_waiting(Stmt *s, Err *e, uint32_t mode) {
    Pg *pg = s->svc->pg;
    int64_t begun = now_ms();
    int rc;
    do {
        block_begins(pg);
        rc = execute_in_txn(s, e, 1, mode);
    } while (rc && e->code == 25228 && *pg->waits_for && !(rc = block_waits(pg, e, begun)));
    if (!rc)
        block_took(pg);
    return rc;
}

// reset prepares a statement for its next execution.
static void reset(Stmt *s, Err *e, uint32_t iters, uint32_t mode) {
    stmt_clear(s);
    s->rows = 0;
    s->nerrors = 0;
    e->nbatch = 0;
    free(s->rowcounts);
    s->rowcounts = NULL;
    s->nrowcounts = 0;
    if (mode & EXEC_ARRAY_DML_ROWCOUNTS) {
        s->nrowcounts = iters;
        s->rowcounts = xcalloc(sizeof(uint64_t) * (iters + 1));
    }
}

// compiled says whether the package that was made last has no errors.
static int compiled(Pg *pg) {
    PGresult *r = pg_query(pg, "SELECT current_setting('ocisim.compiled', true)");
    int yes = pg_ok(r) && PQntuples(r) == 1 && strcmp(PQgetvalue(r, 0, 0), "no");
    PQclear(r);
    return yes;
}

// execute carries out a statement of any kind.
static int execute(Stmt *s, Err *e, uint32_t iters, uint32_t mode) {
    Pg *pg = s->svc->pg;
    if (s->t.bad)
        return seterr(e, s->t.bad, "%s (ocisim strict)", s->t.badmsg);
    if (strcasestr(s->sql, "v$mystat") || strcasestr(s->sql, "ocisim.stat"))
        stats_publish(pg);
    if (s->t.special)
        return special_run(s, e);
    if (s->t.ddl) {
        if (txn_commit(pg, e) || (s->t.package_body && package_body_run(s, e)))
            return ERR;
        int rc = execute_row(s, e, 0, 0, 0);
        if (!rc && s->t.package_body && !compiled(pg)) {
            seterr(e, 24344, "success with compilation error");
            return WITH_INFO;
        }
        return rc;
    }
    if (mode & (EXEC_DESCRIBE_ONLY | EXEC_PARSE_ONLY)) {
        uint16_t *dty = xcalloc(sizeof(uint16_t) * (size_t)(s->t.nph + 1));
        int ok = s->t.block || prepared_get(pg, e, s, dty);
        free(dty);
        return ok ? OK : ERR;
    }
    int rc = s->t.dequeues ? execute_waiting(s, e, mode) : execute_in_txn(s, e, iters, mode);
    if (!rc && s->t.type == S_SELECT) {
        rc = describe(s, e);
        s->rt_left = s->prefetch;
    }
    if (!rc && s->nerrors) {
        seterr(e, 24381, "error(s) in array DML");
        rc = WITH_INFO;
    }
    return rc;
}

// OCIStmtExecute executes a statement: one round trip, however many rows.
EXPORT int OCIStmtExecute(void *sv, void *st, void *ev, uint32_t iters, uint32_t rowoff, const void *si,
                          void *so, uint32_t mode) {
    Stmt *s = st;
    Call c;
    s->svc = sv;
    Pg *pg = s->svc->pg;
    if (!pg)
        return seterr(ev, 3114, "not connected to ORACLE");
    const char *op = s->t.dequeues && !s->t.commit_after ? "aqdeq" : "execute";
    if (call_begin(pg, ev, op, 1, &c))
        return call_end(pg, ev, &c, ERR);
    names_send(pg);
    reset(s, ev, iters, mode);
    return call_end(pg, ev, &c, execute(s, ev, iters, mode));
}

// next_rows fetches more rows of a cursor. Returns NO_DATA at the end.
static int next_rows(Stmt *s, Err *e, int n) {
    char b[64];
    if (!s->cur || s->cur_eof)
        return NO_DATA;
    snprintf(b, sizeof b, "FETCH %d FROM ocisim_c%d", n, s->cur);
    PQclear(s->res);
    s->row = 0;
    s->res = pg_query(s->svc->pg, b);
    if (!pg_ok(s->res)) {
        s->cur = 0;
        return pg_error(s->svc->pg, e, s->res, S_SELECT);
    }
    s->cur_eof = PQntuples(s->res) < n;
    return PQntuples(s->res) ? OK : NO_DATA;
}

// OCIStmtFetch2 fetches rows: a round trip when the prefetched ones are used up.
EXPORT int OCIStmtFetch2(void *st, void *ev, uint32_t nrows, uint16_t orient, int32_t off, uint32_t mode) {
    Stmt *s = st;
    Pg *pg = s->svc->pg;
    Call c;
    int n = (int)nrows, k = 0, rc = OK, trip = 0;
    if (!s->res)
        return seterr(ev, 1002, "fetch out of sequence");
    if (s->row + n > s->rt_left && (s->cur || s->rt_left <= PQntuples(s->res))) {
        trip = 1;
        s->rt_left += n;
    }
    if (call_begin(pg, ev, "fetch", trip, &c))
        return call_end(pg, ev, &c, ERR);
    for (; k < n; k++, s->row++) {
        if (s->row >= PQntuples(s->res) && (rc = next_rows(s, ev, n - k)))
            break;
        if ((rc = define_row(s, ev, s->row, k)))
            break;
    }
    if (rc == ERR)
        return call_end(pg, ev, &c, ERR);
    s->fetched = k;
    s->rows += (uint64_t)k;
    return call_end(pg, ev, &c, k < n ? NO_DATA : OK);
}
