// Expressions and statements of SQL, token by token: what Oracle writes
// otherwise than PostgreSQL. Functions that only behave otherwise are not here
// but in schema ocisim, which the search path puts before PostgreSQL's own.
#include "sql.h"
#include <ctype.h>

// replaced names stand alone: not a.b, not f(...).
static const struct {
    const char *word, *by;
} replaced[] = {
    {"SYSDATE", "ocisim.sysdate()"},
    {"SYSTIMESTAMP", "ocisim.systimestamp()"},
    {"CURRENT_TIMESTAMP", "ocisim.systimestamp()"},
    {"LOCALTIMESTAMP", "CAST(ocisim.systimestamp() AS timestamp)"},
    {"SESSIONTIMEZONE", "ocisim.sessiontimezone()"},
    {"DBTIMEZONE", "'+00:00'"},
    {"USER", "ocisim.ora_user()"},
    {"MINUS", "EXCEPT"},
};

// types maps names of types, in SQL and in PL/SQL. An OUT argument must have the
// very type of its parameter, so PL/SQL knows few types.
static const struct {
    const char *word, *by, *plsql;
} types[] = {
    {"NUMBER", "numeric", "numeric"},
    {"VARCHAR2", "varchar", "varchar"},
    {"NVARCHAR2", "varchar", "varchar"},
    {"DATE", "timestamp(0)", "timestamp"},
    {"BINARY_DOUBLE", "float8", "float8"},
    {"BINARY_FLOAT", "float4", "float8"},
    {"CLOB", "clob", "text"},
    {"BLOB", "blob", "bytea"},
    {"RAW", "raw", "bytea"},
    {"INTEGER", "numeric(38)", "numeric"},
    {"INT", "numeric(38)", "numeric"},
    {"SMALLINT", "numeric(38)", "numeric"},
    {"FLOAT", "numeric", "numeric"},
    {"PLS_INTEGER", "int4", "numeric"},
    {"BINARY_INTEGER", "int4", "numeric"},
    {"POSITIVE", "int4", "numeric"},
    {"NATURAL", "int4", "numeric"},
    {"JSON_ARRAY_T", "jsonb", "jsonb"},
};

// add_placeholder adds a bind and returns its number from 1. In a block every
// name counts once, in SQL every occurrence.
int add_placeholder(Trans *t, const char *name, int isout) {
    size_t n = (size_t)t->nph + 1;
    if (t->block)
        for (int i = 0; i < t->nph; i++)
            if (!strcmp(t->ph[i], name))
                return i + 1;
    t->ph = xrealloc(t->ph, sizeof(char *) * n);
    t->isout = xrealloc(t->isout, sizeof(int) * n);
    t->isset = xrealloc(t->isset, sizeof(int) * n);
    t->isshort = xrealloc(t->isshort, sizeof(int) * n);
    t->ph[t->nph] = xstrdup(name);
    t->isout[t->nph] = isout;
    t->isset[t->nph] = 0;
    t->isshort[t->nph] = 0;
    t->nout += isout;
    return ++t->nph;
}

// put_quoted writes a name that stood in quotes: without lower-case letters it
// is one that needed none.
void put_quoted(Trans *t, const Tok *tok, Buf *out) {
    char *name = xstrdup(tok->text);
    int keeps = 0;
    for (char *c = name; *c; c++)
        keeps |= islower((unsigned char)*c);
    if (keeps) {
        t->quoted = xrealloc(t->quoted, sizeof(char *) * (size_t)(t->nquoted + 1));
        t->quoted[t->nquoted++] = xstrdup(name);
    } else {
        lower(name);
    }
    buf_fmt(out, "\"%s\"", name);
    free(name);
}

// put_string writes a string literal; the empty one is NULL.
void put_string(const char *s, Buf *out) {
    if (!*s) {
        buf_str(out, "NULL");
        return;
    }
    buf_str(out, strchr(s, '\\') ? " E'" : "'");
    for (; *s; s++) {
        if (*s == '\'' || *s == '\\')
            buf_add(out, s, 1);
        buf_add(out, s, 1);
    }
    buf_str(out, "'");
}

// put_word writes a word as it was; # needs quotes in PostgreSQL.
static void put_word(const Tok *tok, Buf *out) {
    if (!strchr(tok->raw, '#')) {
        buf_str(out, tok->raw);
        return;
    }
    char *name = lower(xstrdup(tok->raw));
    buf_fmt(out, "\"%s\"", name);
    free(name);
}

