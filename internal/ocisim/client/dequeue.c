// Dequeue, of one message or of many. A message is a row that the transaction
// locks and deletes. While there is none the session waits outside any
// transaction for a notification, for the time a delayed message is due, or for
// the next look round: a consumer that crashed notifies nobody.
#include "ocisim.h"
#include <poll.h>

// LOOK_ROUND_MS is how long a wait lasts without a look at the queue, and
// IN_TXN_MS inside a transaction, where notifications do not arrive.
enum { LOOK_ROUND_MS = 250, IN_TXN_MS = 20 };

// Dequeue is one call.
typedef struct {
    Pg *pg;
    Err *e;
    const char *queue;
    const DeqOpt *o;
    uint32_t want;
    int own; // no transaction was open
    int64_t end, timeout;
    PGresult *res;
} Dequeue;

// aq_after_rollback calls a function with the ids of the messages that the
// transaction had dequeued, on the second connection: what it does is visible
// before the locks go away, and stays.
int aq_after_rollback(Pg *pg, const char *function) {
    Buf b = {0};
    if (helper_conn(pg))
        return ERR;
    buf_fmt(&b, "SELECT ocisim.%s(ARRAY[", function);
    for (int i = 0; i < pg->ndequeued; i++) {
        buf_str(&b, i ? ",'\\x" : "'\\x");
        for (int k = 0; k < 16; k++)
            buf_fmt(&b, "%02x", pg->dequeued[i][k]);
        buf_str(&b, "'");
    }
    buf_str(&b, "]::bytea[])");
    PGresult *r = PQexec(pg->helper, b.p);
    int rc = pg_ok(r) ? OK : ERR;
    if (rc)
        debug("%s: %s", function, PQresultErrorMessage(r));
    PQclear(r);
    free(b.p);
    return rc;
}

// consumer is whose messages are asked for, NULL where there is but one.
static const char *consumer(const Dequeue *d) { return d->o->consumer.n ? d->o->consumer.p : NULL; }

// ready_in asks how many milliseconds it takes until there may be a message,
// without locks: 0 = now.
static int ready_in(Dequeue *d, int64_t *ms) {
    static const Oid types[] = {PG_TEXT, PG_TEXT, PG_BYTEA, PG_TEXT};
    static const int fmt[] = {0, 0, 1, 0};
    const char *v[] = {d->queue, d->o->corr.n ? d->o->corr.p : NULL,
                       d->o->msgid ? (char *)d->o->msgid->b : NULL, consumer(d)};
    int len[] = {0, 0, d->o->msgid ? (int)d->o->msgid->len : 0, 0};
    PGresult *r = pg_params(d->pg, "SELECT ocisim.aq_ready($1,$2,$3,$4)", 4, types, v, len, fmt);
    int rc = pg_ok(r) ? OK : pg_error(d->pg, d->e, r, S_SELECT);
    if (!rc)
        *ms = atoll(PQgetvalue(r, 0, 0));
    PQclear(r);
    return rc;
}

// take locks and removes what is there; d->res stays NULL when nothing is.
static int take(Dequeue *d) {
    static const Oid types[] = {PG_TEXT, PG_INT4, PG_TEXT, PG_BYTEA, PG_INT4, PG_TEXT};
    static const int fmt[] = {0, 0, 0, 1, 0, 0};
    Pg *pg = d->pg;
    char mode[12], want[12];
    snprintf(mode, sizeof mode, "%u", d->o->mode);
    snprintf(want, sizeof want, "%u", d->want);
    const char *v[] = {d->queue, mode, d->o->corr.n ? d->o->corr.p : NULL,
                       d->o->msgid ? (char *)d->o->msgid->b : NULL, want, consumer(d)};
    int len[] = {0, 0, 0, d->o->msgid ? (int)d->o->msgid->len : 0, 0, 0};
    if (d->own && txn_begin(pg, d->e))
        return ERR;
    if (!d->own)
        pg_run(pg, "SAVEPOINT ocisim_q");
    PGresult *r = pg_params(pg, "SELECT * FROM ocisim.aq_deq($1,$2,$3,$4,$5,$6)", 6, types, v, len, fmt);
    int rc = pg_ok(r) ? OK : pg_error(pg, d->e, r, S_SELECT);
    int got = !rc && PQntuples(r) > 0;
    if (!d->own && !pg->dead)
        pg_run(pg, rc ? "ROLLBACK TO SAVEPOINT ocisim_q; RELEASE SAVEPOINT ocisim_q"
                      : "RELEASE SAVEPOINT ocisim_q");
    if (d->own && !got && !pg->dead) {
        pg_run(pg, "ROLLBACK");
        pg->in_txn = 0;
    }
    if (got)
        d->res = r;
    else
        PQclear(r);
    return rc;
}

