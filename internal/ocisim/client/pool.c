// The session pool of the client library.
#include "ocisim.h"
#include <errno.h>
#include <strings.h>
#include <time.h>

static Pool *pools;
static pthread_mutex_t pools_mu = PTHREAD_MUTEX_INITIALIZER; // guards pools and pool_no
static int pool_no;

// OCISessionPoolCreate names a pool; sessions are opened when they are asked for.
EXPORT int OCISessionPoolCreate(void *env, void *e, void *ph, char **name, uint32_t *nl, const char *dsn,
                                uint32_t dl, uint32_t mn, uint32_t mx, uint32_t inc, const char *u,
                                uint32_t ul, const char *pw, uint32_t pl, uint32_t mode) {
    Pool *p = ph;
    p->dsn = xstrndup(dsn ? dsn : "", dsn ? dl : 0);
    p->user = u ? xstrndup(u, ul) : NULL;
    p->pass = pw ? xstrndup(pw, pl) : NULL;
    p->min = mn;
    p->max = mx ? mx : 1;
    p->incr = inc;
    pthread_mutex_lock(&pools_mu);
    snprintf(p->name, sizeof p->name, "ocisimpool%d", ++pool_no);
    p->next = pools;
    pools = p;
    pthread_mutex_unlock(&pools_mu);
    *name = p->name;
    *nl = strlen(p->name);
    return OK;
}

// svc_free disconnects a pooled session.
static void svc_free(Svc *v) {
    pg_close(v->pg);
    for (KV *k = v->ses->kv, *n; k; k = n) {
        n = k->next;
        free(k->k);
        free(k->v);
        free(k);
    }
    free(v->srv->dsn);
    free(v->srv);
    free(v->ses->user);
    free(v->ses->pass);
    free(v->ses);
    free(v);
}

// OCISessionPoolDestroy closes the idle sessions.
EXPORT int OCISessionPoolDestroy(void *ph, void *e, uint32_t mode) {
    Pool *p = ph;
    pthread_mutex_lock(&pools_mu);
    for (Pool **q = &pools; *q; q = &(*q)->next)
        if (*q == p) {
            *q = p->next;
            break;
        }
    pthread_mutex_unlock(&pools_mu);
    pthread_mutex_lock(&p->mu);
    while (p->idle) {
        Svc *v = p->idle;
        p->idle = v->next;
        svc_free(v);
    }
    pthread_mutex_unlock(&p->mu);
    return OK;
}

// pool_find finds a pool by its name.
static Pool *pool_find(const char *name, uint32_t n) {
    Pool *p;
    pthread_mutex_lock(&pools_mu);
    for (p = pools; p; p = p->next)
        if (strlen(p->name) == n && !memcmp(p->name, name, n))
            break;
    pthread_mutex_unlock(&pools_mu);
    return p;
}

// wait_deadline is when a timed wait for a session is over.
static struct timespec wait_deadline(const Pool *p) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += p->wait_timeout / 1000;
    t.tv_nsec += (p->wait_timeout % 1000) * 1000000L;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000L;
    }
    return t;
}

// take_idle takes an idle session of a user out of the pool.
static Svc *take_idle(Pool *p, const char *user) {
    for (Svc **q = &p->idle; *q; q = &(*q)->next) {
        Svc *v = *q;
        if (!user || !v->ses->user || !strcasecmp(user, v->ses->user)) {
            *q = v->next;
            return v;
        }
    }
    return NULL;
}

// pool_take takes an idle session, or the right to open one (*out = NULL).
static int pool_take(Pool *p, const char *user, Svc **out, void *e) {
    struct timespec deadline = wait_deadline(p);
    int rc = OK;
    pthread_mutex_lock(&p->mu);
    while (!(*out = take_idle(p, user)) && p->open >= p->max && p->getmode != SPOOL_FORCEGET) {
        if (p->getmode == SPOOL_NOWAIT) {
            rc = seterr(e, 24418, "Cannot open further sessions.");
            break;
        }
        if (p->getmode != SPOOL_TIMEDWAIT) {
            pthread_cond_wait(&p->cv, &p->mu);
        } else if (pthread_cond_timedwait(&p->cv, &p->mu, &deadline) == ETIMEDOUT) {
            rc = seterr(e, 24457,
                        "OCISessionGet() could not find a free session in the specified timeout period");
            break;
        }
    }
    if (!rc) {
        p->busy++;
        p->open += !*out;
    }
    pthread_mutex_unlock(&p->mu);
    return rc;
}

// pool_give_back returns the right to open a session.
static void pool_give_back(Pool *p) {
    pthread_mutex_lock(&p->mu);
    p->busy--;
    p->open--;
    pthread_cond_signal(&p->cv);
    pthread_mutex_unlock(&p->mu);
}

