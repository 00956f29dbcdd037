// Handles and descriptors: allocation, and whose attributes are read where.
#include "ocisim.h"

// hsize is the size of a handle, 0 of an unknown kind.
static size_t hsize(uint32_t t) {
    switch (t) {
    case H_ENV: return sizeof(Env);
    case H_ERROR: return sizeof(Err);
    case H_SVC: return sizeof(Svc);
    case H_STMT: return sizeof(Stmt);
    case H_SERVER: return sizeof(Server);
    case H_SESSION: return sizeof(Session);
    case H_TRANS: return sizeof(Hdr) + 64;
    case H_SPOOL: return sizeof(Pool);
    case H_DESCRIBE: return sizeof(Param);
    case D_LOB: return sizeof(Lob);
    case D_ENQ: return sizeof(EnqOpt);
    case D_DEQ: return sizeof(DeqOpt);
    case D_MSG: return sizeof(Msg);
    case D_AGENT: return sizeof(Agent);
    case D_IYM:
    case D_IDS: return sizeof(Interval);
    case D_TS:
    case D_TSTZ:
    case D_TSLTZ: return sizeof(DateTime);
    case D_ROWID: return 64;
    }
    return 0;
}

// set_defaults gives a new handle its values before any attribute is set.
static void set_defaults(Hdr *h) {
    switch (h->type) {
    case H_SPOOL:
        pthread_mutex_init(&((Pool *)h)->mu, NULL);
        pthread_cond_init(&((Pool *)h)->cv, NULL);
        break;
    case D_DEQ: {
        DeqOpt *d = (DeqOpt *)h;
        d->mode = AQ_REMOVE;
        d->nav = AQ_NEXT_MESSAGE;
        d->vis = AQ_ON_COMMIT;
        d->wait = (uint32_t)-1;
        d->delivery = AQ_PERSISTENT;
        break;
    }
    case D_ENQ:
        ((EnqOpt *)h)->visibility = AQ_ON_COMMIT;
        ((EnqOpt *)h)->delivery = AQ_PERSISTENT;
        break;
    case D_MSG:
        ((Msg *)h)->expiration = -1;
        ((Msg *)h)->delivery = AQ_PERSISTENT;
        break;
    }
}

// OCIHandleAlloc allocates a handle or descriptor.
EXPORT int OCIHandleAlloc(const void *p, void **h, uint32_t t, size_t x, void **u) {
    size_t n = hsize(t);
    *h = NULL;
    if (!n)
        return ERR;
    Hdr *q = xcalloc(n);
    *q = (Hdr){HANDLE_MAGIC, t};
    set_defaults(q);
    *h = q;
    return OK;
}

// OCIHandleFree frees a handle and what it owns.
EXPORT int OCIHandleFree(void *h, uint32_t t) {
    Hdr *q = h;
    if (!q)
        return OK;
    if (t == H_ERROR)
        free(((Err *)h)->batch);
    if (t == H_SERVER)
        free(((Server *)h)->dsn);
    if (t == H_SESSION) {
        Session *s = h;
        free(s->user);
        free(s->pass);
        free(s->schema);
    }
    q->magic = 0;
    free(h);
    return OK;
}

// OCIDescriptorAlloc allocates a descriptor.
EXPORT int OCIDescriptorAlloc(const void *p, void **h, const uint32_t t, size_t x, void **u) {
    return OCIHandleAlloc(p, h, t, x, u);
}

// OCIDescriptorFree frees a descriptor and what it owns.
EXPORT int OCIDescriptorFree(void *h, const uint32_t t) {
    if (!h)
        return OK;
    switch (t) {
    case D_LOB: free(((Lob *)h)->data); break;
    case D_PARAM: return OK; // params belong to the statement
    case D_MSG: {
        Msg *m = h;
        free(m->corr.p);
        free(m->excq.p);
        free(m->orig);
        break;
    }
    case D_DEQ: {
        DeqOpt *d = h;
        free(d->cond.p);
        free(d->consumer.p);
        free(d->corr.p);
        free(d->transformation.p);
        free(d->msgid);
        break;
    }
    case D_ENQ: free(((EnqOpt *)h)->transformation.p); break;
    }
    ((Hdr *)h)->magic = 0;
    free(h);
    return OK;
}

