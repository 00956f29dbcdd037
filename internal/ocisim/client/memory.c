// Memory that is there or the process ends, strings, time, debug output.
#include "ocisim.h"
#include <ctype.h>
#include <time.h>

int ocisim_debug; // OCISIM_DEBUG=1 shows statements and errors, 2 attributes, too

// xcalloc returns n zeroed bytes.
void *xcalloc(size_t n) {
    void *p = calloc(1, n ? n : 1);
    if (!p)
        abort();
    return p;
}

// xrealloc resizes p to n bytes.
void *xrealloc(void *p, size_t n) {
    void *q = realloc(p, n ? n : 1);
    if (!q)
        abort();
    return q;
}

// xstrndup copies n bytes and ends them.
char *xstrndup(const char *s, size_t n) {
    char *p = xcalloc(n + 1);
    memcpy(p, s, n);
    return p;
}

// xstrdup copies a string; NULL stays NULL.
char *xstrdup(const char *s) {
    return s ? xstrndup(s, strlen(s)) : NULL;
}

// lower turns s into lower case, in place.
char *lower(char *s) {
    for (char *c = s; c && *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return s;
}

// upper turns s into upper case, in place.
char *upper(char *s) {
    for (char *c = s; c && *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return s;
}

// buf_add appends n bytes.
void buf_add(Buf *b, const char *s, size_t n) {
    if (b->n + n + 1 > b->cap) {
        b->cap = (b->n + n + 1) * 2;
        b->p = xrealloc(b->p, b->cap);
    }
    memcpy(b->p + b->n, s, n);
    b->n += n;
    b->p[b->n] = 0;
}

// buf_str appends a string.
void buf_str(Buf *b, const char *s) {
    buf_add(b, s, strlen(s));
}

// buf_fmt appends formatted text.
void buf_fmt(Buf *b, const char *fmt, ...) {
    va_list ap;
    char *s = NULL;
    va_start(ap, fmt);
    int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    if (n < 0)
        abort();
    buf_add(b, s, (size_t)n);
    free(s);
}

// str_set replaces a string by a copy of n bytes.
void str_set(Str *s, const void *p, uint32_t n) {
    free(s->p);
    s->p = NULL;
    s->n = 0;
    if (p && n) {
        s->p = xstrndup(p, n);
        s->n = n;
    }
}

// now_ms is a clock that only goes forward, in milliseconds.
int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

// debug writes a line to standard error when OCISIM_DEBUG asks for it.
void debug(const char *fmt, ...) {
    va_list ap;
    if (!ocisim_debug)
        return;
    va_start(ap, fmt);
    fprintf(stderr, "ocisim: ");
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}
