// Binds: where the driver keeps the values of placeholders, and the values as
// PostgreSQL reads them.
#include "ocisim.h"

// bind_slot finds the bind of a position or name, or makes one. Handles are
// given out, so their addresses must stay.
static Bind *bind_slot(Stmt *s, int pos, const char *name) {
    for (int i = 0; i < s->nb; i++)
        if (name ? (s->b[i].name && !strcmp(s->b[i].name, name)) : (!s->b[i].name && s->b[i].pos == pos))
            return &s->b[i];
    if (!s->b)
        s->b = xcalloc(sizeof(Bind) * (MAX_BINDS + 1));
    Bind *b = &s->b[s->nb++];
    b->h = (Hdr){HANDLE_MAGIC, H_BIND};
    b->pos = pos;
    b->name = name ? xstrdup(name) : NULL;
    return b;
}

// bind_find finds the bind of placeholder i, counted from 0.
Bind *bind_find(Stmt *s, int i) {
    for (int j = 0; j < s->nb; j++)
        if (s->b[j].name ? !strcmp(s->b[j].name, s->t.ph[i]) : s->b[j].pos == i + 1)
            return &s->b[j];
    return NULL;
}

// is_placeholder says whether a statement has a name or position.
static int is_placeholder(const Stmt *s, int pos, const char *name) {
    if (!name)
        return pos >= 1 && pos <= s->t.nph;
    for (int i = 0; i < s->t.nph; i++)
        if (!strcmp(s->t.ph[i], name))
            return 1;
    return 0;
}

// bind_name copies a name without its colon, in upper case.
static char *bind_name(const char *name, int n) {
    if (*name == ':') {
        name++;
        n--;
    }
    return upper(xstrndup(name, (size_t)n));
}

// OCIBindByName2 binds every occurrence of a name.
EXPORT int OCIBindByName2(void *st, void **bp, void *e, const char *nm, int32_t nl, void *v, int64_t sz,
                          uint16_t dty, void *ind, uint32_t *al, uint16_t *rc, uint32_t ml, uint32_t *cl,
                          uint32_t mode) {
    Stmt *s = st;
    char *name = bind_name(nm, nl);
    int rc1 = OK;
    if (!is_placeholder(s, 0, name) || s->nb >= MAX_BINDS) {
        rc1 = seterr(e, 1036, "illegal variable name/number :%s", name);
    } else {
        Bind *b = bind_slot(s, 0, name);
        *b = (Bind){.h = b->h,
                    .name = b->name,
                    .val = v,
                    .sz = sz,
                    .dty = dty,
                    .ind = ind,
                    .alen = al,
                    .rcode = rc,
                    .mode = mode};
        *bp = b;
    }
    free(name);
    return rc1;
}

// OCIBindByPos2 binds one occurrence; in a block, one name.
EXPORT int OCIBindByPos2(void *st, void **bp, void *e, uint32_t pos, void *v, int64_t sz, uint16_t dty,
                         void *ind, uint32_t *al, uint16_t *rc, uint32_t ml, uint32_t *cl, uint32_t mode) {
    Stmt *s = st;
    if (!is_placeholder(s, (int)pos, NULL) || s->nb >= MAX_BINDS)
        return seterr(e, 1036, "illegal variable name/number");
    Bind *b = bind_slot(s, (int)pos, NULL);
    *b = (Bind){.h = b->h,
                .pos = (int)pos,
                .val = v,
                .sz = sz,
                .dty = dty,
                .ind = ind,
                .alen = al,
                .rcode = rc,
                .mode = mode};
    *bp = b;
    return OK;
}

// OCIBindDynamic sets the callbacks of a bind whose values come and go piecewise.
EXPORT int OCIBindDynamic(void *bp, void *e, void *ic, InCallback icb, void *oc, OutCallback ocb) {
    Bind *b = bp;
    b->ictx = ic;
    b->icb = icb;
    b->octx = oc;
    b->ocb = ocb;
    return OK;
}

// by_pointer says whether the buffer of a type holds pointers to descriptors.
static int by_pointer(uint16_t dty) {
    switch (dty) {
    case T_TS:
    case T_TSTZ:
    case T_TSLTZ:
    case T_IDS:
    case T_IYM:
    case T_CLOB:
    case T_BLOB: return 1;
    }
    return 0;
}

// In is the place of a value: where, how long, or NULL.
typedef struct {
    void *p;
    uint32_t n;
    int null;
} In;

// bind_place finds row it of a bind, in its array or through its callback.
static In bind_place(Bind *b, uint32_t it) {
    In in = {NULL, 0, 1};
    if (b->mode & BIND_DYNAMIC) {
        void *ind = NULL;
        uint8_t piece = 0;
        if (!b->icb)
            return in;
        b->icb(b->ictx, b, it, 0, &in.p, &in.n, &piece, &ind);
        in.null = ind && *(int16_t *)ind == -1;
        return in;
    }
    in.null = b->ind && b->ind[it] == -1;
    in.n = b->alen ? b->alen[it] : (uint32_t)b->sz;
    in.p = (char *)b->val + (size_t)it * (size_t)b->sz;
    if (by_pointer(b->dty))
        in.p = *(void **)in.p;
    return in;
}

