// The environment: versions, threads, character sets, memory.
#include "ocisim.h"

// OCIClientVersion says 21.13: from 23 on, ODPI-C asks for more.
EXPORT void OCIClientVersion(int *a, int *b, int *c, int *d, int *e) {
    *a = 21;
    *b = 13;
    *c = 0;
    *d = 0;
    *e = 0;
}

// OCIThreadProcessInit is the first call of a process.
EXPORT void OCIThreadProcessInit(void) {
    const char *d = getenv("OCISIM_DEBUG");
    ocisim_debug = d ? atoi(d) : 0;
}

// OCIEnvNlsCreate makes the environment; everything is UTF-8.
EXPORT int OCIEnvNlsCreate(void **envp, uint32_t mode, void *ctx, void *m, void *r, void *f, size_t xs,
                           void **um, uint16_t cs, uint16_t ncs) {
    Env *e = xcalloc(sizeof *e);
    e->h = (Hdr){HANDLE_MAGIC, H_ENV};
    *envp = e;
    return OK;
}

// OCIThreadKeyInit makes a key for thread-local values.
EXPORT int OCIThreadKeyInit(void *h, void *e, void **key, void *dest) {
    pthread_key_t *k = xcalloc(sizeof *k);
    if (pthread_key_create(k, (void (*)(void *))dest))
        return ERR;
    *key = k;
    return OK;
}

// OCIThreadKeyGet reads one.
EXPORT int OCIThreadKeyGet(void *h, void *e, void *key, void **v) {
    *v = pthread_getspecific(*(pthread_key_t *)key);
    return OK;
}

// OCIThreadKeySet writes one.
EXPORT int OCIThreadKeySet(void *h, void *e, void *key, void *v) {
    return pthread_setspecific(*(pthread_key_t *)key, v) ? ERR : OK;
}

// OCIThreadKeyDestroy frees the key.
EXPORT int OCIThreadKeyDestroy(void *h, void *e, void **key) {
    pthread_key_delete(*(pthread_key_t *)*key);
    free(*key);
    *key = NULL;
    return OK;
}

// OCINlsNumericInfoGet: a character has at most 4 bytes.
EXPORT int OCINlsNumericInfoGet(void *h, void *e, int32_t *v, uint16_t item) {
    *v = 4;
    return OK;
}

// OCINlsEnvironmentVariableGet: the character set is UTF-8.
EXPORT int OCINlsEnvironmentVariableGet(void *v, size_t n, uint16_t item, uint16_t cs, size_t *r) {
    *(uint16_t *)v = CHARSET_AL32UTF8;
    return OK;
}

// OCINlsCharSetNameToId: every name is UTF-8.
EXPORT uint16_t OCINlsCharSetNameToId(void *h, const char *n) {
    return CHARSET_AL32UTF8;
}

// OCINlsCharSetIdToName: every number is UTF-8.
EXPORT int OCINlsCharSetIdToName(void *h, char *b, size_t n, uint16_t id) {
    snprintf(b, n, "AL32UTF8");
    return OK;
}

// OCINlsNameMap gives the IANA or the Oracle name of UTF-8.
EXPORT int OCINlsNameMap(void *h, char *b, size_t n, const char *s, uint32_t f) {
    snprintf(b, n, f ? "UTF-8" : "AL32UTF8");
    return OK;
}

// OCINlsCharSetConvert copies.
EXPORT int OCINlsCharSetConvert(void *h, void *e, uint16_t di, void *d, size_t dl, uint16_t si, const void *s,
                                size_t sl, size_t *r) {
    size_t n = sl < dl ? sl : dl;
    memcpy(d, s, n);
    *r = n;
    return OK;
}

// OCIMemoryAlloc gives memory for a value kept on a session.
EXPORT int OCIMemoryAlloc(void *h, void *e, void **m, uint16_t dur, uint32_t n, uint32_t fl) {
    *m = xcalloc(n);
    return OK;
}

// OCIMemoryFree frees it.
EXPORT int OCIMemoryFree(void *h, void *e, void *m) {
    free(m);
    return OK;
}
