// DDL: tables, columns, users, comments. Where rows lie is dropped: storage,
// tablespaces, partitions.
#include "sql.h"

// name_end finds the token after owner.name at i.
static int name_end(const Tok *k, int i) {
    return is_punct(&k[i + 1], ".") ? i + 3 : i + 1;
}

// put_table_part writes a column or constraint list, [from, to), without the
// physical parts.
static void put_table_part(Trans *t, const Tok *k, int from, int to, Buf *out) {
    static const char *const dropped[] = {"ENABLE", "VALIDATE", "NOVALIDATE", NULL};
    int start = from, depth = 0;
    for (int i = from; i < to; i++) {
        depth += is_punct(&k[i], "(") - is_punct(&k[i], ")");
        int index = is_word(&k[i], "USING") && is_word(&k[i + 1], "INDEX");
        int on_null = is_word(&k[i], "DEFAULT") && !*seq(k, i + 1, "ON NULL");
        if (!index && !on_null && !in_words(&k[i], dropped))
            continue;
        rewrite(t, k, start, on_null ? i + 1 : i, RW_TYPES | RW_DDL, NULL, out);
        start = on_null ? i + 3 : i + 1;
        if (index) {
            for (int d = 0; start < to; start++) {
                d += is_punct(&k[start], "(") - is_punct(&k[start], ")");
                if (d < 0 || (d == 0 && is_punct(&k[start], ",")))
                    break;
            }
        }
        i = start - 1;
    }
    if (start < to)
        rewrite(t, k, start, to, RW_TYPES | RW_DDL, NULL, out);
}

// create_table writes CREATE TABLE, without what follows the columns.
static int create_table(Trans *t, const Tok *k, int n, Buf *out) {
    int i = 0;
    while (i < n && !is_punct(&k[i], "("))
        i++;
    if (i == n)
        return 0; // AS SELECT
    int close = find_close(k, i);
    rewrite(t, k, 0, i, RW_DDL, NULL, out);
    put_table_part(t, k, i, close + 1, out);
    return 1;
}

// create_index writes CREATE INDEX, without what follows the columns.
static int create_index(Trans *t, const Tok *k, int n, Buf *out) {
    int i = 0;
    while (i < n && !is_punct(&k[i], "("))
        i++;
    int close = find_close(k, i), at = is_word(&k[1], "UNIQUE") ? 3 : 2;
    if (close >= n)
        return 0;
    // an index is named with its owner in Oracle, and is in the schema of its table here
    rewrite(t, k, 0, at, 0, NULL, out);
    rewrite(t, k, is_punct(&k[at + 1], ".") ? at + 2 : at, close + 1, 0, NULL, out);
    return 1;
}

// alter_table writes ADD (a, b) as two columns, and MODIFY (a NULL).
static int alter_table(Trans *t, const Tok *k, int n, Buf *out) {
    int i = name_end(k, 2);
    if (is_word(&k[i], "MODIFY") && is_punct(&k[i + 1], "(") && is_word(&k[i + 3], "NULL") && is_punct(&k[i + 4], ")")) {
        rewrite(t, k, 0, i, RW_DDL, NULL, out);
        buf_str(out, " ALTER COLUMN ");
        rewrite(t, k, i + 2, i + 3, RW_DDL, NULL, out);
        buf_str(out, " DROP NOT NULL");
        return 1;
    }
    if (!is_word(&k[i], "ADD") || !is_punct(&k[i + 1], "(")) {
        put_table_part(t, k, 0, n, out);
        return 1;
    }
    rewrite(t, k, 0, i, RW_DDL, NULL, out);
    int close = find_close(k, i + 1);
    for (int from = i + 2, first = 1; from < close; first = 0) {
        int to = from, depth = 0;
        for (; to < close && (depth || !is_punct(&k[to], ",")); to++)
            depth += is_punct(&k[to], "(") - is_punct(&k[to], ")");
        buf_str(out, first ? " ADD" : ", ADD");
        if (!is_word(&k[from], "CONSTRAINT"))
            buf_str(out, " COLUMN");
        buf_str(out, " ");
        put_table_part(t, k, from, to, out);
        from = to + 1;
    }
    return 1;
}