// must_end says why the wait is over, if it is.
static int must_end(Dequeue *d) {
    int64_t now = now_ms();
    if (is_broken(d->pg))
        return seterr(d->e, 1013, "user requested cancel of current operation");
    if (now >= d->timeout)
        return seterr(d->e, 3156, "OCI call timed out");
    if (now >= d->end)
        return d->o->msgid
                   ? seterr(d->e, 25263, "no message in queue %s with message ID", d->queue)
                   : seterr(d->e, 25228, "timeout or end-of-fetch during message dequeue from %s", d->queue);
    return OK;
}

// wait_some waits for a notification about the queue, at most ms. It wakes at
// least every 20 ms to see OCIBreak, without asking the server anything.
static int wait_some(Dequeue *d, int64_t ms) {
    int64_t until = now_ms() + ms;
    Pg *pg = d->pg;
    while (!notifications(pg, d->queue)) {
        int64_t left = until - now_ms();
        if (PQstatus(pg->c) == CONNECTION_BAD) {
            pg->dead = 1;
            return pg_error(pg, d->e, NULL, S_UNKNOWN);
        }
        if (left <= 0 || is_broken(pg) || now_ms() >= d->end || now_ms() >= d->timeout)
            return OK;
        struct pollfd p = {PQsocket(pg->c), POLLIN, 0};
        poll(&p, 1, (int)(left < 20 ? left : 20));
    }
    return OK;
}

// await_message takes messages, waiting for them as long as the call may.
static int await_message(Dequeue *d) {
    for (int round = 0;; round++) {
        int64_t ms = 0;
        if (d->own && round && ready_in(d, &ms))
            return ERR;
        if (ms == 0 && take(d))
            return ERR;
        if (d->res)
            return OK;
        if (must_end(d))
            return ERR;
        if (d->own && !d->pg->listening) { // and look again: a message may have come before
            pg_run(d->pg, "LISTEN ocisim_aq");
            d->pg->listening = 1;
            continue;
        }
        int64_t longest = d->own ? LOOK_ROUND_MS : IN_TXN_MS;
        if (wait_some(d, ms > 0 && ms < longest ? ms : longest))
            return ERR;
    }
}

// remember notes a message, for its attempts to be counted at rollback.
static void remember(Pg *pg, const unsigned char *id) {
    if (pg->ndequeued == pg->cap_dequeued) {
        pg->cap_dequeued = pg->cap_dequeued ? pg->cap_dequeued * 2 : 16;
        pg->dequeued = xrealloc(pg->dequeued, 16 * (size_t)pg->cap_dequeued);
    }
    memcpy(pg->dequeued[pg->ndequeued++], id, 16);
}

// block_begins forgets what the block before has taken.
void block_begins(Pg *pg) {
    pg->ntook = 0;
    *pg->waits_for = 0;
}

// block_notice reads what DBMS_AQ.DEQUEUE says: that it took a message, or found none.
void block_notice(Pg *pg, const char *text) {
    static const char took[] = "ocisim took ", waits[] = "ocisim waits ";
    if (!strncmp(text, took, sizeof took - 1) && pg->ntook < MAX_TOOK) {
        for (int i = 0; i < 16; i++)
            sscanf(text + sizeof took - 1 + 2 * i, "%2hhx", &pg->took[pg->ntook][i]);
        pg->ntook++;
    } else if (!strncmp(text, waits, sizeof waits - 1)) {
        int seconds = 0;
        sscanf(text + sizeof waits - 1, "%d %139s", &seconds, pg->waits_for);
        pg->waits_ms = 1000LL * seconds;
    }
}

// block_took remembers what a block has taken.
void block_took(Pg *pg) {
    for (int i = 0; i < pg->ntook; i++)
        remember(pg, pg->took[i]);
}

// block_waits waits until a block that has found nothing is to look again. What ends
// the wait is its error.
int block_waits(Pg *pg, Err *e, int64_t begun) {
    DeqOpt none = {0};
    Dequeue d = {.pg = pg, .e = e, .queue = pg->waits_for, .o = &none, .own = !pg->in_txn};
    int64_t ms = 0, longest = d.own ? LOOK_ROUND_MS : IN_TXN_MS;
    d.end = pg->waits_ms < 0 ? INT64_MAX : begun + pg->waits_ms;
    d.timeout = pg->call_timeout ? begun + pg->call_timeout : INT64_MAX;
    if (must_end(&d))
        return ERR;
    if (d.own && !pg->listening) {
        pg_run(pg, "LISTEN ocisim_aq");
        pg->listening = 1;
        return OK;
    }
    do {
        if (wait_some(&d, ms > 0 && ms < longest ? ms : longest) || must_end(&d))
            return ERR;
        if (d.own && ready_in(&d, &ms))
            return ERR;
    } while (d.own && ms > 0);
    return OK;
}

