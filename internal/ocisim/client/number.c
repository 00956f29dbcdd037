// NUMBER: 22 bytes, a length, an exponent and a mantissa in base 100.
#include "ocisim.h"
#include <ctype.h>

// Digits of a decimal number: 0.d1d2d3... times 10^point.
typedef struct {
    char d[256];
    int n, point, negative;
} Digits;

// digits_parse reads text as digits.
static void digits_parse(const char *s, Digits *g) {
    int fraction = 0;
    memset(g, 0, sizeof *g);
    while (isspace((unsigned char)*s))
        s++;
    if (*s == '-' || *s == '+')
        g->negative = *s++ == '-';
    for (; *s; s++) {
        if (*s == '.') {
            fraction = 1;
        } else if (*s == 'e' || *s == 'E') {
            g->point += atoi(s + 1);
            break;
        } else if (!isdigit((unsigned char)*s)) {
            break;
        } else if (g->n || *s != '0') {
            if (g->n < 250)
                g->d[g->n++] = *s - '0';
            g->point += !fraction;
        } else if (fraction) {
            g->point--;
        }
    }
    while (g->n && !g->d[g->n - 1])
        g->n--;
    if (g->n > 40)
        g->n = 40;
}

// num_from_text writes a decimal number; the first 40 digits count.
void num_from_text(unsigned char *num, const char *s) {
    Digits g;
    char aligned[256];
    int n = 0;
    memset(num, 0, 22);
    digits_parse(s, &g);
    if (!g.n) {
        num[0] = 1;
        num[1] = 128;
        return;
    }
    if (g.point % 2) { // align to base 100
        aligned[n++] = 0;
        g.point++;
    }
    for (int i = 0; i < g.n && n < 40; i++)
        aligned[n++] = g.d[i];
    if (n % 2)
        aligned[n++] = 0;
    int exponent = g.point / 2 - 1 + 193;
    unsigned char *t = num + 1;
    *t++ = (unsigned char)(g.negative ? ~exponent : exponent);
    for (int i = 0; i < n; i += 2) {
        int b = aligned[i] * 10 + aligned[i + 1];
        *t++ = (unsigned char)(g.negative ? 101 - b : b + 1);
    }
    num[0] = (unsigned char)(1 + n / 2);
    if (g.negative && n / 2 < 20) {
        *t = 102;
        num[0]++;
    }
}

// num_to_text writes the decimal text of a number, at most 200 bytes.
void num_to_text(const unsigned char *v, char *o) {
    int len = v[0] - 1, neg = !(v[1] & 0x80);
    char d[64];
    int n = 0;
    if (len <= 0) {
        strcpy(o, neg ? "-1e126" : "0");
        return;
    }
    int e = (neg ? (unsigned char)~v[1] : v[1]) - 193;
    if (neg && v[1 + len] == 102)
        len--;
    for (int i = 0; i < len; i++) {
        int b = neg ? 101 - v[2 + i] : v[2 + i] - 1;
        d[n++] = b / 10;
        d[n++] = b % 10;
    }
    int dp = (e + 1) * 2;
    if (neg)
        *o++ = '-';
    while (n > 1 && !d[n - 1])
        n--;
    int i = 0, first = 1;
    if (dp <= 0) {
        *o++ = '0';
        *o++ = '.';
        for (int k = dp; k < 0; k++)
            *o++ = '0';
        for (; i < n; i++)
            *o++ = '0' + d[i];
    } else {
        for (; i < dp; i++) {
            int c = i < n ? d[i] : 0;
            if (c || !first || i == dp - 1) {
                *o++ = '0' + c;
                first = 0;
            }
        }
        while (n > i && !d[n - 1])
            n--;
        if (i < n) {
            *o++ = '.';
            for (; i < n; i++)
                *o++ = '0' + d[i];
        }
    }
    *o = 0;
}

// OCINumberFromInt converts an integer of n bytes.
EXPORT int OCINumberFromInt(void *e, const void *p, unsigned n, unsigned sgn, void *num) {
    char b[40];
    if (sgn)
        snprintf(b, sizeof b, "%lld", n == 8 ? (long long)*(int64_t *)p : (long long)*(int32_t *)p);
    else
        snprintf(b, sizeof b, "%llu",
                 n == 8 ? (unsigned long long)*(uint64_t *)p : (unsigned long long)*(uint32_t *)p);
    num_from_text(num, b);
    return OK;
}

// OCINumberFromReal converts a double.
EXPORT int OCINumberFromReal(void *e, const void *p, unsigned n, void *num) {
    char b[64];
    snprintf(b, sizeof b, "%.17g", *(double *)p);
    num_from_text(num, b);
    return OK;
}

// OCINumberToInt converts to a 64-bit integer.
EXPORT int OCINumberToInt(void *e, const void *num, unsigned n, unsigned sgn, void *out) {
    char b[200];
    num_to_text(num, b);
    if (sgn)
        *(int64_t *)out = strtoll(b, NULL, 10);
    else
        *(uint64_t *)out = strtoull(b, NULL, 10);
    return OK;
}

// OCINumberToReal converts to a double.
EXPORT int OCINumberToReal(void *e, const void *num, unsigned n, void *out) {
    char b[200];
    num_to_text(num, b);
    *(double *)out = strtod(b, NULL);
    return OK;
}
