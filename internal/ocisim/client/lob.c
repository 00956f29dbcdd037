// LOBs are buffers of the client: a value arrives with its row, and a
// temporary LOB is sent with the execution it is bound to. No call here goes
// to the server.
#include "ocisim.h"

// OCILobCreateTemporary empties a LOB of one type.
EXPORT int OCILobCreateTemporary(void *s, void *e, void *l, uint16_t cs, uint8_t cf, uint8_t type, int cache,
                                 uint16_t dur) {
    Lob *b = l;
    b->temp = 1;
    b->clob = type == 2;
    b->len = 0;
    return OK;
}

// OCILobFreeTemporary frees the buffer.
EXPORT int OCILobFreeTemporary(void *s, void *e, void *l) {
    Lob *b = l;
    free(b->data);
    b->data = NULL;
    b->len = 0;
    b->temp = 0;
    return OK;
}

// OCILobIsTemporary says whether the client made it.
EXPORT int OCILobIsTemporary(void *h, void *e, void *l, int *v) {
    *v = ((Lob *)l)->temp;
    return OK;
}

// u8len counts the characters in n bytes of UTF-8.
static uint64_t u8len(const char *p, size_t n) {
    uint64_t k = 0;
    for (size_t i = 0; i < n; i++)
        if ((p[i] & 0xC0) != 0x80)
            k++;
    return k;
}

// u8off is the offset of a character.
static size_t u8off(const char *p, size_t n, uint64_t chars) {
    size_t i = 0;
    while (i < n && chars) {
        i++;
        while (i < n && (p[i] & 0xC0) == 0x80)
            i++;
        chars--;
    }
    return i;
}

// OCILobGetLength2 counts characters of a CLOB, bytes of a BLOB.
EXPORT int OCILobGetLength2(void *s, void *e, void *l, uint64_t *n) {
    Lob *b = l;
    *n = b->clob ? u8len(b->data, b->len) : b->len;
    return OK;
}

// OCILobGetChunkSize gives what an 8 KiB block holds.
EXPORT int OCILobGetChunkSize(void *s, void *e, void *l, uint32_t *n) {
    *n = 8132;
    return OK;
}

// OCILobIsOpen always says no.
EXPORT int OCILobIsOpen(void *s, void *e, void *l, int *v) {
    *v = 0;
    return OK;
}

// OCILobOpen does nothing.
EXPORT int OCILobOpen(void *s, void *e, void *l, uint8_t m) {
    return OK;
}

// OCILobClose does nothing.
EXPORT int OCILobClose(void *s, void *e, void *l) {
    return OK;
}

// OCILobTrim2 shortens the value.
EXPORT int OCILobTrim2(void *s, void *e, void *l, uint64_t n) {
    Lob *b = l;
    if (!b->data && !b->temp)
        return BAD_HANDLE;
    if (n < b->len)
        b->len = b->clob ? u8off(b->data, b->len, n) : n;
    return OK;
}

// OCILobRead2 reads from a 1-based offset, whole characters only.
EXPORT int OCILobRead2(void *s, void *e, void *l, uint64_t *ba, uint64_t *ca, uint64_t off, void *buf,
                       uint64_t bl, uint8_t pc, void *c, void *cb, uint16_t cs, uint8_t cf) {
    Lob *b = l;
    size_t o = b->clob ? u8off(b->data, b->len, off - 1) : off - 1;
    if (o > b->len)
        o = b->len;
    size_t n = b->len - o;
    if (b->clob) {
        if (*ca) {
            size_t m = u8off(b->data + o, n, *ca);
            if (m < n)
                n = m;
        }
    } else if (*ba && *ba < n)
        n = *ba;
    if (n > bl) {
        n = bl;
        if (b->clob)
            while (n && (b->data[o + n] & 0xC0) == 0x80)
                n--;
    }
    if (n)
        memcpy(buf, b->data + o, n);
    *ba = n;
    *ca = b->clob ? u8len(buf, n) : n;
    return OK;
}

// OCILobWrite2 writes at a 1-based offset, growing the value.
EXPORT int OCILobWrite2(void *s, void *e, void *l, uint64_t *ba, uint64_t *ca, uint64_t off, void *buf,
                        uint64_t bl, uint8_t pc, void *c, void *cb, uint16_t cs, uint8_t cf) {
    Lob *b = l;
    size_t o = b->clob ? u8off(b->data, b->len, off - 1) : off - 1;
    size_t n = *ba;
    if (o + n > b->len) {
        b->data = xrealloc(b->data, o + n + 1);
        if (o > b->len)
            memset(b->data + b->len, 0, o - b->len);
        b->len = o + n;
    }
    memcpy(b->data + o, buf, n);
    return OK;
}

// OCILobLocatorAssign copies the value.
EXPORT int OCILobLocatorAssign(void *s, void *e, const void *src, void **dst) {
    const Lob *a = src;
    Lob *b = *dst;
    free(b->data);
    b->data = a->len ? xstrndup(a->data, a->len) : NULL;
    b->len = a->len;
    b->clob = a->clob;
    return OK;
}
