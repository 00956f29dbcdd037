// Enqueue, of one message or of many: RAW payload, one consumer.
#include "ocisim.h"
#include <sys/random.h>

// enqueue_row enqueues one message on a connection and gives its id.
static int enqueue_row(Pg *pg, Err *e, PGconn *other, const char *queue, const Msg *m, const Raw *payload,
                       void **msgid) {
    static const char sql[] = "SELECT ocisim.aq_enq($1,$2,$3,$4,$5,$6,$7,$8,$9)";
    static const Oid types[] = {PG_TEXT, PG_BYTEA, PG_TEXT,  PG_INT4, PG_INT4,
                                PG_INT4, PG_TEXT,  PG_BYTEA, PG_BYTEA};
    static const int fmt[] = {0, 1, 0, 0, 0, 0, 0, 1, 1};
    unsigned char id[16];
    char priority[16], delay[16], expiration[16];
    if (getrandom(id, sizeof id, 0) != sizeof id)
        return seterr(e, 600, "internal error (getrandom)");
    snprintf(priority, sizeof priority, "%d", m->priority);
    snprintf(delay, sizeof delay, "%d", m->delay);
    snprintf(expiration, sizeof expiration, "%d", m->expiration);
    const char *v[] = {queue,
                       (char *)id,
                       m->corr.n ? m->corr.p : NULL,
                       priority,
                       delay,
                       expiration,
                       m->excq.n ? m->excq.p : NULL,
                       m->orig && m->orig->len ? (char *)m->orig->b : NULL,
                       payload ? (char *)payload->b : NULL};
    int len[] = {0, 16, 0, 0, 0, 0, 0, m->orig ? (int)m->orig->len : 0, payload ? (int)payload->len : 0};
    PGresult *r = other ? PQexecParams(other, sql, 9, types, v, len, fmt, 0)
                        : pg_params(pg, sql, 9, types, v, len, fmt);
    int rc = pg_ok(r) ? OK : pg_error(pg, e, r, S_INSERT);
    PQclear(r);
    if (!rc)
        raw_set((Raw **)msgid, id, sizeof id);
    return rc;
}

// Batch is what one call enqueues.
typedef struct {
    const char *queue;
    uint32_t *n;
    void **messages, **payloads, **ids;
} Batch;

// enqueue_all enqueues the messages; *n becomes the number that went in.
static int enqueue_all(Pg *pg, Err *e, PGconn *other, const Batch *b) {
    for (uint32_t i = 0; i < *b->n; i++) {
        if (enqueue_row(pg, e, other, b->queue, b->messages[i], b->payloads[i], &b->ids[i])) {
            *b->n = i;
            return ERR;
        }
    }
    return OK;
}

// enqueue carries out a call. Visibility IMMEDIATE commits by itself: inside a
// transaction on the second connection.
static int enqueue(Pg *pg, Err *e, const EnqOpt *o, const Batch *b) {
    int own = !pg->in_txn, immediate = o->visibility == AQ_IMMEDIATE;
    if (immediate && !own)
        return helper_conn(pg) ? seterr(e, 12541, "TNS:no listener") : enqueue_all(pg, e, pg->helper, b);
    if (own && txn_begin(pg, e))
        return ERR;
    if (!own)
        pg_run(pg, "SAVEPOINT ocisim_q");
    int rc = enqueue_all(pg, e, NULL, b);
    if (rc && !pg->dead) {
        pg_run(pg, own ? "ROLLBACK" : "ROLLBACK TO SAVEPOINT ocisim_q; RELEASE SAVEPOINT ocisim_q");
        if (own)
            txn_lost(pg);
    }
    if (!rc && !own)
        pg_run(pg, "RELEASE SAVEPOINT ocisim_q");
    if (!rc && own && immediate)
        rc = txn_commit(pg, e);
    return rc;
}

// enqueue_call is one round trip, whatever the number of messages.
static int enqueue_call(Svc *sv, Err *e, const EnqOpt *o, const Batch *b) {
    Call c;
    if (!sv->pg)
        return seterr(e, 3114, "not connected to ORACLE");
    if (call_begin(sv->pg, e, "aqenq", 1, &c)) {
        *b->n = 0;
        return call_end(sv->pg, e, &c, ERR);
    }
    return call_end(sv->pg, e, &c, enqueue(sv->pg, e, o, b));
}

// OCIAQEnq enqueues one message.
EXPORT int OCIAQEnq(void *sv, void *e, const char *qn, void *o, void *mp, void *tdo, void **pl, void **pi,
                    void **id, uint32_t fl) {
    uint32_t n = 1;
    Batch b = {qn, &n, &mp, pl, id};
    return enqueue_call(sv, e, o, &b);
}

// OCIAQEnqArray enqueues many.
EXPORT int OCIAQEnqArray(void *sv, void *e, const char *qn, void *o, uint32_t *n, void **mp, void *tdo,
                         void **pl, void **pi, void **ids, void *cx, void *cb, uint32_t fl) {
    Batch b = {qn, n, mp, pl, ids};
    return enqueue_call(sv, e, o, &b);
}
