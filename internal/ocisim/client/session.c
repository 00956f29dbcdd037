// Standalone sessions: attach, begin, end; ping, break, versions; what the
// driver keeps on a session, and attributes.
#include "ocisim.h"

// OCIServerAttach remembers the address; the connection comes with the session.
EXPORT int OCIServerAttach(void *h, void *e, const char *dsn, int32_t n, uint32_t m) {
    Server *s = h;
    s->dsn = dsn ? xstrndup(dsn, n) : xstrdup("");
    return OK;
}

// OCIServerDetach does nothing: the connection went with the session.
EXPORT int OCIServerDetach(void *h, void *e, uint32_t m) {
    return OK;
}

// OCISessionBegin connects.
EXPORT int OCISessionBegin(void *sv, void *e, void *us, uint32_t cred, uint32_t m) {
    Svc *v = sv;
    Session *s = us;
    Pg *pg = pg_open(v->srv->dsn, s->user, s->pass, e);
    if (!pg)
        return ERR;
    v->pg = v->srv->pg = s->pg = pg;
    v->ses = s;
    return OK;
}

// OCISessionEnd disconnects; the server rolls back what is open.
EXPORT int OCISessionEnd(void *sv, void *e, void *us, uint32_t m) {
    Svc *v = sv;
    pg_close(v->pg);
    v->pg = NULL;
    if (v->srv)
        v->srv->pg = NULL;
    ((Session *)us)->pg = NULL;
    return OK;
}

// OCIPing asks the server for nothing: one round trip.
EXPORT int OCIPing(void *s, void *e, uint32_t m) {
    Svc *v = s;
    Call c;
    if (call_begin(v->pg, e, "ping", 1, &c))
        return call_end(v->pg, e, &c, ERR);
    PGresult *r = pg_query(v->pg, "");
    int rc = pg_ok(r) ? OK : pg_error(v->pg, e, r, 0);
    PQclear(r);
    return call_end(v->pg, e, &c, rc);
}

// OCIBreak ends the running call of a session with ORA-01013, if one runs.
EXPORT int OCIBreak(void *s, void *e) {
    Pg *pg = ((Hdr *)s)->type == H_SVC ? ((Svc *)s)->pg : ((Server *)s)->pg;
    if (!pg)
        return OK;
    pthread_mutex_lock(&pg->mu);
    if (pg->in_call) {
        pg->brk = 1;
        pg_cancel(pg); // under the lock: it must not reach the session's next call
    }
    pthread_mutex_unlock(&pg->mu);
    return OK;
}

// OCIServerRelease2 says plainly what this is.
EXPORT int OCIServerRelease2(void *s, void *e, char *b, uint32_t n, uint8_t ht, uint32_t *ver,
                             uint32_t mode) {
    if (b && n)
        snprintf(b, n, "Oracle Database 23ai Free Release 23.0.0.0.0 - ocisim stand-in on PostgreSQL");
    *ver = (23u << 24) | (6u << 16);
    return OK;
}

// OCIServerRelease is the older form.
EXPORT int OCIServerRelease(void *s, void *e, char *b, uint32_t n, uint8_t ht, uint32_t *ver) {
    return OCIServerRelease2(s, e, b, n, ht, ver, 0);
}

// OCIContextGetValue reads what the driver keeps on a session.
EXPORT int OCIContextGetValue(void *h, void *e, const char *k, uint8_t kl, void **v) {
    *v = NULL;
    for (KV *x = ((Session *)h)->kv; x; x = x->next)
        if (strlen(x->k) == kl && !memcmp(x->k, k, kl))
            *v = x->v;
    return OK;
}

// OCIContextSetValue keeps a value, such as the time of last use.
EXPORT int OCIContextSetValue(void *h, void *e, uint16_t dur, const char *k, uint8_t kl, void *v) {
    Session *s = h;
    for (KV *x = s->kv; x; x = x->next)
        if (strlen(x->k) == kl && !memcmp(x->k, k, kl)) {
            x->v = v;
            return OK;
        }
    KV *n = xcalloc(sizeof *n);
    n->k = xstrndup(k, kl);
    n->v = v;
    n->next = s->kv;
    s->kv = n;
    return OK;
}

// svc_attr_get reads an attribute of a service context.
static int svc_attr_get(Svc *v, void *p, uint32_t *sz, uint32_t a, void *e) {
    switch (a) {
    case A_SESSION: RETURN_ATTR(void *, v->ses);
    case A_SERVER: RETURN_ATTR(void *, v->srv);
    case A_TRANS: RETURN_ATTR(void *, v->trans);
    case A_STMTCACHESIZE: RETURN_ATTR(uint32_t, v->stmtcache);
    case A_CALL_TIMEOUT: RETURN_ATTR(uint32_t, v->pg ? v->pg->call_timeout : 0);
    case A_MAX_IDENTIFIER_LEN: RETURN_ATTR(uint8_t, 128);
    case A_PDBNAME: RETURN_TEXT("FREEPDB1");
    case A_SERVER_TYPE: RETURN_ATTR(uint8_t, 1);
    }
    return unknown_attr(e, "get", H_SVC, a);
}

