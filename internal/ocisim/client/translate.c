// From a statement as the driver prepares it to one that PostgreSQL runs.
#include "sql.h"

// kinds maps first words to kinds of statements.
static const struct {
    const char *word;
    int type;
} kinds[] = {{"SELECT", S_SELECT}, {"WITH", S_SELECT},      {"UPDATE", S_UPDATE}, {"DELETE", S_DELETE},
             {"INSERT", S_INSERT}, {"CREATE", S_CREATE},    {"DROP", S_DROP},     {"ALTER", S_ALTER},
             {"BEGIN", S_BEGIN},   {"DECLARE", S_DECLARE},  {"CALL", S_CALL},     {"MERGE", S_MERGE},
             {"COMMIT", S_COMMIT}, {"ROLLBACK", S_ROLLBACK}};

// kind_of finds the kind of a statement.
static int kind_of(const Tok *k) {
    while (is_punct(k, "("))
        k++;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (is_word(k, kinds[i].word))
            return kinds[i].type;
    return S_UNKNOWN;
}

// special_of finds the statements that the library carries out itself.
static Special special_of(const Tok *k, int type) {
    if (type == S_ALTER && is_word(&k[1], "SESSION"))
        return SP_ALTER_SESSION;
    if (is_word(k, "SET"))
        return SP_SET;
    if (type == S_COMMIT || type == S_ROLLBACK || is_word(k, "SAVEPOINT"))
        return SP_TXN;
    return SP_NONE;
}

// refuse notes that Oracle would not take the statement; the first word wins.
void refuse(Trans *t, int code, const char *fmt, ...) {
    va_list ap;
    if (t->bad)
        return;
    t->bad = code;
    va_start(ap, fmt);
    vsnprintf(t->badmsg, sizeof t->badmsg, fmt, ap);
    va_end(ap);
}

// translate_call makes CALL p(...) the block BEGIN p(...); END;.
static void translate_call(Trans *t, const char *sql, Buf *out) {
    const char *p = strcasestr(sql, "CALL") + 4;
    Buf block = {0};
    int n;
    buf_fmt(&block, "BEGIN %s; END;", p);
    Tok *k = lex(block.p, &n);
    translate_block(t, k, n, NULL, out);
    toks_free(k);
    free(block.p);
}

// add_cursor makes SELECT FOR UPDATE a cursor: rows are locked as they are
// fetched, which matters for SKIP LOCKED.
static void add_cursor(Trans *t, Buf *out) {
    static int no;
    Buf b = {0};
    t->cursor = __sync_add_and_fetch(&no, 1);
    buf_fmt(&b, "DECLARE ocisim_c%d NO SCROLL CURSOR FOR %s", t->cursor, out->p);
    free(out->p);
    *out = b;
}

// translate_sql translates a statement that is no block.
static void translate_sql(Trans *t, const Tok *k, int n, Buf *out) {
    const char *strict = getenv("OCISIM_STRICT");
    int package =
        t->type == S_CREATE && (*seq(k, 1, "PACKAGE") == 0 || *seq(k, 1, "OR REPLACE PACKAGE") == 0 ||
                                *seq(k, 1, "OR REPLACE EDITIONABLE PACKAGE") == 0);
    if (package) {
        translate_package(t, k, "", out);
        return;
    }
    if (!strict || *strict != '0')
        check_strict(t, k, n);
    if (n && is_punct(&k[n - 1], ";"))
        n--;
    if (!t->ddl || !translate_ddl(t, k, n, out))
        rewrite(t, k, 0, n, t->ddl ? RW_TYPES | RW_DDL : 0, NULL, out);
    if (t->type == S_SELECT && t->for_update)
        add_cursor(t, out);
}

// translate translates a statement. What Oracle would refuse is noted in
// t->bad and reported when the statement is executed.
void translate(const char *sql, Trans *t) {
    static const char *const ddl[] = {"CREATE", "DROP",   "ALTER",   "TRUNCATE",
                                      "GRANT",  "REVOKE", "COMMENT", NULL};
    Buf out = {0};
    int n;
    Tok *k = lex(sql, &n);
    memset(t, 0, sizeof *t);
    buf_str(&out, "");
    t->type = kind_of(k);
    t->special = special_of(k, t->type);
    t->ddl = !t->special && in_words(k, ddl);
    if (t->special)
        buf_str(&out, sql);
    else if (t->type == S_BEGIN || t->type == S_DECLARE)
        translate_block(t, k, n, NULL, &out);
    else if (t->type == S_CALL)
        translate_call(t, sql, &out);
    else
        translate_sql(t, k, n, &out);
    if (!t->special && !t->ddl && t->type != S_CALL)
        mark_long(t, k, n);
    toks_free(k);
    if (t->block) {
        free(t->block);
        t->block = out.p;
        t->sql = xstrdup("");
    } else {
        t->sql = out.p;
    }
    debug("translated, type %d: %s", t->type, out.p);
}

// trans_free frees a translation.
void trans_free(Trans *t) {
    free(t->sql);
    free(t->block);
    for (int i = 0; i < t->nph; i++)
        free(t->ph[i]);
    free(t->ph);
    free(t->isout);
    free(t->isset);
    free(t->isshort);
    for (int i = 0; i < t->nquoted; i++)
        free(t->quoted[i]);
    free(t->quoted);
    memset(t, 0, sizeof *t);
}
