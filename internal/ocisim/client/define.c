// Defines: where the driver wants the columns of a row, and the values as it
// reads them.
#include "ocisim.h"

// OCIDefineByPos2 says where a column goes.
EXPORT int OCIDefineByPos2(void *st, void **dp, void *e, uint32_t pos, void *v, uint64_t sz, uint16_t dty,
                           void *ind, uint32_t *rl, uint16_t *rc, uint32_t mode) {
    Stmt *s = st;
    if ((int)pos > s->nd) {
        s->d = xrealloc(s->d, sizeof(Def *) * pos);
        while (s->nd < (int)pos) {
            s->d[s->nd] = xcalloc(sizeof(Def));
            s->d[s->nd++]->h = (Hdr){HANDLE_MAGIC, H_DEFINE};
        }
    }
    Def *d = s->d[pos - 1];
    d->val = v;
    d->sz = sz;
    d->dty = dty;
    d->ind = ind;
    d->rlen = rl;
    d->rcode = rc;
    d->mode = mode;
    d->cb = NULL;
    *dp = d;
    return OK;
}

// OCIDefineDynamic sets the callback of a column that is fetched piecewise.
EXPORT int OCIDefineDynamic(void *dp, void *e, void *ctx, DefineCallback cb) {
    Def *d = dp;
    d->ctx = ctx;
    d->cb = cb;
    return OK;
}

// Bytes is a value on its way: text, or what a bytea unescapes to.
typedef struct {
    const char *p;
    size_t n;
    unsigned char *own;
} Bytes;

// bytes_of unescapes a bytea.
static Bytes bytes_of(const char *s, size_t len, Oid type) {
    Bytes b = {s, len, NULL};
    if (type == PG_BYTEA) {
        b.own = PQunescapeBytea((const unsigned char *)s, &b.n);
        b.p = (char *)b.own;
    }
    return b;
}

// put_bytes copies into a buffer of the driver; what does not fit is cut off
// and said so.
static void put_bytes(const Slot *o, char *to, const char *s, size_t n) {
    if (n > o->sz) {
        n = o->sz;
        if (o->rcode)
            *o->rcode = 1406;
    }
    memcpy(to, s, n);
    if (o->len)
        *o->len = (uint32_t)n;
}

// put_text copies text; bytes become hexadecimal digits.
static void put_text(const Slot *o, char *to, const Bytes *b) {
    static const char digits[] = "0123456789ABCDEF";
    if (!b->own) {
        put_bytes(o, to, b->p, b->n);
        return;
    }
    char *hex = xcalloc(2 * b->n + 1);
    for (size_t i = 0; i < b->n; i++) {
        hex[2 * i] = digits[b->own[i] >> 4];
        hex[2 * i + 1] = digits[b->own[i] & 15];
    }
    put_bytes(o, to, hex, 2 * b->n);
    free(hex);
}

// put_number writes a number of any kind. Returns 0 for other types.
static int put_number(const char *s, Oid type, uint16_t dty, void *to) {
    if (type == PG_BOOL)
        s = *s == 't' ? "1" : "0";
    switch (dty) {
    case T_VNU: num_from_text(to, s); return 1;
    case T_INT: *(int64_t *)to = strtoll(s, NULL, 10); return 1;
    case T_UIN: *(uint64_t *)to = strtoull(s, NULL, 10); return 1;
    case T_BDOUBLE: *(double *)to = strtod(s, NULL); return 1;
    case T_BFLOAT: *(float *)to = strtof(s, NULL); return 1;
    case T_BOL: *(int32_t *)to = *s == 't' || *s == '1'; return 1;
    }
    return 0;
}

// put_time writes a timestamp; the descriptor keeps its header.
static void put_time(const char *s, DateTime *d) {
    Hdr h = d->h;
    ts_parse(s, d);
    d->h = h;
}

