// The clauses of a statement, judged for Oracle 19c: SELECT needs FROM, a table
// takes no AS, VALUES takes one row, and so on.
#include "sql.h"

// Clause is where in a query a token stands.
typedef enum { C_NONE, C_SELECT, C_FROM, C_WHERE, C_GROUP, C_ORDER, C_SET, C_VALUES, C_INTO } Clause;

enum { MAX_DEPTH = 128, MAX_ALIASES = 64 };

// Level is a query, by its parentheses.
typedef struct {
    Clause clause;
    int query, has_from; // SELECT was seen, and its FROM
    int fetch;           // FETCH FIRST or GROUP BY or DISTINCT was seen
    int paren;           // what the parenthesis belongs to: 1 = CAST, EXTRACT, TRIM
    const char *alias[MAX_ALIASES];
    int naliases;
} Level;

// Walk goes over the tokens with a stack of levels.
typedef struct {
    Trans *t;
    const Tok *k;
    int i, depth;
    Level at[MAX_DEPTH];
} Walk;

// end_query judges what a query is when it ends.
static void end_query(Walk *w) {
    Level *l = &w->at[w->depth];
    if (l->query && !l->has_from)
        refuse(w->t, 923, "FROM keyword not found where expected");
    l->query = l->has_from = l->fetch = 0;
    l->naliases = 0;
}

// open_paren starts a level.
static void open_paren(Walk *w) {
    static const char *const takes_from[] = {"CAST", "EXTRACT", "TRIM", "OVER", NULL};
    if (w->depth + 1 < MAX_DEPTH)
        w->depth++;
    memset(&w->at[w->depth], 0, sizeof(Level));
    w->at[w->depth].paren = w->i > 0 && in_words(&w->k[w->i - 1], takes_from);
}

// close_paren ends a level.
static void close_paren(Walk *w) {
    end_query(w);
    if (w->depth > 0)
        w->depth--;
}

// check_as judges AS: it names columns, not tables.
static void check_as(Walk *w, Level *l) {
    const Tok *next = &w->k[w->i + 1], *prev = &w->k[w->i - 1];
    int cte = is_punct(next, "("); // WITH x AS (
    if (l->clause == C_SELECT && next->kind == K_WORD && l->naliases < MAX_ALIASES &&
        !(prev->kind == K_WORD && !strcmp(prev->text, next->text)))
        l->alias[l->naliases++] = next->text;
    int table = l->clause == C_FROM || l->clause == C_INTO ||
                (w->t->type == S_UPDATE && w->depth == 0 && l->clause == C_NONE);
    if (table && !cte && !is_word(next, "OF") && !l->paren)
        refuse(w->t, 933, "SQL command not properly ended (AS before the alias of a table)");
}

// check_from judges FROM by what came before.
static void check_from(Walk *w, Level *l) {
    if (l->paren || (w->i > 0 && is_word(&w->k[w->i - 1], "DISTINCT")))
        return;
    if (w->t->type == S_UPDATE && l->clause == C_SET && !l->query)
        refuse(w->t, 933, "SQL command not properly ended (UPDATE ... FROM)");
    l->has_from = 1;
    l->clause = C_FROM;
}

// check_group judges the list of GROUP BY.
static void check_group(Walk *w, Level *l) {
    const Tok *k = w->k;
    int i = w->i;
    l->fetch = 1;
    l->clause = C_GROUP;
    for (i += 2; k[i].kind != K_END && !is_punct(&k[i], ")"); i++) {
        int single = is_punct(&k[i + 1], ",") || is_punct(&k[i + 1], ")") || k[i + 1].kind == K_END ||
                     is_word(&k[i + 1], "ORDER") || is_word(&k[i + 1], "HAVING");
        if (k[i].kind == K_NUMBER && single)
            refuse(w->t, 979, "not a GROUP BY expression (a number is no column)");
        for (int j = 0; j < l->naliases && single && !is_punct(&k[i - 1], "."); j++)
            if (is_word(&k[i], l->alias[j]))
                refuse(w->t, 904, "\"%s\": invalid identifier (an alias in GROUP BY)", k[i].text);
        if (is_punct(&k[i], "("))
            i = find_close(k, i) - 1;
        if (is_word(&k[i], "ORDER") || is_word(&k[i], "HAVING"))
            return;
    }
}

