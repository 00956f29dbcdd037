// Calls that would cost Oracle a round trip: they are counted, and they fail
// where a test wants it.
//
// A fault is op:nth:action[=argument], nth 0 is every call; several are separated by commas. ops:
// connect execute fetch commit rollback ping aqenq aqdeq any. Actions:
//   delay=ms         the call takes longer
//   error=ORA        it fails and has no effect
//   error_after=ORA  it has its effect, and the caller sees an error
//   rollback=ORA     the transaction is rolled back, and the caller sees an error
//   cut              the connection is lost before it
//   cut_after        it has its effect, and the connection is lost
// Faults come from OCISIM_FAULTS when a session starts, from ALTER SESSION SET
// ocisim_fault on the session itself, and from table ocisim.fault, by the
// client's name, whenever another session notifies ocisim_fault.
//
// Op all counts the calls of all sessions of this process on the same database
// together, connects included; setting it again begins anew. Sessions that have
// the fault exempt:1:all do not count: those of who watches.
#include "ocisim.h"
#include <errno.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_DATABASES = 64 };

// everywhere holds the faults of op all, by database.
static struct {
    pthread_mutex_t mu;
    struct {
        char db[64];
        Fault fault;
    } of[MAX_DATABASES];
    int n;
} everywhere = {.mu = PTHREAD_MUTEX_INITIALIZER};

// everywhere_set begins to count for a database.
static void everywhere_set(const Pg *pg, const Fault *f) {
    const char *db = pg->db ? pg->db : "";
    pthread_mutex_lock(&everywhere.mu);
    int i = 0;
    while (i < everywhere.n && strcmp(everywhere.of[i].db, db))
        i++;
    if (i < MAX_DATABASES) {
        snprintf(everywhere.of[i].db, sizeof everywhere.of[i].db, "%s", db);
        everywhere.of[i].fault = *f;
        if (i == everywhere.n)
            everywhere.n++;
    }
    pthread_mutex_unlock(&everywhere.mu);
}

// everywhere_seen is how many calls were counted; with a call, it is one more,
// and f gets the fault when it is its turn.
static int everywhere_seen(const Pg *pg, int call, Fault *f) {
    const char *db = pg->db ? pg->db : "";
    int seen = 0;
    f->nth = 0;
    pthread_mutex_lock(&everywhere.mu);
    for (int i = 0; i < everywhere.n; i++) {
        if (strcmp(everywhere.of[i].db, db))
            continue;
        seen = everywhere.of[i].fault.seen += call;
        if (call && seen == everywhere.of[i].fault.nth)
            *f = everywhere.of[i].fault;
    }
    pthread_mutex_unlock(&everywhere.mu);
    return seen;
}

// faults_parse replaces the faults of a session; NULL and "" are none.
void faults_parse(Pg *pg, const char *spec) {
    pg->nfaults = pg->exempt = 0;
    if (!spec)
        return;
    char *copy = xstrdup(spec), *save = NULL;
    for (char *t = strtok_r(copy, ",", &save); t && pg->nfaults < MAX_FAULTS;
         t = strtok_r(NULL, ",", &save)) {
        Fault *f = &pg->faults[pg->nfaults];
        char act[40] = "";
        memset(f, 0, sizeof *f);
        if (sscanf(t, " %23[a-z]:%d:%39s", f->op, &f->nth, act) != 3)
            continue;
        char *eq = strchr(act, '=');
        if (eq) {
            f->arg = atoi(eq + 1);
            *eq = 0;
        }
        snprintf(f->act, sizeof f->act, "%.15s", act);
        if (!strcmp(f->op, "all"))
            everywhere_set(pg, f);
        pg->exempt |= !strcmp(f->op, "exempt");
        pg->nfaults++;
    }
    free(copy);
}

// faults_load reads the faults that table ocisim.fault has for this client, and
// says whether they are others than those that it read last.
int faults_load(Pg *pg) {
    const char *v[1] = {client_name()};
    PGresult *r =
        PQexecParams(pg->c, "SELECT string_agg(spec, ',') FROM ocisim.fault WHERE $1::text LIKE client", 1,
                     NULL, v, NULL, NULL, 0);
    int other = 0;
    if (PQresultStatus(r) == PGRES_TUPLES_OK) {
        char *spec = PQgetisnull(r, 0, 0) ? NULL : xstrdup(PQgetvalue(r, 0, 0));
        other = !spec != !pg->told || (spec && strcmp(spec, pg->told));
        free(pg->told);
        pg->told = spec;
    }
    PQclear(r);
    return other;
}

// notifications reads what came in, without waiting. It says whether one was
// about a queue (NULL: any), and notes those about faults.
int notifications(Pg *pg, const char *queue) {
    int found = 0;
    PGnotify *n;
    const char *dot = queue ? strrchr(queue, '.') : NULL, *name = dot ? dot + 1 : queue;
    if (pg->dead || !pg->c || !PQconsumeInput(pg->c))
        return 0;
    while ((n = PQnotifies(pg->c))) {
        int about_queue = !strcmp(n->relname, "ocisim_aq");
        pg->faults_changed |= !about_queue;
        found |= about_queue && (!name || !*n->extra || !strcasecmp(n->extra, name));
        PQfreemem(n);
    }
    return found;
}

// faults_poll loads the faults anew when another session changed them. Within a
// transaction PostgreSQL keeps the notification back: who has faults asks for their
// end there.
static void faults_poll(Pg *pg) {
    notifications(pg, NULL);
    if (pg->dead || PQtransactionStatus(pg->c) == PQTRANS_INERROR)
        return;
    int held = pg->told && PQtransactionStatus(pg->c) == PQTRANS_INTRANS;
    if (!pg->faults_changed && !held)
        return;
    if (faults_load(pg) || pg->faults_changed)
        faults_parse(pg, pg->told);
    pg->faults_changed = 0;
}

