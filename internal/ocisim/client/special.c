// Statements that the library carries out itself: ALTER SESSION, SET
// TRANSACTION, COMMIT, ROLLBACK, SAVEPOINT.
#include "ocisim.h"
#include <ctype.h>
#include <strings.h>

// set_time_zone writes SET TIME ZONE for an offset or a name.
static void set_time_zone(Buf *b, const char *v) {
    if (*v == '+' || *v == '-')
        buf_fmt(b, "SET TIME ZONE INTERVAL '%s' HOUR TO MINUTE", v);
    else
        buf_fmt(b, "SET TIME ZONE '%s'", v);
}

// set_option sets one option of ALTER SESSION. The formats of dates and numbers
// and everything unknown have no effect.
static int set_option(Svc *svc, Err *e, const char *k, const char *v) {
    Buf b = {0};
    int rc = OK;
    if (!strcasecmp(k, "ISOLATION_LEVEL")) {
        buf_fmt(&b, "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL %s",
                strcasestr(v, "SERIAL") ? "REPEATABLE READ" : "READ COMMITTED");
    } else if (!strcasecmp(k, "CURRENT_SCHEMA")) {
        char *schema = lower(xstrdup(v));
        buf_fmt(&b, "SET search_path=%s,public,ocisim,pg_catalog", schema);
        free(schema);
        free(svc->ses->schema);
        svc->ses->schema = upper(xstrdup(v));
    } else if (!strcasecmp(k, "TIME_ZONE")) {
        set_time_zone(&b, v);
    } else if (!strcasecmp(k, "OCISIM_FAULT")) {
        faults_parse(svc->pg, v);
    } else if (!strcasecmp(k, "OCISIM_STATS")) {
        svc->pg->nstats = 0;
        svc->pg->rt_total = svc->pg->request_total = 0;
    }
    if (b.p)
        rc = pg_exec(svc->pg, e, b.p);
    free(b.p);
    return rc;
}

// next_option reads name = value at p. Returns what follows, NULL at the end.
static const char *next_option(const char *p, char *k, char *v, size_t size) {
    int n = 0;
    while (isspace((unsigned char)*p))
        p++;
    if (sscanf(p, "%63[A-Za-z0-9_]%n", k, &n) != 1)
        return NULL;
    p += n;
    while (isspace((unsigned char)*p) || *p == '=')
        p++;
    if (*p == '\'') {
        n = (int)strcspn(p + 1, "'");
        snprintf(v, size, "%.*s", n, p + 1);
        return p + 1 + n + (p[1 + n] == '\'');
    }
    n = (int)(!strcasecmp(k, "ISOLATION_LEVEL") ? strlen(p) : strcspn(p, " \t\r\n"));
    snprintf(v, size, "%.*s", n, p);
    return n ? p + n : NULL;
}

// alter_session sets options: ALTER SESSION SET a = 'b' c = d; and whether
// DBMS_TRANSACTION.COMMIT, the only COMMIT in PL/SQL that there is, may commit.
static int alter_session(Stmt *s, Err *e) {
    if (strcasestr(s->sql, "COMMIT IN PROCEDURE"))
        return pg_exec(s->svc->pg, e, strcasestr(s->sql, "DISABLE")
                           ? "SELECT set_config('ocisim.no_commit', 'yes', false)"
                           : "SELECT set_config('ocisim.no_commit', '', false)");
    const char *p = strcasestr(s->sql, "SET");
    char k[64], v[400];
    p = p ? p + 3 : NULL;
    while (p && (p = next_option(p, k, v, sizeof v)))
        if (set_option(s->svc, e, k, v))
            return ERR;
    return OK;
}

// set_transaction begins a read-only or serializable transaction. It must be
// the first statement of it.
static int set_transaction(Stmt *s, Err *e) {
    Pg *pg = s->svc->pg;
    int only = strcasestr(s->sql, "READ ONLY") != NULL, serial = strcasestr(s->sql, "SERIALIZABLE") != NULL;
    if (pg->in_txn)
        return seterr(e, 1453, "SET TRANSACTION must be first statement of transaction");
    if (!only && !serial)
        return OK;
    int rc = pg_exec(pg, e,
                     only ? "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
                          : "BEGIN ISOLATION LEVEL REPEATABLE READ");
    if (!rc)
        pg->in_txn = 1;
    return rc;
}

// special_run carries out a special statement.
int special_run(Stmt *s, Err *e) {
    Pg *pg = s->svc->pg;
    if (s->t.special == SP_ALTER_SESSION)
        return alter_session(s, e);
    if (s->t.special == SP_SET)
        return set_transaction(s, e);
    if (s->t.type == S_COMMIT)
        return txn_commit(pg, e);
    if (s->t.type == S_ROLLBACK && !strcasestr(s->sql, " TO "))
        return txn_rollback(pg, e);
    if (s->t.type == S_ROLLBACK && !pg->in_txn)
        return seterr(e, 1086, "savepoint never established in this session or is invalid");
    if (txn_begin(pg, e))
        return ERR;
    // A savepoint that does not exist must not break the transaction.
    int back = s->t.type == S_ROLLBACK;
    if (back)
        pg_run(pg, "SAVEPOINT ocisim_s");
    int rc = pg_exec(pg, e, s->sql);
    if (back && rc && !pg->dead)
        pg_run(pg, "ROLLBACK TO SAVEPOINT ocisim_s; RELEASE SAVEPOINT ocisim_s");
    return rc;
}
