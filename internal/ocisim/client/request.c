// Requests to PostgreSQL: sent asynchronously, so that a wait honours the call
// timeout and OCIBreak can cancel it from another thread.
#include "ocisim.h"
#include <errno.h>
#include <poll.h>

// pg_ok says whether a result is one of success.
int pg_ok(const PGresult *r) {
    int s = PQresultStatus(r);
    return s == PGRES_COMMAND_OK || s == PGRES_TUPLES_OK || s == PGRES_EMPTY_QUERY || s == PGRES_SINGLE_TUPLE;
}

// pg_cancel asks the server to end the running request.
void pg_cancel(Pg *pg) {
    char b[256];
    PGcancel *c = PQgetCancel(pg->c);
    if (c) {
        PQcancel(c, b, sizeof b);
        PQfreeCancel(c);
    }
}

// await_input waits until a result can be read without blocking, cancelling
// the request when the call timeout is over.
static void await_input(Pg *pg, int64_t deadline) {
    while (PQisBusy(pg->c)) {
        struct pollfd p = {PQsocket(pg->c), POLLIN, 0};
        int wait = -1;
        if (deadline && !pg->timed_out) {
            int64_t left = deadline - now_ms();
            wait = left < 0 ? 0 : (int)left;
        }
        if (poll(&p, 1, wait) == 0 && deadline && !pg->timed_out) {
            pg->timed_out = 1;
            pg_cancel(pg);
            continue;
        }
        if (!PQconsumeInput(pg->c))
            return;
    }
}

// deadline_of is when the running call times out, 0 for never.
static int64_t deadline_of(const Pg *pg) {
    return pg->call_timeout ? now_ms() + pg->call_timeout : 0;
}

// check_alive notes a broken connection.
static void check_alive(Pg *pg) {
    if (PQstatus(pg->c) == CONNECTION_BAD)
        pg->dead = 1;
}

// pg_collect reads all results of a request and keeps the last, or the first
// that failed. NULL when nothing came.
PGresult *pg_collect(Pg *pg) {
    PGresult *last = NULL, *r;
    int64_t deadline = deadline_of(pg);
    PQflush(pg->c);
    pg->request_total++;
    for (;;) {
        await_input(pg, deadline);
        r = PQgetResult(pg->c);
        if (!r)
            break;
        if (last && !pg_ok(last)) {
            PQclear(r);
            continue;
        }
        PQclear(last);
        last = r;
        if (PQstatus(pg->c) == CONNECTION_BAD) {
            while ((r = PQgetResult(pg->c)))
                PQclear(r);
            break;
        }
    }
    check_alive(pg);
    return last;
}

// pg_query runs SQL, several statements if need be.
PGresult *pg_query(Pg *pg, const char *sql) {
    debug("query %s", sql);
    if (pg->dead || !PQsendQuery(pg->c, sql)) {
        check_alive(pg);
        return NULL;
    }
    return pg_collect(pg);
}

// pg_run runs SQL whose failure will show in what follows.
void pg_run(Pg *pg, const char *sql) {
    PQclear(pg_query(pg, sql));
}

// pg_exec runs SQL and reports its failure.
int pg_exec(Pg *pg, Err *e, const char *sql) {
    PGresult *r = pg_query(pg, sql);
    int rc = pg_ok(r) ? OK : pg_error(pg, e, r, S_UNKNOWN);
    PQclear(r);
    return rc;
}

// pg_params runs a statement with parameters.
PGresult *pg_params(Pg *pg, const char *sql, int n, const Oid *types, const char *const *v, const int *len,
                    const int *fmt) {
    debug("query with parameters %s", sql);
    if (pg->dead || !PQsendQueryParams(pg->c, sql, n, types, v, len, fmt, 0)) {
        check_alive(pg);
        return NULL;
    }
    return pg_collect(pg);
}

// pg_prepare prepares a statement under a name.
PGresult *pg_prepare(Pg *pg, const char *name, const char *sql, int n, const Oid *types) {
    debug("prepare %s: %s", name, sql);
    if (pg->dead || !PQsendPrepare(pg->c, name, sql, n, types)) {
        check_alive(pg);
        return NULL;
    }
    return pg_collect(pg);
}

// pipe_begin starts a pipeline: several statements, one exchange with the
// server. The first that fails skips the rest.
int pipe_begin(Pg *pg) {
    if (pg->dead || !PQenterPipelineMode(pg->c)) {
        check_alive(pg);
        return ERR;
    }
    return OK;
}

// pipe_sql adds a statement.
int pipe_sql(Pg *pg, const char *sql) {
    debug("pipe %s", sql);
    return PQsendQueryParams(pg->c, sql, 0, NULL, NULL, NULL, NULL, 0) ? OK : ERR;
}

// pipe_keep sorts one result of a pipeline. Returns 1 at the end.
static int pipe_keep(PGresult *r, int idx, PGresult **out, int from, int n, PGresult **err, int *erridx) {
    int status = PQresultStatus(r);
    if (!pg_ok(r) && status != PGRES_PIPELINE_SYNC && status != PGRES_PIPELINE_ABORTED && !*err) {
        *err = r;
        *erridx = idx;
        return 0;
    }
    if (pg_ok(r) && idx >= from && idx < from + n)
        out[idx - from] = r;
    else
        PQclear(r);
    return status == PGRES_PIPELINE_SYNC;
}

// pipe_end sends the pipeline and reads its results: those of the statements
// from, from+1, ... go to out, and the first failure with its number to err.
int pipe_end(Pg *pg, PGresult **out, int from, int n, PGresult **err, int *erridx) {
    int idx = 0, nulls = 0, done = 0;
    int64_t deadline = deadline_of(pg);
    *err = NULL;
    pg->request_total++;
    PQpipelineSync(pg->c);
    PQflush(pg->c);
    while (!done) {
        await_input(pg, deadline);
        PGresult *r = PQgetResult(pg->c);
        check_alive(pg);
        if (pg->dead) {
            if (r && !pg_ok(r) && !*err)
                *err = r;
            else
                PQclear(r);
            break;
        }
        if (!r) {
            done = ++nulls > 1;
            idx++;
            continue;
        }
        nulls = 0;
        done = pipe_keep(r, idx, out, from, n, err, erridx);
    }
    if (!pg->dead)
        PQexitPipelineMode(pg->c);
    return *err || pg->dead ? ERR : OK;
}