// svc_open connects a session that the library owns.
static Svc *svc_open(Pool *p, const char *dsn, const char *user, const char *pass, void *e) {
    Pg *pg = pg_open(dsn, user, pass, e);
    if (!pg)
        return NULL;
    Svc *v = xcalloc(sizeof *v);
    v->h = (Hdr){HANDLE_MAGIC, H_SVC};
    v->srv = xcalloc(sizeof(Server));
    v->srv->h = (Hdr){HANDLE_MAGIC, H_SERVER};
    v->ses = xcalloc(sizeof(Session));
    v->ses->h = (Hdr){HANDLE_MAGIC, H_SESSION};
    v->srv->dsn = xstrdup(dsn);
    v->ses->user = xstrdup(user);
    v->pg = v->srv->pg = v->ses->pg = pg;
    v->pool = p;
    return v;
}

// OCISessionGet gives a session of a pool, or one of its own.
EXPORT int OCISessionGet(void *env, void *e, void **svcp, void *auth, const char *pn, uint32_t pnl,
                         const char *tag, uint32_t tl, const char **rt, uint32_t *rtl, int *found,
                         uint32_t mode) {
    Session *a = auth;
    Pool *p = mode & SESSGET_SPOOL ? pool_find(pn, pnl) : NULL;
    if (rt)
        *rt = NULL;
    if (rtl)
        *rtl = 0;
    if (found)
        *found = 0;
    if ((mode & SESSGET_SPOOL) && !p)
        return seterr(e, 24412, "Cannot reinitialize non-existent pool");
    char *dsn = p ? xstrdup(p->dsn) : xstrndup(pn ? pn : "", pn ? pnl : 0);
    int own = a && a->user;
    const char *user = own ? a->user : p ? p->user : NULL, *pass = own ? a->pass : p ? p->pass : NULL;
    Svc *v = NULL;
    int rc = p ? pool_take(p, user, &v, e) : OK;
    if (!rc && !v) {
        v = svc_open(p, dsn, user, pass, e);
        if (!v && p)
            pool_give_back(p);
    }
    free(dsn);
    if (!v)
        return ERR;
    v->next = NULL;
    v->pg->call_timeout = 0;
    *svcp = v;
    return OK;
}

// OCISessionRelease rolls back and gives the session back, or drops it.
EXPORT int OCISessionRelease(void *sv, void *e, const char *tag, uint32_t tl, uint32_t mode) {
    Svc *v = sv;
    Pool *p = v->pool;
    if (v->pg && v->pg->in_txn && !v->pg->dead)
        txn_rollback(v->pg, e);
    if (!p) {
        svc_free(v);
        return OK;
    }
    pthread_mutex_lock(&p->mu);
    p->busy--;
    int drop = (mode & SESSRLS_DROP) || v->pg->dead;
    if (drop)
        p->open--;
    else {
        v->next = p->idle;
        p->idle = v;
    }
    pthread_cond_signal(&p->cv);
    pthread_mutex_unlock(&p->mu);
    if (drop)
        svc_free(v);
    return OK;
}

// pool_attr_get reads an attribute of a pool.
int pool_attr_get(Pool *q, void *p, uint32_t *sz, uint32_t a, void *e) {
    switch (a) {
    case A_SPOOL_BUSY_COUNT: RETURN_ATTR(uint32_t, q->busy);
    case A_SPOOL_OPEN_COUNT: RETURN_ATTR(uint32_t, q->open);
    case A_SPOOL_GETMODE: RETURN_ATTR(uint8_t, q->getmode);
    case A_SPOOL_TIMEOUT: RETURN_ATTR(uint32_t, q->timeout);
    case A_SPOOL_WAIT_TIMEOUT: RETURN_ATTR(uint32_t, q->wait_timeout);
    case A_SPOOL_MAX_LIFETIME_SESSION: RETURN_ATTR(uint32_t, q->max_life);
    case A_SPOOL_MAX_PER_SHARD: RETURN_ATTR(uint32_t, q->per_shard);
    case A_SPOOL_STMTCACHESIZE: RETURN_ATTR(uint32_t, q->stmtcache);
    }
    return unknown_attr(e, "get", H_SPOOL, a);
}

// pool_attr_set sets an attribute of a pool.
int pool_attr_set(Pool *q, const void *p, uint32_t a) {
    switch (a) {
    case A_SPOOL_GETMODE: q->getmode = *(const uint8_t *)p; break;
    case A_SPOOL_TIMEOUT: q->timeout = *(const uint32_t *)p; break;
    case A_SPOOL_WAIT_TIMEOUT: q->wait_timeout = *(const uint32_t *)p; break;
    case A_SPOOL_MAX_LIFETIME_SESSION: q->max_life = *(const uint32_t *)p; break;
    case A_SPOOL_MAX_PER_SHARD: q->per_shard = *(const uint32_t *)p; break;
    case A_SPOOL_STMTCACHESIZE: q->stmtcache = *(const uint32_t *)p; break;
    }
    return OK;
}