// create_view writes CREATE [OR REPLACE] [FORCE] [EDITIONABLE] VIEW.
static int create_view(Trans *t, const Tok *k, int view, int n, Buf *out) {
    buf_str(out, is_word(&k[1], "OR") ? "CREATE OR REPLACE " : "CREATE ");
    for (int i = n - 1; i > view; i--) // WITH READ ONLY
        if (is_word(&k[i], "WITH") && is_word(&k[i + 1], "READ"))
            n = i;
    rewrite(t, k, view, n, 0, NULL, out);
    return 1;
}

// create_synonym makes a synonym of a table or view a view of all of it.
static int create_synonym(Trans *t, const Tok *k, int at, int n, Buf *out) {
    int name = name_end(k, at + 1);
    if (!is_word(&k[name], "FOR"))
        return 0;
    buf_str(out, "CREATE OR REPLACE VIEW ");
    rewrite(t, k, at + 1, name, 0, NULL, out);
    buf_str(out, " AS SELECT * FROM ");
    rewrite(t, k, name + 1, n, 0, NULL, out);
    return 1;
}

// create translates the statements that create something.
static int create(Trans *t, const Tok *k, int n, Buf *out) {
    static const char *const words[] = {"OR",          "REPLACE",        "FORCE", "NOFORCE",
                                        "EDITIONABLE", "NONEDITIONABLE", NULL};
    int at = 1;
    while (in_words(&k[at], words))
        at++;
    if (is_word(&k[at], "TABLE"))
        return create_table(t, k, n, out);
    if (is_word(&k[at], "INDEX") || !*seq(k, at, "UNIQUE INDEX"))
        return create_index(t, k, n, out);
    if (is_word(&k[at], "VIEW"))
        return create_view(t, k, at, n, out);
    if (is_word(&k[at], "SYNONYM"))
        return create_synonym(t, k, at, n, out);
    if (is_word(&k[at], "USER") || is_word(&k[at], "ROLE")) {
        buf_fmt(out, "CALL ocisim.create_user('%s', %s)", k[at + 1].text,
                is_word(&k[at], "ROLE") ? "true" : "false");
        return 1;
    }
    if (!is_word(&k[at], "SEQUENCE"))
        return 0;
    static const char *const ignored[] = {"NOCACHE", "NOORDER", "ORDER", "NOCYCLE", "NOKEEP", NULL};
    // A cache is a session's own here, as it is an instance's in a cluster:
    // numbers that are asked for in order need none.
    int ordered = 0;
    for (int i = 0; i < n; i++)
        ordered |= is_word(&k[i], "ORDER");
    for (int i = 0; i < n; i++)
        if (ordered && is_word(&k[i], "CACHE"))
            i++;
        else if (!in_words(&k[i], ignored))
            rewrite(t, k, i, i + 1, RW_DDL, NULL, out);
    return 1;
}

// drop translates the statements that drop something.
static int drop(Trans *t, const Tok *k, int n, Buf *out) {
    if (is_word(&k[1], "USER") || is_word(&k[1], "ROLE")) {
        buf_fmt(out, "CALL ocisim.drop_user('%s')", k[2].text);
        return 1;
    }
    if (is_word(&k[1], "PACKAGE")) {
        int body = is_word(&k[2], "BODY"), at = 2 + body, owned = is_punct(&k[at + 1], ".");
        char *owner = lower(xstrdup(k[at].text)), *name = lower(xstrdup(k[owned ? at + 2 : at].text));
        buf_fmt(out, "CALL ocisim.package_drop(%s%s%s, '%s', %s)", owned ? "'" : "", owned ? owner : "NULL",
                owned ? "'" : "", name, body ? "false" : "true");
        free(owner);
        free(name);
        return 1;
    }
    buf_str(out, is_word(&k[1], "SYNONYM") ? "DROP VIEW" : "DROP");
    for (int i = is_word(&k[1], "SYNONYM") ? 2 : 1; i < n; i++) {
        if (is_word(&k[i], "PURGE") || is_word(&k[i], "CONSTRAINTS"))
            continue;
        rewrite(t, k, i, i + 1, RW_DDL, NULL, out);
    }
    return 1;
}

