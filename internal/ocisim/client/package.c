// CREATE PACKAGE: the specification is kept and compared with the body; every
// subprogram of the body becomes a routine "package.name" that runs with the
// owner's rights, constants become functions without parameters.
#include "sql.h"

// Unit is a package being translated.
typedef struct {
    Trans *t;
    const Tok *k;
    int i; // the token being looked at
    Buf *out;
    char *owner; // NULL = the current schema
    Package pkg;
} Unit;

// is_subprogram says whether a procedure or function begins at a token.
static int is_subprogram(const Tok *k) {
    return is_word(k, "PROCEDURE") || is_word(k, "FUNCTION");
}

// head_end finds the end of PROCEDURE name(...) RETURN type: IS, AS or ;.
static int head_end(const Tok *k, int i) {
    for (; k[i].kind != K_END; i++) {
        if (is_punct(&k[i], "("))
            i = find_close(k, i);
        if (is_word(&k[i], "IS") || is_word(&k[i], "AS") || is_punct(&k[i], ";"))
            return i;
    }
    return i;
}

// body_end finds the token after the END; of the subprogram whose IS is at i.
static int body_end(const Tok *k, int i) {
    static const char *const openers[] = {"BEGIN", "IF", "LOOP", "CASE", NULL};
    int depth = 0;
    for (; k[i].kind != K_END; i++) {
        if (is_word(&k[i], "END")) {
            static const char *const kinds[] = {"IF", "LOOP", "CASE", NULL};
            if (in_words(&k[i + 1], kinds))
                i++;
            if (--depth == 0)
                return find_end(k, i) + 1;
        } else if (in_words(&k[i], openers)) {
            depth++;
        }
    }
    return i;
}

// add_name adds a subprogram or constant.
static void add_name(Package *p, const char *name) {
    p->names = xrealloc(p->names, sizeof(char *) * ((size_t)p->n + 1));
    p->names[p->n++] = xstrdup(name);
}

// collect_names lists what the package declares at its own level.
static void collect_names(Unit *u, int i) {
    while (u->k[i].kind != K_END && !is_word(&u->k[i], "END") && !is_word(&u->k[i], "BEGIN")) {
        int sub = is_subprogram(&u->k[i]), at = sub ? i + 1 : i;
        add_name(&u->pkg, u->k[at].text);
        if (!sub) {
            i = find_end(u->k, i) + 1;
            continue;
        }
        int head = head_end(u->k, i);
        i = is_punct(&u->k[head], ";") ? head + 1 : body_end(u->k, head);
    }
}

// signature writes the head of a subprogram in one spelling, to be compared.
static void signature(const Unit *u, int from, int to, Buf *out) {
    for (int j = from; j < to; j++)
        buf_fmt(out, "%s%s", j > from ? " " : "",
                is_punct(&u->k[j], ":=") ? "DEFAULT"
                : u->k[j].text           ? u->k[j].text
                                         : "");
}

// put_signature writes it as an element of an array.
static void put_signature(Unit *u, int from, int to) {
    Buf b = {0};
    buf_str(&b, "");
    signature(u, from, to, &b);
    put_string(b.p, u->out);
    free(b.p);
}

// put_name writes owner."package.name".
static void put_name(Unit *u, const char *name) {
    char *member = lower(xstrdup(name));
    if (u->owner)
        buf_fmt(u->out, "%s.", u->owner);
    buf_fmt(u->out, "\"%s.%s\"", u->pkg.name, member);
    free(member);
}

// put_parameters writes name mode type DEFAULT value, ...
static void put_parameters(Unit *u, int open, int close) {
    for (int j = open + 1; j < close; j++) {
        if (is_word(&u->k[j], "NOCOPY"))
            continue;
        if (is_word(&u->k[j], "IN") && is_word(&u->k[j + 1], "OUT")) {
            buf_str(u->out, " INOUT");
            j++;
            continue;
        }
        int end = j + 1; // names with a dot or % belong together
        while (end < close && (is_punct(&u->k[end], ".") || is_punct(&u->k[end], "%") ||
                               is_punct(&u->k[end - 1], ".") || is_punct(&u->k[end - 1], "%")))
            end++;
        if (is_punct(&u->k[end], "(") && u->k[j].kind == K_WORD)
            end = find_close(u->k, end) + 1;
        buf_str(u->out, " ");
        rewrite(u->t, u->k, j, end, RW_PLSQL | RW_TYPES, &u->pkg, u->out);
        j = end - 1;
    }
}

