// Dates, timestamps and intervals.
#include "ocisim.h"
#include <ctype.h>
#include <math.h>

// OCIDateTimeConstruct fills a timestamp; tz is text such as "+02:00".
EXPORT int OCIDateTimeConstruct(void *h, void *e, void *dt, int16_t y, uint8_t m, uint8_t d, uint8_t hh,
                                uint8_t mm, uint8_t ss, uint32_t fs, const char *tz, size_t n) {
    DateTime *t = dt;
    t->year = y;
    t->mon = m;
    t->day = d;
    t->hh = hh;
    t->mm = mm;
    t->ss = ss;
    t->ns = fs;
    t->has_tz = n > 0;
    t->tzmin = 0;
    if (n >= 3) {
        int H = 0, M = 0;
        char b[16];
        snprintf(b, sizeof b, "%.*s", (int)n, tz);
        sscanf(b + 1, "%d:%d", &H, &M);
        t->tzmin = (b[0] == '-' ? -1 : 1) * (H * 60 + M);
    }
    return OK;
}

// OCIDateTimeGetDate gives year, month and day.
EXPORT int OCIDateTimeGetDate(void *h, void *e, const void *dt, int16_t *y, uint8_t *m, uint8_t *d) {
    const DateTime *t = dt;
    *y = t->year;
    *m = t->mon;
    *d = t->day;
    return OK;
}

// OCIDateTimeGetTime gives the time of day.
EXPORT int OCIDateTimeGetTime(void *h, void *e, void *dt, uint8_t *hh, uint8_t *mm, uint8_t *ss,
                              uint32_t *fs) {
    DateTime *t = dt;
    *hh = t->hh;
    *mm = t->mm;
    *ss = t->ss;
    *fs = t->ns;
    return OK;
}

// OCIDateTimeGetTimeZoneOffset gives the offset from UTC.
EXPORT int OCIDateTimeGetTimeZoneOffset(void *h, void *e, const void *dt, int8_t *hh, int8_t *mm) {
    const DateTime *t = dt;
    *hh = t->tzmin / 60;
    *mm = t->tzmin % 60;
    return OK;
}

// OCIIntervalSetDaySecond fills an interval of days to nanoseconds.
EXPORT int OCIIntervalSetDaySecond(void *h, void *e, int32_t d, int32_t hh, int32_t mm, int32_t ss,
                                   int32_t fs, void *r) {
    Interval *i = r;
    i->d = d;
    i->hh = hh;
    i->mm = mm;
    i->ss = ss;
    i->ns = fs;
    return OK;
}

// OCIIntervalGetDaySecond reads one.
EXPORT int OCIIntervalGetDaySecond(void *h, void *e, int32_t *d, int32_t *hh, int32_t *mm, int32_t *ss,
                                   int32_t *fs, const void *r) {
    const Interval *i = r;
    *d = i->d;
    *hh = i->hh;
    *mm = i->mm;
    *ss = i->ss;
    *fs = i->ns;
    return OK;
}

// OCIIntervalSetYearMonth fills an interval of years and months.
EXPORT int OCIIntervalSetYearMonth(void *h, void *e, int32_t y, int32_t m, void *r) {
    Interval *i = r;
    i->y = y;
    i->mon = m;
    return OK;
}

// OCIIntervalGetYearMonth reads one.
EXPORT int OCIIntervalGetYearMonth(void *h, void *e, int32_t *y, int32_t *m, const void *r) {
    const Interval *i = r;
    *y = i->y;
    *m = i->mon;
    return OK;
}

// ts_parse reads PostgreSQL's ISO output: 2026-01-02 03:04:05.123456+02[:30].
void ts_parse(const char *s, DateTime *t) {
    int y = 0, mo = 1, d = 1, H = 0, M = 0, S = 0, n = 0;
    sscanf(s, "%d-%d-%d%n", &y, &mo, &d, &n);
    s += n;
    if (*s == ' ' || *s == 'T') {
        n = 0;
        sscanf(s + 1, "%d:%d:%d%n", &H, &M, &S, &n);
        s += 1 + n;
    }
    t->year = y;
    t->mon = mo;
    t->day = d;
    t->hh = H;
    t->mm = M;
    t->ss = S;
    t->ns = 0;
    t->tzmin = 0;
    t->has_tz = 0;
    if (*s == '.') {
        uint32_t f = 0, k = 100000000;
        for (s++; isdigit((unsigned char)*s); s++) {
            f += (*s - '0') * k;
            k /= 10;
        }
        t->ns = f;
    }
    if (*s == '+' || *s == '-') {
        int h = 0, m = 0;
        sscanf(s + 1, "%d:%d", &h, &m);
        t->tzmin = (*s == '-' ? -1 : 1) * (h * 60 + m);
        t->has_tz = 1;
    }
}

// ts_format writes what PostgreSQL reads.
void ts_format(const DateTime *t, char *o, size_t size, int tz) {
    int n = snprintf(o, size, "%04d-%02d-%02d %02d:%02d:%02d.%09u", t->year, t->mon, t->day, t->hh, t->mm,
                     t->ss, t->ns);
    if (tz && n > 0 && (size_t)n < size) {
        int a = abs(t->tzmin);
        snprintf(o + n, size - (size_t)n, "%c%02d:%02d", t->tzmin < 0 ? '-' : '+', a / 60, a % 60);
    }
}

// interval_parse reads PostgreSQL's output: 1 day -02:03:04.5.
void interval_parse(const char *s, Interval *i) {
    int k = 0, v;
    char unit[16];
    double seconds = 0;
    i->d = i->hh = i->mm = i->ss = i->ns = 0;
    while (sscanf(s, " %d %15[a-z]%n", &v, unit, &k) == 2) {
        if (!strncmp(unit, "day", 3))
            i->d = v;
        else if (!strncmp(unit, "mon", 3))
            i->d += 30 * v;
        else if (!strncmp(unit, "year", 4))
            i->d += 365 * v;
        s += k;
    }
    while (*s == ' ')
        s++;
    int negative = *s == '-';
    if (negative)
        s++;
    if (sscanf(s, "%d:%d:%lf", &i->hh, &i->mm, &seconds) < 2)
        return;
    i->ss = (int)seconds;
    i->ns = (int)lround((seconds - i->ss) * 1e9);
    if (negative) {
        i->hh = -i->hh;
        i->mm = -i->mm;
        i->ss = -i->ss;
        i->ns = -i->ns;
    }
}