// rewrite_type writes the type at i and returns what follows it; i when there
// is no type to be rewritten.
int rewrite_type(const Tok *k, int i, int plsql, Buf *out) {
    const char *by = NULL;
    for (size_t j = 0; j < sizeof types / sizeof *types && k[i].kind == K_WORD; j++)
        if (!strcmp(k[i].text, types[j].word))
            by = plsql ? types[j].plsql : types[j].by;
    if (is_word(&k[i], "LOCAL") && !*seq(k, i + 1, "TIME ZONE"))
        return i + 1;
    if (is_word(&k[i], "INTERVAL") && (is_word(&k[i + 1], "DAY") || is_word(&k[i + 1], "YEAR"))) {
        int last = i + 2; // DAY(9) TO SECOND(6)
        while (k[last].kind != K_END && !is_word(&k[last], "SECOND") && !is_word(&k[last], "MONTH"))
            last++;
        buf_str(out, "interval");
        return is_punct(&k[last + 1], "(") ? find_close(k, last + 1) + 1 : last + 1;
    }
    if (!by || k[i + 1].kind == K_STRING)
        return i;
    int paren = is_punct(&k[i + 1], "("), close = paren ? find_close(k, i + 1) : i;
    if (is_word(&k[close + 1], "GENERATED"))
        by = "bigint";
    else if (paren && is_punct(&k[i + 2], "*"))
        by = "numeric(38)"; // which takes no size of its own
    buf_str(out, by);
    int sized = !strcmp(by, "numeric") || !strcmp(by, "varchar");
    if (paren && sized) {
        for (int j = i + 1; j <= close; j++)
            if (!is_word(&k[j], "CHAR") && !is_word(&k[j], "BYTE"))
                buf_str(out, k[j].text);
    }
    return close + 1;
}

// is_builtin says whether a package is one of Oracle's: they are schemas here.
static int is_builtin(const char *name) {
    return !strncmp(name, "DBMS_", 5) || !strncmp(name, "UTL_", 4) || !strcmp(name, "SYS");
}

// chain_length counts the words of a.b.c from i.
static int chain_length(const Rewriter *w, int i) {
    int n = 1;
    while (i + 2 * n < w->to && is_punct(&w->k[i + 2 * n - 1], ".") && w->k[i + 2 * n].kind == K_WORD)
        n++;
    return n;
}

// rw_sequence writes seq.NEXTVAL as a function.
static int rw_sequence(Rewriter *w, int i, int n) {
    const Tok *last = &w->k[i + 2 * (n - 1)];
    buf_str(w->out, is_word(last, "NEXTVAL") ? "nextval('" : "currval('");
    for (int j = 0; j < n - 1; j++)
        buf_fmt(w->out, "%s%s", j ? "." : "", w->k[i + 2 * j].raw);
    buf_str(w->out, "')");
    return i + 2 * n - 1;
}

// rw_member writes pkg.member, when it belongs to a package: built-in packages
// are schemas, their constants functions; a member of another package is a
// function with a dot in its name. Returns i when it is something else.
static int rw_member(Rewriter *w, int i, int n) {
    const Tok *k = w->k;
    int call = is_punct(&k[i + 2 * n - 1], "("), end = i + 2 * n - 1;
    if (is_word(&k[i], "SYS") && n == 3) {
        i += 2;
        n--;
    }
    if (n >= 2 && is_builtin(k[i].text)) {
        size_t len = strlen(k[i + 2].text);
        int type = len > 2 && !strcmp(k[i + 2].text + len - 2, "_T");
        buf_fmt(w->out, "%s.%s%s", k[i].raw, k[i + 2].raw, call || type ? "" : "()");
        return end;
    }
    int into = i > w->from && is_word(&k[i - 1], "INTO");
    if (!call || into || n < 2 || n > 3 || (w->mode & RW_DDL))
        return i;
    char *name = lower(xstrdup(k[end - 3].raw)), *member = lower(xstrdup(k[end - 1].raw));
    if (n == 3)
        buf_fmt(w->out, "%s.", k[i].raw);
    buf_fmt(w->out, "\"%s.%s\"", name, member);
    free(name);
    free(member);
    return end;
}

// rw_package writes a name that the package being translated declares.
static int rw_package(Rewriter *w, int i) {
    for (int j = 0; w->pkg && j < w->pkg->n; j++) {
        if (strcmp(w->k[i].text, w->pkg->names[j]))
            continue;
        char *member = lower(xstrdup(w->k[i].text));
        int call = is_punct(&w->k[i + 1], "("); // a function without parameters needs no parentheses
        buf_fmt(w->out, call ? "\"%s.%s\"" : "\"%s.%s\"()", w->pkg->name, member);
        free(member);
        return i + 1;
    }
    return i;
}