// raw_field reads a bytea of a row into a Raw; NULL is empty. Returns whether
// there was one.
static int raw_field(const PGresult *r, int row, int col, Raw **to) {
    size_t n = 0;
    if (PQgetisnull(r, row, col)) {
        raw_set(to, "", 0);
        return 0;
    }
    unsigned char *b = PQunescapeBytea((unsigned char *)PQgetvalue(r, row, col), &n);
    raw_set(to, b, (uint32_t)n);
    PQfreemem(b);
    return 1;
}

// give_message copies row i into the caller's message.
static void give_message(const PGresult *r, int i, Msg *m, void **payload, void *ind, void **id) {
    DateTime t;
    raw_field(r, i, 0, (Raw **)id);
    str_set(&m->corr, PQgetvalue(r, i, 1), (uint32_t)PQgetlength(r, i, 1));
    m->priority = atoi(PQgetvalue(r, i, 2));
    m->delay = atoi(PQgetvalue(r, i, 3));
    m->expiration = atoi(PQgetvalue(r, i, 4));
    ts_parse(PQgetvalue(r, i, 5), &t);
    m->enq = (OciDate){t.year, t.mon, t.day, t.hh, t.mm, t.ss};
    m->state = (uint32_t)atoi(PQgetvalue(r, i, 6));
    str_set(&m->excq, PQgetvalue(r, i, 7), (uint32_t)PQgetlength(r, i, 7));
    if (!PQgetisnull(r, i, 8))
        raw_field(r, i, 8, &m->orig);
    int there = raw_field(r, i, 9, (Raw **)payload);
    if (ind)
        *(int16_t *)ind = there ? 0 : -1;
    m->attempts = atoi(PQgetvalue(r, i, 10));
    m->delivery = AQ_PERSISTENT;
}

// dequeue carries out a call.
static int dequeue(Dequeue *d, uint32_t *n, void **mp, void **pl, void **pi, void **ids) {
    int immediate = d->o->vis == AQ_IMMEDIATE, rc = await_message(d);
    if (rc)
        return rc;
    *n = (uint32_t)PQntuples(d->res);
    for (uint32_t i = 0; i < *n; i++) {
        give_message(d->res, (int)i, mp[i], &pl[i], pi ? pi[i] : NULL, &ids[i]);
        if (d->o->mode >= AQ_REMOVE && !immediate)
            remember(d->pg, ((Raw *)ids[i])->b);
    }
    PQclear(d->res);
    return d->own && (immediate || d->o->mode == AQ_BROWSE) ? txn_commit(d->pg, d->e) : OK;
}

// dequeue_call is one round trip, however long it waits.
static int dequeue_call(Svc *sv, Err *e, const char *qn, const DeqOpt *o, uint32_t *n, void **mp, void **pl,
                        void **pi, void **ids) {
    Pg *pg = sv->pg;
    Call c;
    Dequeue d = {.pg = pg, .e = e, .queue = qn, .o = o, .want = *n};
    *n = 0;
    if (!pg)
        return seterr(e, 3114, "not connected to ORACLE");
    if (call_begin(pg, e, "aqdeq", 1, &c))
        return call_end(pg, e, &c, ERR);
    d.own = !pg->in_txn;
    d.end = o->wait == (uint32_t)-1 ? INT64_MAX : now_ms() + 1000LL * o->wait;
    d.timeout = pg->call_timeout ? now_ms() + pg->call_timeout : INT64_MAX;
    return call_end(pg, e, &c, dequeue(&d, n, mp, pl, pi, ids));
}

// OCIAQDeq dequeues one message.
EXPORT int OCIAQDeq(void *sv, void *e, const char *qn, void *o, void *mp, void *tdo, void **pl, void **pi,
                    void **id, uint32_t fl) {
    uint32_t n = 1;
    return dequeue_call(sv, e, qn, o, &n, &mp, pl, pi, id);
}

// OCIAQDeqArray dequeues up to *n.
EXPORT int OCIAQDeqArray(void *sv, void *e, const char *qn, void *o, uint32_t *n, void **mp, void *tdo,
                         void **pl, void **pi, void **ids, void *cx, void *cb, uint32_t fl) {
    return dequeue_call(sv, e, qn, o, n, mp, pl, pi, ids);
}