// put_lob writes a value into a LOB.
static void put_lob(const Bytes *b, Lob *l, int clob) {
    free(l->data);
    l->clob = clob;
    l->len = b->n;
    l->data = xstrndup(b->p, b->n);
}

// slot_put writes PostgreSQL's text s, of a type, to a row of a slot. Returns
// ERR for a type that is not emulated.
int slot_put(const char *s, size_t len, Oid type, const Slot *o, int row) {
    Bytes b = bytes_of(s, len, type);
    char *to = (char *)o->val + (size_t)row * o->sz;
    DateTime t;
    int rc = OK;
    if (o->ind)
        *o->ind = 0;
    if (o->rcode)
        *o->rcode = 0;
    switch (o->dty) {
    case T_CHR:
    case T_AFC:
    case T_LNG: put_text(o, to, &b); break;
    case T_BIN:
    case T_LBI: put_bytes(o, to, b.p, b.n); break;
    case T_ODT:
        ts_parse(s, &t);
        *(OciDate *)to = (OciDate){t.year, t.mon, t.day, t.hh, t.mm, t.ss};
        break;
    case T_TS:
    case T_TSTZ:
    case T_TSLTZ: put_time(s, ((void **)o->val)[row]); break;
    case T_IDS: interval_parse(s, ((void **)o->val)[row]); break;
    case T_CLOB:
    case T_BLOB: put_lob(&b, ((void **)o->val)[row], o->dty == T_CLOB); break;
    default: rc = put_number(s, type, o->dty, to) ? OK : ERR;
    }
    PQfreemem(b.own);
    return rc;
}

// put_dynamic hands a large value to the driver's callback, piece by piece.
static void put_dynamic(Def *d, int row, const char *s, size_t len, Oid type, int null) {
    Bytes b = null ? (Bytes){"", 0, NULL} : bytes_of(s, len, type);
    size_t off = 0;
    uint8_t piece = 0;
    do {
        void *buf = NULL, *ind = NULL;
        uint32_t *n = NULL;
        uint16_t *rcode = NULL;
        d->cb(d->ctx, d, (uint32_t)row, &buf, &n, &piece, &ind, &rcode);
        size_t k = b.n - off < *n ? b.n - off : *n;
        if (k)
            memcpy(buf, b.p + off, k);
        *n = (uint32_t)k;
        off += k;
        if (ind)
            *(int16_t *)ind = null ? -1 : 0;
        piece = 2;
    } while (off < b.n);
    PQfreemem(b.own);
}

// put_null marks a column as NULL.
static void put_null(const Def *d, int to) {
    if (d->ind)
        d->ind[to] = -1;
    if (d->rcode)
        d->rcode[to] = 1405;
    if (d->rlen)
        d->rlen[to] = 0;
}

// define_row writes a row of the result to row `to` of the driver's arrays. An
// empty string is NULL.
int define_row(Stmt *s, Err *e, int row, int to) {
    for (int i = 0; i < s->ncol && i < s->nd; i++) {
        Def *d = s->d[i];
        const char *v = PQgetvalue(s->res, row, i);
        size_t len = (size_t)PQgetlength(s->res, row, i);
        Oid type = PQftype(s->res, i);
        int null = PQgetisnull(s->res, row, i) || (len == 0 && type != PG_BYTEA);
        if (d->mode & BIND_DYNAMIC) {
            if (d->cb)
                put_dynamic(d, to, v, len, type, null);
            continue;
        }
        if (null) {
            put_null(d, to);
            continue;
        }
        Slot slot = {d->val,
                     d->sz,
                     d->dty,
                     d->ind ? d->ind + to : NULL,
                     d->rlen ? d->rlen + to : NULL,
                     d->rcode ? d->rcode + to : NULL};
        if (slot_put(v, len, type, &slot, to))
            return seterr(e, 932, "inconsistent datatypes (ocisim: define type %d)", d->dty);
    }
    return OK;
}
