// Attributes of the descriptors of Advanced Queuing.
#include "ocisim.h"

#define RETURN_STR(x)                                                                                        \
    do {                                                                                                     \
        *(char **)p = (x).p;                                                                                 \
        if (sz)                                                                                              \
            *sz = (x).n;                                                                                     \
        return OK;                                                                                           \
    } while (0)

// enq_get reads an option of enqueue.
static int enq_get(EnqOpt *o, void *p, uint32_t *sz, uint32_t a, void *e) {
    switch (a) {
    case A_VISIBILITY: RETURN_ATTR(uint32_t, o->visibility);
    case A_TRANSFORMATION: RETURN_STR(o->transformation);
    case A_MSG_DELIVERY_MODE: RETURN_ATTR(uint16_t, o->delivery);
    }
    return unknown_attr(e, "get", D_ENQ, a);
}

// deq_get reads an option of dequeue.
static int deq_get(DeqOpt *o, void *p, uint32_t *sz, uint32_t a, void *e) {
    switch (a) {
    case A_DEQCOND: RETURN_STR(o->cond);
    case A_CONSUMER_NAME: RETURN_STR(o->consumer);
    case A_CORRELATION: RETURN_STR(o->corr);
    case A_TRANSFORMATION: RETURN_STR(o->transformation);
    case A_DEQ_MSGID: RETURN_ATTR(void *, o->msgid);
    case A_DEQ_MODE: RETURN_ATTR(uint32_t, o->mode);
    case A_NAVIGATION: RETURN_ATTR(uint32_t, o->nav);
    case A_VISIBILITY: RETURN_ATTR(uint32_t, o->vis);
    case A_WAIT: RETURN_ATTR(uint32_t, o->wait);
    case A_MSG_DELIVERY_MODE: RETURN_ATTR(uint16_t, o->delivery);
    }
    return unknown_attr(e, "get", D_DEQ, a);
}

// msg_get reads a property of a message.
static int msg_get(Msg *m, void *p, uint32_t *sz, uint32_t a, void *e) {
    switch (a) {
    case A_CORRELATION: RETURN_STR(m->corr);
    case A_EXCEPTION_QUEUE: RETURN_STR(m->excq);
    case A_DELAY: RETURN_ATTR(int32_t, m->delay);
    case A_EXPIRATION: RETURN_ATTR(int32_t, m->expiration);
    case A_PRIORITY: RETURN_ATTR(int32_t, m->priority);
    case A_ATTEMPTS: RETURN_ATTR(int32_t, m->attempts);
    case A_MSG_STATE: RETURN_ATTR(uint32_t, m->state);
    case A_MSG_DELIVERY_MODE: RETURN_ATTR(uint16_t, m->delivery);
    case A_ORIGINAL_MSGID: RETURN_ATTR(void *, m->orig);
    case A_ENQ_TIME: *(OciDate *)p = m->enq; return OK;
    }
    return unknown_attr(e, "get", D_MSG, a);
}

// aq_attr_get reads an attribute of any of them.
int aq_attr_get(void *h, uint32_t ht, void *p, uint32_t *sz, uint32_t a, void *e) {
    switch (ht) {
    case D_ENQ: return enq_get(h, p, sz, a, e);
    case D_DEQ: return deq_get(h, p, sz, a, e);
    case D_MSG: return msg_get(h, p, sz, a, e);
    }
    return unknown_attr(e, "get", ht, a);
}

// enq_set sets an option of enqueue.
static int enq_set(EnqOpt *o, const void *p, uint32_t n, uint32_t a, void *e) {
    switch (a) {
    case A_VISIBILITY: o->visibility = *(const uint32_t *)p; return OK;
    case A_TRANSFORMATION: str_set(&o->transformation, p, n); return OK;
    case A_MSG_DELIVERY_MODE: o->delivery = *(const uint16_t *)p; return OK;
    }
    return unknown_attr(e, "set", D_ENQ, a);
}

// set_msgid takes the id to dequeue; one of no length clears it.
static void set_msgid(DeqOpt *o, const Raw *r) {
    if (r && r->len) {
        raw_set(&o->msgid, r->b, r->len);
        return;
    }
    free(o->msgid);
    o->msgid = NULL;
}

// deq_set sets an option of dequeue. The id comes as a pointer to an OCIRaw*.
static int deq_set(DeqOpt *o, const void *p, uint32_t n, uint32_t a, void *e) {
    switch (a) {
    case A_DEQCOND: str_set(&o->cond, p, n); return OK;
    case A_CONSUMER_NAME: str_set(&o->consumer, p, n); return OK;
    case A_CORRELATION: str_set(&o->corr, p, n); return OK;
    case A_TRANSFORMATION: str_set(&o->transformation, p, n); return OK;
    case A_DEQ_MSGID: set_msgid(o, *(Raw *const *)p); return OK;
    case A_DEQ_MODE: o->mode = *(const uint32_t *)p; return OK;
    case A_NAVIGATION: o->nav = *(const uint32_t *)p; return OK;
    case A_VISIBILITY: o->vis = *(const uint32_t *)p; return OK;
    case A_WAIT: o->wait = *(const uint32_t *)p; return OK;
    case A_MSG_DELIVERY_MODE: o->delivery = *(const uint16_t *)p; return OK;
    }
    return unknown_attr(e, "set", D_DEQ, a);
}

// msg_set sets a property of a message. The original id is an OCIRaw itself.
static int msg_set(Msg *m, const void *p, uint32_t n, uint32_t a, void *e) {
    switch (a) {
    case A_CORRELATION: str_set(&m->corr, p, n); return OK;
    case A_EXCEPTION_QUEUE: str_set(&m->excq, p, n); return OK;
    case A_DELAY: m->delay = *(const int32_t *)p; return OK;
    case A_EXPIRATION: m->expiration = *(const int32_t *)p; return OK;
    case A_PRIORITY: m->priority = *(const int32_t *)p; return OK;
    case A_ORIGINAL_MSGID: raw_set(&m->orig, ((const Raw *)p)->b, ((const Raw *)p)->len); return OK;
    }
    return unknown_attr(e, "set", D_MSG, a);
}

// aq_attr_set sets an attribute of any of them.
int aq_attr_set(void *h, uint32_t ht, void *p, uint32_t n, uint32_t a, void *e) {
    switch (ht) {
    case D_ENQ: return enq_set(h, p, n, a, e);
    case D_DEQ: return deq_set(h, p, n, a, e);
    case D_MSG: return msg_set(h, p, n, a, e);
    case D_AGENT: return OK;
    }
    return unknown_attr(e, "set", ht, a);
}