// cut loses the connection.
static int cut(Pg *pg, Err *e) {
    if (pg->c && !pg->dead)
        shutdown(PQsocket(pg->c), SHUT_RDWR);
    pg->dead = 1;
    txn_lost(pg);
    seterr(e, 3113, "end-of-file on communication channel (injected)");
    if (e)
        e->recoverable = 1;
    return ERR;
}

// pause_us lets time pass. A signal ends a sleep too soon, and Go's scheduler sends
// them: it goes on until the moment has come.
static void pause_us(long us) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += us / 1000000;
    until.tv_nsec += us % 1000000 * 1000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

// fault_act carries out a fault before its call.
static int fault_act(Pg *pg, Err *e, Fault *f, Call *c) {
    debug("fault %s:%d:%s=%d", f->op, f->nth, f->act, f->arg);
    if (!strcmp(f->act, "delay")) {
        pause_us(f->arg * 1000L);
        return OK;
    }
    if (!strcmp(f->act, "error"))
        return seterr(e, f->arg, "injected error");
    if (!strcmp(f->act, "rollback")) {
        txn_rollback(pg, e);
        return seterr(e, f->arg, "injected error, transaction rolled back");
    }
    if (!strcmp(f->act, "cut"))
        return cut(pg, e);
    c->fault_after = (int)(f - pg->faults);
    return OK;
}

// count adds a call to the statistics.
static void count(Pg *pg, const char *op, int rt) {
    int i = 0;
    while (i < pg->nstats && strcmp(pg->stats[i].op, op))
        i++;
    if (i == MAX_STATS)
        return;
    if (i == pg->nstats)
        pg->stats[pg->nstats++] = (Stat){op, 0, 0};
    pg->stats[i].calls++;
    pg->stats[i].rt += (uint64_t)rt;
    pg->rt_total += (uint64_t)rt;
}

// latency waits as long as the network would take for a call of so many round trips:
// OCISIM_LATENCY_US microseconds for each, for programs that ask what distance costs.
static void latency(int rt) {
    static long us = -1;
    if (us < 0)
        us = getenv("OCISIM_LATENCY_US") ? atol(getenv("OCISIM_LATENCY_US")) : 0;
    if (us && rt)
        pause_us(us * rt);
}

// call_begin begins a call of rt round trips. When it fails the call must not
// be carried out, but call_end still follows.
int call_begin(Pg *pg, Err *e, const char *op, int rt, Call *c) {
    c->fault_after = -1;
    pthread_mutex_lock(&pg->mu);
    pg->in_call = 1;
    pg->brk = 0;
    pthread_mutex_unlock(&pg->mu);
    pg->timed_out = 0;
    count(pg, op, rt);
    latency(rt);
    if (pg->dead)
        return seterr(e, 3114, "not connected to ORACLE");
    if (pg->c)
        faults_poll(pg);
    for (int i = 0; i < pg->nfaults; i++) {
        Fault *f = &pg->faults[i];
        if ((strcmp(f->op, op) && strcmp(f->op, "any")) || (++f->seen != f->nth && f->nth))
            continue;
        if (fault_act(pg, e, f, c))
            return ERR;
    }
    Fault shared;
    if (pg->exempt || !everywhere_seen(pg, 1, &shared) || !shared.nth)
        return OK;
    // It is kept among the session's own for call_end; no call is called so.
    Fault *mine = &pg->faults[pg->nfaults < MAX_FAULTS ? pg->nfaults++ : MAX_FAULTS - 1];
    *mine = shared;
    snprintf(mine->op, sizeof mine->op, "done");
    return fault_act(pg, e, mine, c) ? ERR : OK;
}

// call_end ends a call with its return code, or with that of a fault.
int call_end(Pg *pg, Err *e, Call *c, int rc) {
    pthread_mutex_lock(&pg->mu);
    pg->in_call = 0;
    pthread_mutex_unlock(&pg->mu);
    if (pg->dead)
        txn_lost(pg);
    if (c->fault_after < 0)
        return rc;
    Fault *f = &pg->faults[c->fault_after];
    if (!strcmp(f->act, "cut_after"))
        return cut(pg, e);
    if (!strcmp(f->act, "error_after"))
        return seterr(e, f->arg, "injected error after the call took effect");
    return rc;
}

// is_broken says whether OCIBreak asked for the end of the call.
int is_broken(Pg *pg) {
    pthread_mutex_lock(&pg->mu);
    int brk = pg->brk;
    pthread_mutex_unlock(&pg->mu);
    return brk;
}

// stats_publish lets SQL see the statistics, in v$mystat and ocisim.stat.
void stats_publish(Pg *pg) {
    Buf b = {0};
    buf_fmt(&b,
            "SELECT set_config('ocisim.roundtrips','%llu',false), set_config('ocisim.requests','%llu',false)",
            (unsigned long long)pg->rt_total, (unsigned long long)pg->request_total);
    Fault none;
    buf_fmt(&b, ", set_config('ocisim.counted','%d',false)", everywhere_seen(pg, 0, &none));
    for (int i = 0; i < pg->nstats; i++)
        buf_fmt(&b, ", set_config('ocisim.calls_%s','%llu',false), set_config('ocisim.rt_%s','%llu',false)",
                pg->stats[i].op, (unsigned long long)pg->stats[i].calls, pg->stats[i].op,
                (unsigned long long)pg->stats[i].rt);
    pg_run(pg, b.p);
    free(b.p);
}