// has_out says whether a parameter comes back.
static int has_out(const Tok *k, int open, int close) {
    for (int j = open; j < close; j++)
        if (is_word(&k[j], "OUT"))
            return 1;
    return 0;
}

// put_routine writes the routine of the subprogram whose head is at i: a
// procedure, a function, or a function as a procedure with a last parameter
// for the result, which a caller may need for its OUT parameters.
static void put_routine(Unit *u, int i, int function, int call) {
    int head = head_end(u->k, i), end = body_end(u->k, head);
    int params = is_punct(&u->k[i + 2], "(") ? find_close(u->k, i + 2) : 0;
    int type = (params ? params : i + 1) + 2;
    Trans local = {.block = (char *)""}; // binds are an error of their own
    Buf body = {0}, name = {0};
    buf_fmt(&name, "%s%s", u->k[i + 1].text, call ? "/call" : "");
    buf_fmt(u->out, "CREATE %s ", function && !call ? "FUNCTION" : "PROCEDURE");
    put_name(u, name.p);
    buf_str(u->out, "(");
    if (params)
        put_parameters(u, i + 2, params);
    if (call) {
        buf_str(u->out, params ? ", INOUT ocisim_result " : "INOUT ocisim_result ");
        rewrite(u->t, u->k, type, type + 1, RW_TYPES | RW_PLSQL, NULL, u->out);
        buf_str(u->out, " DEFAULT NULL");
    }
    buf_str(u->out, ")");
    if (function && !call) {
        buf_str(u->out, " RETURNS ");
        rewrite(u->t, u->k, type, type + 1, RW_TYPES | RW_PLSQL, NULL, u->out);
    }
    translate_subprogram(&local, u->k, head + 1, end, &u->pkg, call, &body);
    if (local.bad)
        refuse(u->t, local.bad, "%s", local.badmsg);
    buf_str(u->out, " LANGUAGE plpgsql SECURITY DEFINER SET search_path ");
    if (u->owner)
        buf_fmt(u->out, "= %s, ocisim, pg_catalog", u->owner);
    else
        buf_str(u->out, "FROM CURRENT");
    buf_fmt(u->out, " AS $ocisim$ %s $ocisim$;\n", body.p);
    free(body.p);
    free(name.p);
}

// put_subprogram writes the routines of the subprogram whose head is at i.
static int put_subprogram(Unit *u, int i) {
    int function = is_word(&u->k[i], "FUNCTION"), head = head_end(u->k, i);
    if (!function || !has_out(u->k, i, head))
        put_routine(u, i, function, 0);
    if (function)
        put_routine(u, i, function, 1);
    return body_end(u->k, head);
}

// put_constant writes name CONSTANT type := value; as a function.
static int put_constant(Unit *u, int i) {
    int end = find_end(u->k, i), value = i;
    while (value < end && !is_punct(&u->k[value], ":=") && !is_word(&u->k[value], "DEFAULT"))
        value++;
    if (!is_word(&u->k[i + 1], "CONSTANT") || value == end) {
        refuse(u->t, 20998, "ocisim: package state is not emulated: %s", u->k[i].text);
        return end + 1;
    }
    buf_str(u->out, "CREATE FUNCTION ");
    put_name(u, u->k[i].text);
    buf_str(u->out, "() RETURNS ");
    rewrite_type(u->k, i + 2, 1, u->out);
    buf_str(u->out, " LANGUAGE sql IMMUTABLE AS $ocisim$ SELECT ");
    rewrite(u->t, u->k, value + 1, end, RW_PLSQL, &u->pkg, u->out);
    buf_str(u->out, " $ocisim$;\n");
    return end + 1;
}

// put_specification keeps the heads of a specification, and makes its constants.
static void put_specification(Unit *u, int i) {
    Buf *out = u->out, constants = {0}, names = {0};
    buf_str(&constants, "");
    buf_str(&names, "");
    buf_str(out, ", ARRAY[");
    for (int first = 1; u->k[i].kind != K_END && !is_word(&u->k[i], "END");) {
        int end = find_end(u->k, i);
        if (is_subprogram(&u->k[i])) {
            buf_str(out, first ? "" : ",");
            put_signature(u, i, end);
            first = 0;
        } else {
            buf_fmt(&names, "%s'%s'", names.n ? "," : "", u->k[i].text);
            u->out = &constants;
            put_constant(u, i);
            u->out = out;
        }
        i = end + 1;
    }
    buf_fmt(out, "]::text[], ARRAY[%s]::text[]);\n%s", names.p, constants.p);
    free(constants.p);
    free(names.p);
}

