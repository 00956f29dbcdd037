// Tokens of Oracle's SQL.
#include "sql.h"
#include <ctype.h>
#include <strings.h>

// AHEAD is how far a rule may look past the end: more K_END stand there.
enum { AHEAD = 8 };

// name_char says whether c may stand inside a name.
static int name_char(int c) {
    return isalnum(c) || c == '_' || c == '$' || c == '#' || (c & 0x80);
}

// skip_space skips white space and comments.
static const char *skip_space(const char *s) {
    for (;;) {
        while (isspace((unsigned char)*s))
            s++;
        if (s[0] == '-' && s[1] == '-') {
            while (*s && *s != '\n')
                s++;
        } else if (s[0] == '/' && s[1] == '*') {
            const char *e = strstr(s + 2, "*/");
            s = e ? e + 2 : s + strlen(s);
        } else {
            return s;
        }
    }
}

// lex_string reads 'it''s' and leaves it's.
static const char *lex_string(const char *s, Tok *t) {
    Buf b = {0};
    buf_str(&b, "");
    for (s++; *s; s++) {
        if (*s == '\'' && *++s != '\'')
            break;
        buf_add(&b, s, 1);
    }
    t->kind = K_STRING;
    t->text = b.p;
    return s;
}

// lex_q_string reads q'[it's]' and leaves it's.
static const char *lex_q_string(const char *s, Tok *t) {
    static const char open[] = "[({<", close[] = "])}>";
    const char *at = strchr(open, s[2]);
    char end = at ? close[at - open] : s[2];
    const char *b = s + 3, *e = b;
    while (*e && !(e[0] == end && e[1] == '\''))
        e++;
    t->kind = K_STRING;
    t->text = xstrndup(b, (size_t)(e - b));
    return *e ? e + 2 : e;
}

// lex_bind reads :name or :"Name".
static const char *lex_bind(const char *s, Tok *t) {
    const char *b = ++s;
    t->kind = K_BIND;
    if (*b == '"') {
        for (s++, b++; *s && *s != '"'; s++)
            ;
        t->text = upper(xstrndup(b, (size_t)(s - b)));
        return *s ? s + 1 : s;
    }
    while (name_char((unsigned char)*s))
        s++;
    t->text = upper(xstrndup(b, (size_t)(s - b)));
    return s;
}

// lex_number reads a number, but not the dots of 1..10.
static const char *lex_number(const char *s, Tok *t) {
    const char *b = s;
    while (isdigit((unsigned char)*s) || (*s == '.' && s[1] != '.'))
        s++;
    if ((*s == 'e' || *s == 'E') && (isdigit((unsigned char)s[1]) || s[1] == '-' || s[1] == '+')) {
        s += 2;
        while (isdigit((unsigned char)*s))
            s++;
    }
    t->kind = K_NUMBER;
    t->text = xstrndup(b, (size_t)(s - b));
    return s;
}

// lex_punct reads one sign, or two that belong together.
static const char *lex_punct(const char *s, Tok *t) {
    static const char *const two[] = {":=", "=>", "::", "||", "<=", ">=", "<>",
                                      "!=", "^=", "..", "->", "@>", NULL};
    size_t n = 1;
    for (int i = 0; two[i]; i++)
        if (!strncmp(s, two[i], 2))
            n = 2;
    t->kind = K_PUNCT;
    t->text = xstrndup(s, n);
    return s + n;
}

// lex_one reads the token at s.
static const char *lex_one(const char *s, Tok *t) {
    unsigned char c = (unsigned char)*s;
    if (c == '\'')
        return lex_string(s, t);
    if ((c == 'q' || c == 'Q') && s[1] == '\'' && s[2])
        return lex_q_string(s, t);
    if ((c == 'n' || c == 'N') && s[1] == '\'')
        return lex_string(s + 1, t);
    if (c == '"') {
        const char *e = strchr(s + 1, '"');
        if (!e)
            e = s + strlen(s);
        t->kind = K_QUOTED;
        t->text = xstrndup(s + 1, (size_t)(e - s - 1));
        return *e ? e + 1 : e;
    }
    if (c == ':' && (s[1] == '"' || (name_char((unsigned char)s[1]))))
        return lex_bind(s, t);
    if (isdigit(c) || (c == '.' && isdigit((unsigned char)s[1])))
        return lex_number(s, t);
    if (name_char(c) && c != '$') {
        const char *b = s;
        while (name_char((unsigned char)*s))
            s++;
        t->kind = K_WORD;
        t->raw = xstrndup(b, (size_t)(s - b));
        t->text = upper(xstrndup(b, (size_t)(s - b)));
        return s;
    }
    return lex_punct(s, t);
}

// lex reads all tokens; *n does not count the K_END after the last, which is
// followed by more of them, for rules that look ahead.
Tok *lex(const char *sql, int *n) {
    int cap = 64;
    Tok *t = xcalloc(sizeof(Tok) * (size_t)cap);
    const char *s = sql, *counted = sql;
    int line = 1;
    *n = 0;
    for (;;) {
        const char *next = skip_space(s);
        for (; counted < next; counted++)
            line += *counted == '\n';
        Tok one = {K_END, NULL, NULL, next != s, line};
        s = next;
        if (*s)
            s = lex_one(s, &one);
        if (*n + AHEAD >= cap) {
            cap = cap * 2 + AHEAD;
            t = xrealloc(t, sizeof(Tok) * (size_t)cap);
        }
        t[*n] = one;
        if (one.kind == K_END) {
            t[*n].text = xstrdup("");
            memset(&t[*n + 1], 0, sizeof(Tok) * (AHEAD - 1));
            return t;
        }
        ++*n;
    }
}

// toks_free frees a list of tokens.
void toks_free(Tok *t) {
    int i = 0;
    do {
        free(t[i].text);
        free(t[i].raw);
    } while (t[i++].kind != K_END);
    free(t);
}

// is_word says whether a token is this word, given in upper case.
int is_word(const Tok *t, const char *w) {
    return t->kind == K_WORD && !strcmp(t->text, w);
}

// is_punct says whether a token is this sign.
int is_punct(const Tok *t, const char *w) {
    return t->kind == K_PUNCT && !strcmp(t->text, w);
}

// in_words says whether a token is one of the words.
int in_words(const Tok *t, const char *const *words) {
    if (t->kind != K_WORD)
        return 0;
    for (int i = 0; words[i]; i++)
        if (!strcmp(t->text, words[i]))
            return 1;
    return 0;
}

// find_close finds the parenthesis that closes the one at i, or the end.
int find_close(const Tok *t, int i) {
    int depth = 0;
    for (; t[i].kind != K_END; i++) {
        if (is_punct(&t[i], "("))
            depth++;
        else if (is_punct(&t[i], ")") && --depth == 0)
            return i;
    }
    return i;
}

// find_end finds the semicolon after i that is in no parentheses, or the end.
int find_end(const Tok *t, int i) {
    for (; t[i].kind != K_END && !is_punct(&t[i], ";"); i++)
        if (is_punct(&t[i], "(")) {
            i = find_close(t, i);
            if (t[i].kind == K_END)
                break;
        }
    return i;
}

// seq compares the tokens from i with words; the rest of words that did not
// match is returned, "" if all did.
const char *seq(const Tok *t, int i, const char *words) {
    for (const char *w = words; *w; i++) {
        size_t n = strcspn(w, " ");
        if (t[i].kind == K_END || strlen(t[i].text) != n || strncmp(t[i].text, w, n))
            return w;
        w += n;
        while (*w == ' ')
            w++;
    }
    return "";
}
