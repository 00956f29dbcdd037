// Physical connections: the address, the session's settings, the schema that
// emulates Oracle's functions, the second connection.
#include "ocisim.h"
#include <errno.h>
#include <strings.h>

// boot_sql is boot/*.sql, in order: it makes the schema where it is missing.
extern const char boot_sql[];
__asm__(".section .rodata\n"
        ".global boot_sql\n"
        "boot_sql:\n"
        ".incbin \"boot/1_types.sql\"\n"
        ".incbin \"boot/2_functions.sql\"\n"
        ".incbin \"boot/3_queues.sql\"\n"
        ".incbin \"boot/4_packages.sql\"\n"
        ".incbin \"boot/5_dictionary.sql\"\n"
        ".incbin \"boot/6_ready.sql\"\n"
        ".byte 0\n"
        ".previous\n");

// parse_dsn reads [//]host[:port][/service][?...], what Oracle calls EZConnect.
static void parse_dsn(Pg *pg, const char *dsn) {
    while (*dsn == '/')
        dsn++;
    char *s = xstrndup(dsn, strcspn(dsn, "?"));
    if (!strncasecmp(s, "tcp://", 6))
        memmove(s, s + 6, strlen(s + 6) + 1);
    char *slash = strchr(s, '/');
    if (slash) {
        *slash = 0;
        pg->db = lower(xstrndup(slash + 1, strcspn(slash + 1, ":/")));
    }
    char *colon = strrchr(s, ':');
    if (colon) {
        *colon = 0;
        pg->port = xstrdup(colon + 1);
    }
    if (*s)
        pg->host = xstrdup(s);
    free(s);
}

// client_name is by what name faults find this process: OCISIM_NAME, or the
// name of its program.
const char *client_name(void) {
    const char *name = getenv("OCISIM_NAME");
    return name && *name ? name : program_invocation_short_name;
}

// connect_raw connects. OCISIM_CONNINFO, in libpq's syntax, wins over the address.
static PGconn *connect_raw(const Pg *pg, const char *role) {
    const char *conninfo = getenv("OCISIM_CONNINFO");
    char app[64];
    snprintf(app, sizeof app, "%s:%s", role, client_name());
    const char *pairs[][2] = {
        {"dbname", conninfo ? conninfo : pg->db},
        {"host", conninfo ? NULL : pg->host},
        {"port", conninfo ? NULL : pg->port},
        {"user", pg->user},
        {"password", pg->pass},
        {"application_name", app},
        {"client_encoding", "UTF8"},
        {"connect_timeout", "20"},
    };
    const char *k[9], *v[9];
    int n = 0;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (!pairs[i][1])
            continue;
        k[n] = pairs[i][0];
        v[n++] = pairs[i][1];
    }
    k[n] = v[n] = NULL;
    return PQconnectdbParams(k, v, conninfo != NULL);
}

// show_notice receives what PostgreSQL remarks.
static void show_notice(void *a, const PGresult *r) {
    const char *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    debug("notice %s", PQresultErrorMessage(r));
    if (a && text)
        block_notice(a, text);
}

// asks says whether a question is answered with true.
static int asks(PGconn *c, const char *sql) {
    PGresult *r = PQexec(c, sql);
    int yes = PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) && PQgetvalue(r, 0, 0)[0] == 't';
    PQclear(r);
    return yes;
}

// boot makes the schema ocisim where it is missing; one session does it.
static void boot(PGconn *c) {
    static const char ready[] = "SELECT to_regprocedure('ocisim.ready()') IS NOT NULL";
    if (asks(c, ready))
        return;
    PQclear(PQexec(c, "SELECT pg_advisory_lock(778899)"));
    if (!asks(c, ready)) {
        PGresult *r = PQexec(c, boot_sql);
        if (!pg_ok(r))
            fprintf(stderr, "ocisim: boot: %s", PQresultErrorMessage(r));
        PQclear(r);
    }
    PQclear(PQexec(c, "SELECT pg_advisory_unlock(778899)"));
}

// setup prepares a new connection: settings, and the schema of the user.
static void setup(PGconn *c) {
    static const char own_schema[] =
        "DO $$ BEGIN EXECUTE format('CREATE SCHEMA IF NOT EXISTS %1$I', current_user);"
        " EXECUTE format('GRANT USAGE ON SCHEMA %1$I TO PUBLIC', current_user);"
        " EXCEPTION WHEN others THEN NULL; END $$";
    const char *tz = getenv("ORA_SDTZ");
    char b[400];
    PQsetNoticeReceiver(c, show_notice, NULL);
    boot(c);
    snprintf(b, sizeof b,
             "SET search_path=\"$user\",public,ocisim,pg_catalog; SET timezone='%s'; SET datestyle='ISO'; "
             "SET intervalstyle='postgres'; SET extra_float_digits=3; SET check_function_bodies=off; "
             "LISTEN ocisim_fault",
             tz ? tz : "UTC");
    PQclear(PQexec(c, b));
    if (!asks(c, "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname=current_user)"))
        PQclear(PQexec(c, own_schema));
}

// pg_open connects a user: four round trips.
Pg *pg_open(const char *dsn, const char *user, const char *pass, Err *e) {
    Pg *pg = xcalloc(sizeof *pg);
    Call c = {-1};
    pthread_mutex_init(&pg->mu, NULL);
    parse_dsn(pg, dsn ? dsn : "");
    pg->user = lower(xstrdup(user));
    pg->pass = xstrdup(pass);
    faults_parse(pg, getenv("OCISIM_FAULTS"));
    int rc = call_begin(pg, e, "connect", 4, &c);
    if (!rc) {
        pg->c = connect_raw(pg, "ocisim");
        rc = PQstatus(pg->c) == CONNECTION_OK ? OK : connect_error(pg->c, e);
    }
    if (!rc) {
        setup(pg->c);
        PQsetNoticeReceiver(pg->c, show_notice, pg);
        if (faults_load(pg))
            faults_parse(pg, pg->told);
    }
    if (call_end(pg, e, &c, rc)) {
        pg_close(pg);
        return NULL;
    }
    return pg;
}

// pg_close disconnects.
void pg_close(Pg *pg) {
    if (!pg)
        return;
    PQfinish(pg->c);
    PQfinish(pg->helper);
    for (PStmt *p = pg->prepared, *n; p; p = n) {
        n = p->next;
        free(p->key);
        free(p->types);
        free(p);
    }
    free(pg->dequeued);
    free(pg->told);
    free(pg->user);
    free(pg->pass);
    free(pg->host);
    free(pg->port);
    free(pg->db);
    pthread_mutex_destroy(&pg->mu);
    free(pg);
}

// helper_conn makes sure of the second connection.
int helper_conn(Pg *pg) {
    if (pg->helper && PQstatus(pg->helper) == CONNECTION_OK)
        return OK;
    PQfinish(pg->helper);
    pg->helper = connect_raw(pg, "ocisim-helper");
    if (PQstatus(pg->helper) != CONNECTION_OK)
        return ERR;
    setup(pg->helper);
    return OK;
}