// check_for judges FOR UPDATE: not with FETCH FIRST, GROUP BY, DISTINCT.
static void check_for(Walk *w, const Level *l) {
    if (is_word(&w->k[w->i + 1], "UPDATE") && l->fetch)
        refuse(w->t, 2014, "cannot select FOR UPDATE from view with DISTINCT, GROUP BY, etc.");
    if (is_word(&w->k[w->i + 1], "SHARE"))
        refuse(w->t, 1786, "FOR UPDATE of this query expression is not allowed (FOR SHARE)");
}

// check_fetch judges OFFSET n ROWS FETCH FIRST n ROWS ONLY.
static void check_fetch(Walk *w, Level *l) {
    const Tok *k = w->k;
    int i = w->i;
    if (is_word(&k[i], "FETCH"))
        l->fetch = 1;
    if (is_word(&k[i], "OFFSET") && !is_word(&k[i + 2], "ROWS") && !is_word(&k[i + 2], "ROW"))
        refuse(w->t, 933, "SQL command not properly ended (OFFSET without ROWS)");
}

// start_clause notes which clause a word begins.
static void start_clause(Level *l, const Tok *tok) {
    static const struct {
        const char *word;
        Clause clause;
    } starts[] = {{"WHERE", C_WHERE},   {"HAVING", C_WHERE}, {"ORDER", C_ORDER}, {"SET", C_SET},
                  {"VALUES", C_VALUES}, {"INTO", C_INTO},    {"ON", C_WHERE},    {"JOIN", C_FROM},
                  {"CONNECT", C_WHERE}, {"FETCH", C_ORDER},  {"OFFSET", C_ORDER}};
    for (size_t j = 0; j < sizeof starts / sizeof *starts; j++)
        if (is_word(tok, starts[j].word))
            l->clause = starts[j].clause;
}

// check_returning wants RETURNING ... INTO.
static void check_returning(Walk *w) {
    int i = w->i;
    while (w->k[i].kind != K_END && !is_word(&w->k[i], "INTO"))
        i++;
    if (w->k[i].kind == K_END)
        refuse(w->t, 925, "missing INTO keyword");
}

// walk_word judges the word at hand.
static void walk_word(Walk *w) {
    static const char *const unions[] = {"UNION", "INTERSECT", "MINUS", NULL};
    const Tok *tok = &w->k[w->i];
    Level *l = &w->at[w->depth];
    if (in_words(tok, unions))
        end_query(w);
    if (is_word(tok, "SELECT")) {
        l->query = 1;
        l->has_from = 0;
        l->clause = C_SELECT;
        l->fetch = is_word(&w->k[w->i + 1], "DISTINCT");
    }
    start_clause(l, tok);
    if (is_word(tok, "FROM"))
        check_from(w, l);
    if (is_word(tok, "AS") && w->i > 0)
        check_as(w, l);
    if (is_word(tok, "GROUP") && is_word(&w->k[w->i + 1], "BY"))
        check_group(w, l);
    if (is_word(tok, "FOR") && w->t->type == S_SELECT)
        check_for(w, l);
    if (is_word(tok, "FETCH") || is_word(tok, "OFFSET"))
        check_fetch(w, l);
    if (is_word(tok, "USING") && w->t->type == S_DELETE && w->depth == 0)
        refuse(w->t, 933, "SQL command not properly ended (DELETE ... USING)");
    if (is_word(tok, "DISTINCT") && w->i > 0 && is_word(&w->k[w->i - 1], "IS"))
        refuse(w->t, 908, "missing NULL keyword (IS DISTINCT FROM)");
    if (is_word(tok, "RETURNING") && w->depth == 0)
        check_returning(w);
}

// check_clauses judges the clauses of a statement.
void check_clauses(Trans *t, const Tok *k, int n) {
    Walk *w = xcalloc(sizeof *w);
    w->t = t;
    w->k = k;
    for (w->i = 0; w->i < n; w->i++) {
        if (is_punct(&k[w->i], "(")) {
            open_paren(w);
        } else if (is_punct(&k[w->i], ")")) {
            int values = w->depth == 1 && w->at[0].clause == C_VALUES && is_punct(&k[w->i + 1], ",");
            if (values)
                refuse(t, 933, "SQL command not properly ended (VALUES of several rows)");
            close_paren(w);
        } else if (k[w->i].kind == K_WORD) {
            walk_word(w);
        }
    }
    while (w->depth > 0)
        close_paren(w);
    end_query(w);
    free(w);
}
