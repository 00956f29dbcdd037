// OCIRaw: bytes with a length, for payloads and ids of messages, and their type.
#include "ocisim.h"

// raw_set replaces the bytes, growing in place of the pointer.
Raw *raw_set(Raw **r, const void *p, uint32_t n) {
    if (!*r || (*r)->cap < n) {
        free(*r);
        *r = xcalloc(sizeof(Raw) + n + 1);
        (*r)->cap = n;
    }
    (*r)->len = n;
    if (n)
        memcpy((*r)->b, p, n);
    return *r;
}

// OCIRawAssignBytes copies bytes.
EXPORT int OCIRawAssignBytes(void *h, void *e, const char *p, uint32_t n, void **r) {
    raw_set((Raw **)r, p, n);
    return OK;
}

// OCIRawPtr gives the bytes.
EXPORT void *OCIRawPtr(void *h, const void *r) {
    return r ? ((Raw *)r)->b : NULL;
}

// OCIRawSize gives the length.
EXPORT uint32_t OCIRawSize(void *h, const void *r) {
    return r ? ((Raw *)r)->len : 0;
}

// OCIRawResize resizes; 0 frees.
EXPORT int OCIRawResize(void *h, void *e, uint32_t n, void **r) {
    if (n == 0) {
        free(*r);
        *r = NULL;
        return OK;
    }
    Raw *q = *r;
    Raw *nr = xcalloc(sizeof(Raw) + n + 1);
    nr->cap = nr->len = n;
    if (q)
        memcpy(nr->b, q->b, q->len < n ? q->len : n);
    free(q);
    *r = nr;
    return OK;
}

static Hdr tdo_raw = {HANDLE_MAGIC, 1000};

// OCITypeByName knows one type, SYS.RAW: payloads are RAW here.
EXPORT int OCITypeByName(void *env, void *e, const void *svc, const char *sch, uint32_t sl, const char *tn,
                         uint32_t tl, const char *vn, uint32_t vl, uint16_t pd, int go, void **tdo) {
    if (tl == 3 && !strncmp(tn, "RAW", 3)) {
        *tdo = &tdo_raw;
        return OK;
    }
    return seterr(e, 4043, "object %.*s.%.*s does not exist", (int)sl, sch, (int)tl, tn);
}
