// Transactions: begun by the first statement that needs one, ended by the
// driver. Attempts of dequeued messages are counted at rollback.
#include "ocisim.h"

// txn_lost forgets the transaction: it ended, or its connection did.
void txn_lost(Pg *pg) {
    pg->in_txn = pg->named = 0;
    pg->ndequeued = 0;
}

// txn_begin begins a transaction unless one is open.
int txn_begin(Pg *pg, Err *e) {
    if (pg->in_txn)
        return OK;
    int rc = pg_exec(pg, e, "BEGIN");
    if (!rc)
        pg->in_txn = 1;
    return rc;
}

// txn_commit commits, if there is anything to commit.
int txn_commit(Pg *pg, Err *e) {
    if (!pg->in_txn)
        return OK;
    PGresult *r = pg_query(pg, "COMMIT");
    int rc = OK, named = pg->named;
    txn_lost(pg);
    if (pg_ok(r) && !strcmp(PQcmdStatus(r), "COMMIT"))
        pg->named = named;
    if (!pg_ok(r))
        rc = pg_error(pg, e, r, S_COMMIT);
    else if (!strcmp(PQcmdStatus(r), "ROLLBACK"))
        rc = seterr(e, 2091, "transaction rolled back");
    PQclear(r);
    return rc;
}

// txn_rollback rolls back. The attempts of messages are counted by the second
// connection while their rows are still locked, so nobody reads a stale count.
int txn_rollback(Pg *pg, Err *e) {
    if (!pg->in_txn)
        return OK;
    int n = pg->ndequeued;
    if (n)
        aq_after_rollback(pg, "aq_failed");
    int rc = pg_exec(pg, e, "ROLLBACK");
    pg->in_txn = pg->named = 0;
    if (n && !rc)
        aq_after_rollback(pg, "aq_sweep");
    pg->ndequeued = 0;
    return rc;
}

// OCITransCommit commits: one round trip.
EXPORT int OCITransCommit(void *s, void *e, uint32_t fl) {
    Svc *v = s;
    Call c;
    if (!v->pg)
        return seterr(e, 3114, "not connected to ORACLE");
    if (call_begin(v->pg, e, "commit", 1, &c))
        return call_end(v->pg, e, &c, ERR);
    return call_end(v->pg, e, &c, txn_commit(v->pg, e));
}

// OCITransRollback rolls back: one round trip.
EXPORT int OCITransRollback(void *s, void *e, uint32_t fl) {
    Svc *v = s;
    Call c;
    if (!v->pg)
        return seterr(e, 3114, "not connected to ORACLE");
    if (call_begin(v->pg, e, "rollback", 1, &c))
        return call_end(v->pg, e, &c, ERR);
    return call_end(v->pg, e, &c, txn_rollback(v->pg, e));
}