// bind_length is how many bytes row it of a bind has.
uint32_t bind_length(Bind *b, uint32_t it) {
    In in = bind_place(b, it);
    return in.null ? 0 : in.n;
}

// hex_text writes bytes as PostgreSQL reads them; none is NULL.
static char *hex_text(const unsigned char *p, size_t n) {
    static const char digits[] = "0123456789abcdef";
    if (!n)
        return NULL;
    char *s = xcalloc(2 * n + 3), *q = s;
    *q++ = '\\';
    *q++ = 'x';
    for (size_t i = 0; i < n; i++) {
        *q++ = digits[p[i] >> 4];
        *q++ = digits[p[i] & 15];
    }
    return s;
}

// time_text writes dates, timestamps and intervals.
static void time_text(uint16_t dty, void *p, char *t, size_t n) {
    const Interval *i = p;
    const OciDate *d = p;
    if (dty == T_ODT)
        snprintf(t, n, "%04d-%02d-%02d %02d:%02d:%02d", d->year, d->mon, d->day, d->hh, d->mm, d->ss);
    else if (dty == T_IDS)
        snprintf(t, n, "%d days %d hours %d mins %.9f secs", i->d, i->hh, i->mm, i->ss + i->ns / 1e9);
    else if (dty == T_IYM)
        snprintf(t, n, "%d years %d mons", i->y, i->mon);
    else
        ts_format(p, t, n, dty != T_TS);
}

// number_text writes numbers of all kinds.
static void number_text(uint16_t dty, const void *p, char *t, size_t n) {
    switch (dty) {
    case T_VNU: num_to_text(p, t); break;
    case T_INT: snprintf(t, n, "%lld", (long long)*(const int64_t *)p); break;
    case T_UIN: snprintf(t, n, "%llu", (unsigned long long)*(const uint64_t *)p); break;
    case T_BDOUBLE: snprintf(t, n, "%.17g", *(const double *)p); break;
    case T_BFLOAT: snprintf(t, n, "%.9g", (double)*(const float *)p); break;
    case T_BOL: snprintf(t, n, "%s", *(const int32_t *)p ? "t" : "f"); break;
    }
}

// bind_value reads row it of a bind. The empty string is NULL.
Val bind_value(Bind *b, uint32_t it) {
    In in = bind_place(b, it);
    const Lob *lob = in.p;
    char t[300] = "";
    if (in.null)
        return (Val){NULL};
    switch (b->dty) {
    case T_CHR:
    case T_AFC:
    case T_LNG: return (Val){in.n ? xstrndup(in.p, in.n) : NULL};
    case T_BIN:
    case T_LBI: return (Val){hex_text(in.p, in.n)};
    case T_CLOB: return (Val){lob->len ? xstrndup(lob->data, lob->len) : NULL};
    case T_BLOB: return (Val){hex_text((unsigned char *)lob->data, lob->len)};
    case T_ODT:
    case T_TS:
    case T_TSTZ:
    case T_TSLTZ:
    case T_IDS:
    case T_IYM: time_text(b->dty, in.p, t, sizeof t); break;
    default: number_text(b->dty, in.p, t, sizeof t);
    }
    return (Val){xstrdup(*t ? t : "?unsupported type of bind")};
}

// return_dynamic hands a value to the driver's callback (RETURNING INTO).
static int return_dynamic(Bind *b, uint32_t it, const PGresult *r, int row, int col) {
    void *buf = NULL, *ind = NULL, *descriptor[1];
    uint32_t len0 = 0, *len = &len0;
    uint8_t piece = 0;
    uint16_t *rcode = NULL;
    b->rows_returned = (uint32_t)PQntuples(r);
    b->ocb(b->octx, b, it, (uint32_t)row, &buf, &len, &piece, &ind, &rcode);
    if (PQgetisnull(r, row, col)) {
        if (ind)
            *(int16_t *)ind = -1;
        return OK;
    }
    descriptor[0] = buf;
    Slot slot = {
        by_pointer(b->dty) ? (void *)descriptor : buf, len && *len ? *len : 32767, b->dty, ind, len, rcode};
    return slot_put(PQgetvalue(r, row, col), (size_t)PQgetlength(r, row, col), PQftype(r, col), &slot, 0);
}

// bind_return gives a value back to row it of a bind: an OUT parameter of a
// block, or a column of RETURNING.
int bind_return(Bind *b, uint32_t it, const PGresult *r, int row, int col) {
    if (b->mode & BIND_DYNAMIC)
        return b->ocb ? return_dynamic(b, it, r, row, col) : OK;
    int16_t *ind = b->ind ? b->ind + it : NULL;
    if (PQgetisnull(r, row, col)) {
        if (ind)
            *ind = -1;
        return OK;
    }
    size_t size = by_pointer(b->dty) ? sizeof(void *) : (size_t)b->sz;
    Slot slot = {b->val, size, b->dty, ind, b->alen ? b->alen + it : NULL, b->rcode ? b->rcode + it : NULL};
    return slot_put(PQgetvalue(r, row, col), (size_t)PQgetlength(r, row, col), PQftype(r, col), &slot,
                    (int)it);
}
