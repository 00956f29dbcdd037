// The translator of SQL: text becomes tokens (lex.c), which are judged
// (strict.c) and rewritten (rewrite.c, ddl.c, plsql.c, package.c). There is no
// parser: a rule looks at a token and its neighbours.
#pragma once
#include "ocisim.h"

typedef enum { K_END, K_WORD, K_QUOTED, K_NUMBER, K_STRING, K_BIND, K_PUNCT } TokKind;

// Tok is a token. A list of them ends with K_END.
typedef struct {
    TokKind kind;
    char *text; // words in upper case, the inside of quotes, the name of a bind, punctuation
    char *raw;  // words as they were written
    int space;  // white space or a comment stood before it
    int line;   // of the text, from 1
} Tok;

// Package is what a body being translated may call by its short name.
typedef struct {
    const char *name; // lower case
    char **names;     // subprograms and constants, upper case
    int n;
} Package;

// Modes of rewriting.
enum {
    RW_TYPES = 1, // names of types may stand anywhere: DDL, declarations
    RW_PLSQL = 2, // binds are variables, INTO is not RETURNING INTO of the driver
    RW_DDL = 4
};

// Rewriter carries the state of rewriting a range of tokens.
typedef struct {
    Trans *t;
    const Tok *k;
    int from, to;
    Buf *out;
    int mode;
    const Package *pkg;
    int depth, cast_depth; // of parentheses; cast_depth is -1 outside CAST
    int returning, into;
} Rewriter;

Tok *lex(const char *sql, int *n);
void toks_free(Tok *t);
int is_word(const Tok *t, const char *w);
int is_punct(const Tok *t, const char *w);
int in_words(const Tok *t, const char *const *words);
int find_close(const Tok *t, int i);
int find_end(const Tok *t, int i);
const char *seq(const Tok *t, int i, const char *words);

void rewrite(Trans *t, const Tok *k, int from, int to, int mode, const Package *pkg, Buf *out);
int rewrite_type(const Tok *k, int i, int plsql, Buf *out);
void put_quoted(Trans *t, const Tok *tok, Buf *out);
void put_string(const char *s, Buf *out);
int add_placeholder(Trans *t, const char *name, int isout);
void mark_long(Trans *t, const Tok *k, int n);

void refuse(Trans *t, int code, const char *fmt, ...) PRINTF(3, 4);
void check_strict(Trans *t, const Tok *k, int n);
void check_clauses(Trans *t, const Tok *k, int n);

int translate_ddl(Trans *t, const Tok *k, int n, Buf *out);
int translate_grant(const Tok *k, int n, Buf *out);
void translate_block(Trans *t, const Tok *k, int n, const Package *pkg, Buf *out);
void translate_subprogram(Trans *t, const Tok *k, int from, int to, const Package *pkg, int result, Buf *out);
void translate_package(Trans *t, const Tok *k, const char *constants, Buf *out);
int rewrite_json(Rewriter *w, int i);