static void put_owner_and_name(Unit *u, Buf *out);

// put_body writes the routines of a body and compares them with the heads.
static void put_body(Unit *u, int i) {
    Buf heads = {0}, *out = u->out;
    buf_str(&heads, "");
    while (u->k[i].kind != K_END && !is_word(&u->k[i], "END") && !is_word(&u->k[i], "BEGIN")) {
        if (!is_subprogram(&u->k[i])) {
            i = put_constant(u, i);
            continue;
        }
        u->out = &heads;
        buf_str(u->out, heads.n ? "," : "");
        put_signature(u, i, head_end(u->k, i));
        u->out = out;
        i = put_subprogram(u, i);
    }
    if (is_word(&u->k[i], "BEGIN"))
        refuse(u->t, 20998, "ocisim: initialization of a package is not emulated");
    buf_str(out, "CALL ocisim.package_body_done(");
    put_owner_and_name(u, out);
    buf_fmt(out, ", ARRAY[%s]::text[]);", heads.p);
    free(heads.p);
}

// unit_open finds the name of a package. Returns the token after IS.
static int unit_open(Unit *u, int *body) {
    const Tok *k = u->k;
    int i = 0;
    while (k[i].kind != K_END && !is_word(&k[i], "PACKAGE"))
        i++;
    *body = is_word(&k[++i], "BODY");
    i += *body;
    if (is_punct(&k[i + 1], ".")) {
        u->owner = lower(xstrdup(k[i].text));
        i += 2;
    }
    u->pkg.name = lower(xstrdup(k[i].text));
    while (k[i].kind != K_END && !is_word(&k[i], "IS") && !is_word(&k[i], "AS"))
        i++;
    return i + (k[i].kind != K_END);
}

// unit_close frees what a unit holds.
static void unit_close(Unit *u) {
    for (int j = 0; j < u->pkg.n; j++)
        free(u->pkg.names[j]);
    free(u->pkg.names);
    free((char *)u->pkg.name);
    free(u->owner);
}

// put_owner_and_name writes 'owner', 'package', the owner NULL for the schema
// at hand.
static void put_owner_and_name(Unit *u, Buf *out) {
    if (u->owner)
        buf_fmt(out, "'%s', '%s'", u->owner, u->pkg.name);
    else
        buf_fmt(out, "NULL, '%s'", u->pkg.name);
}

// translate_package translates CREATE [OR REPLACE] PACKAGE [BODY]. constants
// are the names, separated by commas, that a specification has given a body.
void translate_package(Trans *t, const Tok *k, const char *constants, Buf *out) {
    Unit u = {.t = t, .k = k, .out = out};
    int body, from = unit_open(&u, &body);
    char *copy = xstrdup(constants), *save = NULL;
    for (char *c = strtok_r(copy, ",", &save); c; c = strtok_r(NULL, ",", &save))
        add_name(&u.pkg, c);
    free(copy);
    collect_names(&u, from);
    t->package_body = body;
    buf_fmt(out, "CALL ocisim.package_%s(", body ? "body" : "specification");
    put_owner_and_name(&u, out);
    if (body) {
        buf_str(out, ");\n");
        put_body(&u, from);
    } else {
        put_specification(&u, from);
    }
    unit_close(&u);
}

// package_body_run translates a body again, knowing the constants of its
// specification.
int package_body_run(Stmt *s, Err *e) {
    Buf query = {0}, out = {0};
    int n, body;
    Tok *k = lex(s->sql, &n);
    Unit u = {.t = &s->t, .k = k, .out = &query};
    unit_open(&u, &body);
    buf_str(&query, "SELECT ocisim.package_constants(");
    put_owner_and_name(&u, &query);
    buf_str(&query, ")");
    PGresult *r = pg_query(s->svc->pg, query.p);
    int rc = pg_ok(r) ? OK : pg_error(s->svc->pg, e, r, s->t.type);
    if (!rc) {
        buf_str(&out, "");
        translate_package(&s->t, k, PQgetvalue(r, 0, 0), &out);
        free(s->t.sql);
        s->t.sql = out.p;
    }
    PQclear(r);
    free(query.p);
    unit_close(&u);
    toks_free(k);
    return rc;
}