// comment lets COMMENT ON TABLE name a view, too.
static int comment(const Tok *k, int n, Buf *out) {
    if (!is_word(&k[2], "TABLE"))
        return 0;
    int end = name_end(k, 3);
    buf_str(out, "CALL ocisim.comment_on('");
    for (int i = 3; i < end; i++)
        buf_str(out, k[i].kind == K_WORD ? k[i].raw : k[i].text);
    buf_str(out, "',");
    put_string(end + 1 < n ? k[end + 1].text : "", out);
    buf_str(out, ")");
    return 1;
}

// put_text_array writes the tokens from i up to a word, split at commas, as an
// array of strings. Returns the place of the word.
static int put_text_array(const Tok *k, int i, int n, const char *until, Buf *out) {
    buf_str(out, "ARRAY['");
    for (int first = 1; i < n && !is_word(&k[i], until); i++) {
        if (is_punct(&k[i], ","))
            buf_str(out, "','");
        else if (is_punct(&k[i], "("))
            i = find_close(k, i);
        else
            buf_fmt(out, "%s%s", first || is_punct(&k[i - 1], ",") ? "" : " ", k[i].text);
        first = 0;
    }
    buf_str(out, "']");
    return i;
}

// translate_grant translates GRANT and REVOKE: on tables, on packages, and of
// rights of the system, which are only noted.
int translate_grant(const Tok *k, int n, Buf *out) {
    int grant = is_word(&k[0], "GRANT"), on = 1;
    const char *to = grant ? "TO" : "FROM";
    while (on < n && !is_word(&k[on], "ON") && !is_word(&k[on], to))
        on++;
    if (is_word(&k[on], "ON") && !is_word(&k[1], "EXECUTE"))
        buf_fmt(out, "CALL ocisim.grant_object('%s',", k[0].text);
    else
        buf_fmt(out, "CALL ocisim.%s(", grant ? "grant_privilege" : "revoke_privilege");
    int i = put_text_array(k, 1, n, is_word(&k[on], "ON") ? "ON" : to, out);
    buf_str(out, ",");
    if (is_word(&k[i], "ON")) {
        buf_str(out, "'");
        for (i++; i < n && !is_word(&k[i], to); i++)
            buf_str(out, k[i].text);
        buf_str(out, "',");
    } else {
        buf_str(out, "NULL,");
    }
    put_text_array(k, i + 1, n, "WITH", out);
    buf_str(out, ")");
    return 1;
}

// translate_ddl translates what DDL needs more than rewriting. Returns 0 when
// the statement is to be rewritten as it is.
int translate_ddl(Trans *t, const Tok *k, int n, Buf *out) {
    if (t->type == S_CREATE)
        return create(t, k, n, out);
    if (t->type == S_DROP)
        return drop(t, k, n, out);
    if (is_word(&k[0], "COMMENT"))
        return comment(k, n, out);
    if (is_word(&k[0], "GRANT") || is_word(&k[0], "REVOKE"))
        return translate_grant(k, n, out);
    if (t->type == S_ALTER && is_word(&k[1], "TABLE"))
        return alter_table(t, k, n, out);
    static const char *const noted[] = {"USER", "SYSTEM", "PACKAGE", "VIEW", "INDEX", "PROFILE", NULL};
    if (t->type == S_ALTER && in_words(&k[1], noted)) {
        buf_str(out, "SELECT 1");
        return 1;
    }
    return 0;
}
