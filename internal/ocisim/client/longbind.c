// Long values: where Oracle takes them. In SQL a bind longer than a VARCHAR2 or
// RAW of SQL may be stood for by a whole value of INSERT ... VALUES or UPDATE ...
// SET and nothing else; PL/SQL takes 32,767 bytes, and hands no more to its SQL
// than SQL takes.
#include "sql.h"

enum { SQL_CHARS = 4000, SQL_RAW = 2000, PLSQL_MAX = 32767 };

// statement_start finds the first token of the statement that token i is in.
static int statement_start(const Tok *k, int i) {
    static const char *const before[] = {"BEGIN", "THEN", "ELSE", "LOOP", NULL};
    int cases = 0;
    for (; i > 0; i--) {
        if (is_punct(&k[i - 1], ";"))
            return i;
        cases += is_word(&k[i - 1], "END");
        if (is_word(&k[i - 1], "CASE") && cases)
            cases--;
        else if (!cases && in_words(&k[i - 1], before))
            return i;
    }
    return i;
}

// in_values says whether the bind at i is a whole value of VALUES (...).
static int in_values(const Tok *k, int i) {
    if (!(is_punct(&k[i - 1], "(") || is_punct(&k[i - 1], ",")) ||
        !(is_punct(&k[i + 1], ")") || is_punct(&k[i + 1], ",")))
        return 0;
    int depth = 1, j = i;
    while (j > 1 && depth) {
        j--;
        depth += is_punct(&k[j], ")") - is_punct(&k[j], "(");
    }
    return !depth && is_word(&k[j - 1], "VALUES");
}

// in_set says whether the bind at i is a whole value of SET.
static int in_set(const Tok *k, int i) {
    static const char *const after[] = {"WHERE", "RETURNING", NULL};
    static const char *const heads[] = {"SET", "WHERE", "ON", "SELECT", "HAVING", NULL};
    int ends = is_punct(&k[i + 1], ",") || is_punct(&k[i + 1], ";") || k[i + 1].kind == K_END ||
               in_words(&k[i + 1], after);
    if (!is_punct(&k[i - 1], "=") || !ends)
        return 0;
    for (int j = i - 1, depth = 0; j > 0; j--) {
        depth += is_punct(&k[j], ")") - is_punct(&k[j], "(");
        if (depth < 0)
            return 0;
        if (!depth && in_words(&k[j], heads))
            return is_word(&k[j], "SET");
    }
    return 0;
}

// mark_long notes the binds of SQL that may not be long.
void mark_long(Trans *t, const Tok *k, int n) {
    static const char *const sql[] = {"INSERT", "UPDATE", "DELETE", "MERGE", "SELECT", "WITH", NULL};
    for (int i = 1, no = 0; i < n; i++) {
        if (k[i].kind != K_BIND)
            continue;
        int at = t->block ? add_placeholder(t, k[i].text, 0) - 1 : no++;
        if (at < t->nph && in_words(&k[statement_start(k, i)], sql) && !in_values(k, i) && !in_set(k, i))
            t->isshort[at] = 1;
    }
}

// long_refused judges row it of a bind. after is set once a long value has come:
// another that may be long, but is none for a LOB, may not follow it.
int long_refused(const Trans *t, int ph, Bind *b, uint32_t it, int *after, Err *e) {
    int raw = b->dty == T_BIN || b->dty == T_LBI, chars = b->dty == T_CHR || b->dty == T_AFC || b->dty == T_LNG;
    if (!raw && !chars)
        return OK;
    uint32_t n = bind_length(b, it), most = raw ? SQL_RAW : SQL_CHARS;
    if (t->block && (n > PLSQL_MAX || (t->isshort[ph] && n > most)))
        return seterr(e, 1460, "unimplemented or unreasonable conversion requested (:%s has %u bytes)", t->ph[ph], n);
    if (t->isshort[ph] && n > most)
        return seterr(e, 1461, "can bind a LONG value only for insert into a LONG column (:%s has %u bytes)",
                      t->ph[ph], n);
    int is_long = raw ? n > SQL_CHARS : (b->mode & BIND_DYNAMIC) != 0;
    if (!t->block && *after && !is_long && chars && b->sz > SQL_CHARS)
        return seterr(e, 24816, "Expanded non LONG bind data supplied after actual LONG or LOB column (:%s)",
                      t->ph[ph]);
    *after |= is_long;
    return OK;
}