// OCIArrayDescriptorAlloc allocates n descriptors. Free gets no count, so
// descriptor 0 remembers it.
EXPORT int OCIArrayDescriptorAlloc(const void *p, void **h, const uint32_t t, uint32_t n, size_t x,
                                   void **u) {
    for (uint32_t i = 0; i < n; i++)
        if (OCIHandleAlloc(p, &h[i], t, 0, NULL))
            return ERR;
    if (n)
        ((Hdr *)h[0])->magic = HANDLE_MAGIC + n;
    return OK;
}

// OCIArrayDescriptorFree frees them.
EXPORT int OCIArrayDescriptorFree(void **h, const uint32_t t) {
    if (!h || !h[0])
        return OK;
    uint32_t n = ((Hdr *)h[0])->magic - HANDLE_MAGIC;
    for (uint32_t i = 0; i < n; i++) {
        free(h[i]);
    }
    return OK;
}

// error_attr_get reads an attribute of an error.
static int error_attr_get(const Err *x, void *p, uint32_t *sz, uint32_t attr, void *e) {
    if (attr == A_ERROR_IS_RECOVERABLE)
        RETURN_ATTR(int32_t, x->recoverable);
    if (attr == A_DML_ROW_OFFSET)
        RETURN_ATTR(int32_t, x->rowoff);
    return unknown_attr(e, "get", H_ERROR, attr);
}

// OCIAttrGet reads an attribute of any handle.
EXPORT int OCIAttrGet(const void *h, uint32_t ht, void *p, uint32_t *sz, uint32_t attr, void *e) {
    if (!h)
        return BAD_HANDLE;
    if (ocisim_debug > 1)
        debug("get attribute %u of handle type %u", attr, ht);
    switch (ht) {
    case H_ENV:
        if (attr == A_CHARSET_ID || attr == A_NCHARSET_ID)
            RETURN_ATTR(uint16_t, CHARSET_AL32UTF8);
        break;
    case H_ERROR: return error_attr_get(h, p, sz, attr, e);
    case H_SPOOL: return pool_attr_get((void *)h, p, sz, attr, e);
    case H_SVC:
    case H_SERVER:
    case H_SESSION:
    case H_TRANS: return session_attr_get((void *)h, ht, p, sz, attr, e);
    case H_STMT:
    case H_BIND:
    case H_DESCRIBE:
    case D_PARAM: return stmt_attr_get((void *)h, ht, p, sz, attr, e);
    case D_ENQ:
    case D_DEQ:
    case D_MSG:
    case D_AGENT: return aq_attr_get((void *)h, ht, p, sz, attr, e);
    }
    return unknown_attr(e, "get", ht, attr);
}

// OCIAttrSet sets an attribute of any handle.
EXPORT int OCIAttrSet(void *h, uint32_t ht, void *p, uint32_t sz, uint32_t attr, void *e) {
    if (!h)
        return BAD_HANDLE;
    if (ocisim_debug > 1)
        debug("set attribute %u of handle type %u", attr, ht);
    switch (ht) {
    case H_SPOOL: return pool_attr_set(h, p, attr);
    case H_SVC:
    case H_SERVER:
    case H_SESSION:
    case H_TRANS: return session_attr_set(h, ht, p, sz, attr);
    case H_STMT:
        if (attr == A_PREFETCH_ROWS)
            ((Stmt *)h)->prefetch = (int)*(uint32_t *)p;
        return OK;
    case H_BIND:
    case H_DEFINE: return OK;
    case D_ENQ:
    case D_DEQ:
    case D_MSG:
    case D_AGENT: return aq_attr_set(h, ht, p, sz, attr, e);
    }
    return unknown_attr(e, "set", ht, attr);
}