// server_attr_get reads an attribute of a server.
static int server_attr_get(Server *s, void *p, uint32_t *sz, uint32_t a, void *e) {
    switch (a) {
    case A_CHARSET_ID:
    case A_NCHARSET_ID: RETURN_ATTR(uint16_t, CHARSET_AL32UTF8);
    case A_SERVER_STATUS: RETURN_ATTR(uint32_t, s->pg && !s->pg->dead ? 1 : 0);
    case A_RECEIVE_TIMEOUT: RETURN_ATTR(uint32_t, s->recv_timeout);
    case A_BREAK_ON_NET_TIMEOUT: RETURN_ATTR(uint8_t, s->brk_on_to);
    case A_DBNAME: RETURN_TEXT("FREE");
    case A_INSTNAME: RETURN_TEXT("free");
    case A_SERVICENAME: RETURN_TEXT("freepdb1");
    case A_DBDOMAIN: RETURN_TEXT("");
    case A_INTERNAL_NAME:
    case A_EXTERNAL_NAME: RETURN_TEXT("FREE");
    }
    return unknown_attr(e, "get", H_SERVER, a);
}

// session_attr_get reads an attribute of a session or of what is around it.
int session_attr_get(void *h, uint32_t ht, void *p, uint32_t *sz, uint32_t a, void *e) {
    if (ht == H_SVC)
        return svc_attr_get(h, p, sz, a, e);
    if (ht == H_SERVER)
        return server_attr_get(h, p, sz, a, e);
    Session *s = h;
    switch (ht == H_SESSION ? a : 0) {
    case A_TRANSACTION_IN_PROGRESS: RETURN_ATTR(int32_t, s->pg ? s->pg->in_txn : 0);
    case A_MAX_OPEN_CURSORS: RETURN_ATTR(uint32_t, 300);
    case A_CURRENT_SCHEMA: RETURN_TEXT(s->schema ? s->schema : s->user);
    case A_LTXID: RETURN_TEXT("");
    case A_EDITION: RETURN_TEXT("ORA$BASE");
    }
    return unknown_attr(e, "get", ht, a);
}

// svc_attr_set sets an attribute of a service context.
static int svc_attr_set(Svc *v, void *p, uint32_t a) {
    switch (a) {
    case A_SESSION: v->ses = p; break;
    case A_SERVER: v->srv = p; break;
    case A_TRANS: v->trans = p; break;
    case A_STMTCACHESIZE: v->stmtcache = *(uint32_t *)p; break;
    case A_CALL_TIMEOUT:
        if (v->pg)
            v->pg->call_timeout = *(uint32_t *)p;
        break;
    }
    return OK;
}

// names_send tells the server what the session works at, for SYS_CONTEXT.
void names_send(Pg *pg) {
    static const char sql[] = "SELECT set_config('ocisim.module',$1,false), set_config('ocisim.action',$2,false)";
    static const Oid types[] = {PG_TEXT, PG_TEXT};
    static const int fmt[] = {0, 0};
    const char *v[] = {pg->module, pg->action};
    const int len[] = {0, 0};
    if (pg->named || pg->dead || PQtransactionStatus(pg->c) == PQTRANS_INERROR)
        return;
    pg->named = 1;
    PQclear(pg_params(pg, sql, 2, types, v, len, fmt));
}

// name_set notes a name of the session's work. The server learns it with the
// next statement: no round trip of Oracle's.
static void name_set(Pg *pg, char *to, const char *p, uint32_t n) {
    n = n < 64 ? n : 64;
    pg->named &= strlen(to) == n && !memcmp(to, p, n);
    memcpy(to, p, n);
    to[n] = 0;
}

// session_attr_set sets an attribute; client information and the like have no
// effect.
int session_attr_set(void *h, uint32_t ht, void *p, uint32_t sz, uint32_t a) {
    if (ht == H_SVC)
        return svc_attr_set(h, p, a);
    if (ht == H_SERVER) {
        Server *s = h;
        if (a == A_RECEIVE_TIMEOUT)
            s->recv_timeout = *(uint32_t *)p;
        if (a == A_BREAK_ON_NET_TIMEOUT)
            s->brk_on_to = *(uint8_t *)p;
    }
    if (ht == H_SESSION && (a == A_USERNAME || a == A_PASSWORD)) {
        Session *s = h;
        char **to = a == A_USERNAME ? &s->user : &s->pass;
        free(*to);
        *to = xstrndup(p, sz);
    }
    if (ht == H_SESSION && (a == A_MODULE || a == A_ACTION) && ((Session *)h)->pg) {
        Pg *pg = ((Session *)h)->pg;
        name_set(pg, a == A_MODULE ? pg->module : pg->action, p, sz);
    }
    return OK;
}
