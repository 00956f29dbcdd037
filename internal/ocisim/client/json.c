// JSON, as far as the project's package uses it: JSON_ARRAY of one value,
// IS JSON [STRICT] [WITH UNIQUE KEYS] of a name, JSON_ARRAY_T with GET_SIZE,
// GET_STRING(n) and GET(n).IS_OBJECT.
#include "sql.h"

// method writes v.GET_SIZE and v.GET(n).IS_OBJECT.
static int method(Rewriter *w, int i) {
    const Tok *k = w->k;
    if (is_word(&k[i + 2], "GET_SIZE")) {
        buf_fmt(w->out, "jsonb_array_length(%s)", k[i].raw);
        return i + 3;
    }
    if (is_word(&k[i + 2], "GET_STRING") && is_punct(&k[i + 3], "(")) {
        int end = find_close(k, i + 3);
        buf_fmt(w->out, "ocisim.json_string(%s, ", k[i].raw);
        rewrite(w->t, k, i + 4, end, w->mode, w->pkg, w->out);
        buf_str(w->out, ")");
        return end + 1;
    }
    if (!is_word(&k[i + 2], "GET") || !is_punct(&k[i + 3], "("))
        return i;
    int close = find_close(k, i + 3);
    if (!is_punct(&k[close + 1], ".") || !is_word(&k[close + 2], "IS_OBJECT"))
        return i;
    buf_fmt(w->out, "ocisim.json_is_object(%s, ", k[i].raw);
    rewrite(w->t, k, i + 4, close, w->mode, w->pkg, w->out);
    buf_str(w->out, ")");
    return close + 3;
}

// rewrite_json writes what stands at i if it is about JSON. Returns i when it
// is not.
int rewrite_json(Rewriter *w, int i) {
    const Tok *k = w->k;
    int type = is_word(&k[i + 1], "VARCHAR2") || is_word(&k[i + 1], "CLOB");
    if (is_word(&k[i], "RETURNING") && type && w->depth > 0)
        return is_punct(&k[i + 2], "(") ? find_close(k, i + 2) + 1 : i + 2;
    if (is_word(&k[i], "WITH") && is_word(&k[i + 1], "WRAPPER") && w->depth > 0) {
        buf_str(w->out, ", true");
        return i + 2;
    }
    if (is_word(&k[i], "FORMAT") && is_word(&k[i + 1], "JSON") && w->depth > 0)
        return i + 2;
    if (is_word(&k[i], "JSON_ARRAY_T") && !*seq(k, i + 1, ". PARSE")) {
        buf_str(w->out, "ocisim.json_parse");
        return i + 3;
    }
    if (is_word(&k[i + 1], "IS") && is_word(&k[i + 2], "JSON")) {
        int end = is_word(&k[i + 3], "STRICT") ? i + 4 : i + 3, unique = !*seq(k, end, "WITH UNIQUE KEYS");
        buf_fmt(w->out, "ocisim.is_json(%s%s)", k[i].raw, unique ? ", true" : "");
        return unique ? end + 3 : end;
    }
    return (w->mode & RW_PLSQL) && is_punct(&k[i + 1], ".") ? method(w, i) : i;
}