// rw_alone writes a word that is part of no chain and means something else
// here. Returns i when it is an ordinary word.
static int rw_alone(Rewriter *w, int i) {
    const Tok *k = w->k, *tok = &k[i], *next = &k[i + 1];
    int call = is_punct(next, "("), ddl = w->mode & RW_DDL;
    if ((w->mode & RW_TYPES) || w->cast_depth >= 0) {
        int j = rewrite_type(k, i, w->mode & RW_PLSQL, w->out);
        if (j != i)
            return j;
    }
    for (size_t j = 0; j < sizeof replaced / sizeof *replaced && !call; j++) {
        int column = ddl && is_word(tok, "USER") && !(i > 0 && is_word(&k[i - 1], "DEFAULT"));
        if (!strcmp(tok->text, replaced[j].word) && !column) {
            buf_str(w->out, replaced[j].by);
            return i + 1;
        }
    }
    if (call && (is_word(tok, "SYSTIMESTAMP") || is_word(tok, "CURRENT_TIMESTAMP"))) {
        buf_str(w->out, "ocisim.systimestamp()");
        return find_close(k, i + 1) + 1;
    }
    if (call && is_word(tok, "NVL")) {
        buf_str(w->out, "COALESCE");
        return i + 1;
    }
    if (is_word(tok, "SQL") && is_punct(next, "%") && k[i + 2].kind == K_WORD) {
        const Tok *what = &k[i + 2];
        buf_str(w->out, is_word(what, "FOUND")      ? "(ocisim_rowcount > 0)"
                        : is_word(what, "NOTFOUND") ? "(ocisim_rowcount = 0)"
                                                    : "ocisim_rowcount");
        return i + 3;
    }
    if ((w->mode & RW_PLSQL) && is_word(tok, "PLSQL_UNIT_OWNER")) {
        buf_str(w->out, "upper(current_user::text)");
        return i + 1;
    }
    if ((w->mode & RW_PLSQL) && is_word(tok, "SQLCODE")) {
        buf_str(w->out, "ocisim.sqlcode(SQLSTATE, SQLERRM)");
        return i + 1;
    }
    return i;
}

// rw_clause notes the words that steer the rest of a statement.
static int rw_clause(Rewriter *w, int i) {
    const Tok *k = w->k, *tok = &k[i];
    Trans *t = w->t;
    if (is_word(tok, "RETURNING"))
        w->returning = 1;
    if (is_word(tok, "CAST") && is_punct(&k[i + 1], "("))
        w->cast_depth = w->depth;
    if (w->returning && !(w->mode & RW_PLSQL) && w->depth == 0 && is_word(tok, "INTO")) {
        w->into = 1;
        return i + 1;
    }
    if (is_word(tok, "UPDATE") && i > w->from && is_word(&k[i - 1], "FOR"))
        t->for_update = 1;
    if ((t->for_update || is_word(&k[0], "LOCK")) && is_word(tok, "WAIT") && k[i + 1].kind == K_NUMBER) {
        if (!(w->mode & RW_PLSQL)) // plsql.c bounds the statement alone
            t->lock_wait = 1 + atoi(k[i + 1].text);
        return i + 2;
    }
    if (is_word(tok, "DELETE") && i == w->from && !is_word(&k[i + 1], "FROM")) {
        buf_str(w->out, "DELETE FROM");
        return i + 1;
    }
    return i;
}

// rw_word writes the word at i, with what belongs to it.
static int rw_word(Rewriter *w, int i) {
    int j, n = chain_length(w, i);
    const Tok *last = &w->k[i + 2 * (n - 1)];
    if ((j = rewrite_json(w, i)) != i)
        return j;
    if (n > 1 && (is_word(last, "NEXTVAL") || is_word(last, "CURRVAL")))
        return rw_sequence(w, i, n);
    if (n > 1 && (j = rw_member(w, i, n)) != i)
        return j;
    if (n == 1 && ((j = rw_clause(w, i)) != i || (j = rw_package(w, i)) != i || (j = rw_alone(w, i)) != i))
        return j;
    for (j = 0; j < n; j++) {
        if (j)
            buf_str(w->out, ".");
        put_word(&w->k[i + 2 * j], w->out);
    }
    return i + 2 * n - 1;
}

// rw_bind writes a bind: a parameter, or in a block a variable.
static void rw_bind(Rewriter *w, const Tok *tok) {
    int no = add_placeholder(w->t, tok->text, w->into);
    if (w->mode & RW_PLSQL)
        buf_fmt(w->out, "ocisim_b%d", no);
    else if (!w->into)
        buf_fmt(w->out, "$%d", no);
}

// rw_one writes the token at i and returns the next.
static int rw_one(Rewriter *w, int i) {
    const Tok *tok = &w->k[i];
    if (tok->space && w->out->n)
        buf_str(w->out, " ");
    switch (tok->kind) {
    case K_WORD: return rw_word(w, i);
    case K_QUOTED: put_quoted(w->t, tok, w->out); return i + 1;
    case K_STRING: put_string(tok->text, w->out); return i + 1;
    case K_BIND: rw_bind(w, tok); return i + 1;
    case K_PUNCT:
        w->depth += is_punct(tok, "(");
        if (is_punct(tok, ")") && --w->depth <= w->cast_depth)
            w->cast_depth = -1;
        if ((w->into && is_punct(tok, ",")) || ((w->mode & RW_PLSQL) && is_punct(tok, "$")))
            return i + 1;
        break;
    default: break;
    }
    buf_str(w->out, tok->text);
    return i + 1;
}

// rewrite writes the tokens [from, to).
void rewrite(Trans *t, const Tok *k, int from, int to, int mode, const Package *pkg, Buf *out) {
    Rewriter w = {
        .t = t, .k = k, .from = from, .to = to, .out = out, .mode = mode, .pkg = pkg, .cast_depth = -1};
    for (int i = from; i < to;)
        i = rw_one(&w, i);
}
