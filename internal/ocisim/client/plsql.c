// PL/SQL as PL/pgSQL, statement by statement: a block becomes the body of a
// function, its binds the function's INOUT parameters ocisim_b1, ocisim_b2...
//
// Emulated: declarations, SQL with SQL%ROWCOUNT, SELECT INTO, assignments, IF,
// CASE, loops, handlers of one statement, RAISE_APPLICATION_ERROR, EXECUTE
// IMMEDIATE of a literal, calls. Everything else is refused.
#include "sql.h"

enum { MAX_NESTING = 64 };

// Block is a block being translated.
typedef struct {
    Trans *t;
    const Tok *k;
    int to;
    const Package *pkg;
    Buf *out;
    int result;               // RETURN sets parameter ocisim_result
    int level;                // of BEGIN
    int waits;                // a loop is open whose FOR UPDATE WAIT n sets a limit
    int line;                 // of the text that is written; PL/pgSQL counts one more
    int effects[MAX_NESTING]; // statements with effects in each level
} Block;

// put copies the tokens [from, to) as expressions of PL/SQL.
static void put(Block *b, int from, int to) {
    rewrite(b->t, b->k, from, to, RW_PLSQL, b->pkg, b->out);
}

// effect counts a statement that changes something, in all open levels: a
// handler of PL/pgSQL undoes all of them, Oracle's only the one that failed.
static void effect(Block *b) {
    for (int i = 0; i <= b->level && i < MAX_NESTING; i++)
        b->effects[i]++;
}

// mark_set notes that a bind gets a value back.
static void mark_set(Block *b, const Tok *tok) {
    if (tok->kind == K_BIND)
        b->t->isset[add_placeholder(b->t, tok->text, 0) - 1] = 1;
}

// set_wait sets how long locks are waited for, in seconds; 0 is for ever.
static void set_wait(Block *b, int seconds) {
    buf_fmt(b->out, " PERFORM set_config('lock_timeout','%dms',true);", seconds * 1000);
}

// wait_of is 1 + the seconds of FOR UPDATE WAIT n in [i, end), 0 for none.
static int wait_of(const Block *b, int i, int end) {
    for (; i + 3 < end + 1; i++)
        if (is_word(&b->k[i], "FOR") && is_word(&b->k[i + 1], "UPDATE") && is_word(&b->k[i + 2], "WAIT"))
            return 1 + atoi(b->k[i + 3].text);
    return 0;
}

// sql_statement translates SQL, with its row count.
static int sql_statement(Block *b, int i) {
    int end = find_end(b->k, i), query = is_word(&b->k[i], "SELECT") || is_word(&b->k[i], "WITH"), from = i;
    int wait = wait_of(b, i, end);
    Tok *at = NULL;
    if (wait)
        set_wait(b, wait - 1);
    for (int j = i, depth = 0; j < end; j++) {
        depth += is_punct(&b->k[j], "(") - is_punct(&b->k[j], ")");
        if (depth == 0 && is_word(&b->k[j], "INTO") && (query || (j > i + 1 && !at)))
            at = (Tok *)&b->k[j];
        if (is_word(&b->k[j], "BULK"))
            refuse(b->t, 20998, "ocisim: BULK COLLECT is not emulated");
    }
    if (at) {
        int into = (int)(at - b->k);
        put(b, from, into);
        buf_str(b->out, query ? " INTO STRICT" : " INTO");
        from = into + 1;
        for (int j = from; j < end && !is_word(&b->k[j], "FROM"); j++)
            mark_set(b, &b->k[j]);
    } else if (query) {
        refuse(b->t, 6550,
               "line 1, column 7:\nPLS-00428: an INTO clause is expected in this SELECT statement");
    }
    if (!query)
        effect(b);
    put(b, from, end);
    buf_str(b->out, "; GET DIAGNOSTICS ocisim_rowcount = ROW_COUNT;");
    if (wait)
        set_wait(b, 0);
    return end + 1;
}

// put_bare_name writes the name of a procedure that is called without
// parentheses, and adds them.
static void put_bare_name(Block *b, int i, int end) {
    int builtin = !strncmp(b->k[i].text, "DBMS_", 5);
    Buf name = {0};
    buf_str(&name, "");
    if (b->pkg && end == i + 1)
        buf_fmt(&name, "%s.", b->pkg->name);
    for (int j = i; j < end; j++)
        buf_str(&name, b->k[j].text);
    lower(name.p);
    buf_fmt(b->out, builtin ? "%s()" : "\"%s\"()", name.p);
    free(name.p);
}

// mark_arguments notes the binds that stand alone as arguments: they may be OUT.
static void mark_arguments(Block *b, int i, int end) {
    for (int j = i + 1; j < end; j++) {
        const Tok *before = &b->k[j - 1], *after = &b->k[j + 1];
        int first = is_punct(before, "(") || is_punct(before, ",") || is_punct(before, "=>");
        if (first && (is_punct(after, ")") || is_punct(after, ",")))
            mark_set(b, &b->k[j]);
    }
}

// call_statement translates a call of a procedure. Those of Oracle's packages
// other than DBMS_AQ, and the package's own, are taken to have no effect that a
// handler could undo wrongly.
static int call_statement(Block *b, int i) {
    int end = find_end(b->k, i), builtin = !strncmp(b->k[i].text, "DBMS_", 5);
    mark_arguments(b, i, end);
    if (is_punct(&b->k[i + 1], ".") && (!builtin || is_word(&b->k[i], "DBMS_AQ")))
        effect(b);
    if (is_word(&b->k[i], "DBMS_AQ") && is_word(&b->k[i + 2], "DEQUEUE"))
        b->t->dequeues = 1;
    buf_str(b->out, " CALL ");
    if (is_punct(&b->k[end - 1], ")"))
        put(b, i, end);
    else
        put_bare_name(b, i, end);
    buf_str(b->out, ";");
    return end + 1;
}

// call_function translates target := package.function(...): a routine that
// gives its result as a last parameter, as functions may have OUT parameters.
// Returns 0 when the assignment is none of these.
static int call_function(Block *b, int i, int end) {
    int open = i + 2, n = 0;
    if (!is_punct(&b->k[i + 1], ":="))
        return 0;
    while (b->k[open].kind == K_WORD && is_punct(&b->k[open + 1], ".")) {
        open += 2;
        n++;
    }
    int own = n >= 1 && n <= 2 && b->k[open].kind == K_WORD && is_punct(&b->k[open + 1], "(");
    const char *first = b->k[i + 2].text;
    if (!own || find_close(b->k, open + 1) != end - 1 || !strncmp(first, "DBMS_", 5) ||
        !strncmp(first, "UTL_", 4) || !strncmp(first, "JSON_", 5))
        return 0;
    mark_arguments(b, i + 2, end);
    effect(b);
    char *package = lower(xstrdup(b->k[open - 2].text)), *name = lower(xstrdup(b->k[open].text));
    buf_str(b->out, " CALL ");
    if (n == 2)
        buf_fmt(b->out, "%s.", first);
    buf_fmt(b->out, "\"%s.%s/call\"", package, name);
    put(b, open + 1, end - 1);
    buf_str(b->out, end - 1 > open + 2 ? ", ocisim_result => " : "ocisim_result => ");
    put(b, i, i + 1);
    buf_str(b->out, ");");
    free(package);
    free(name);
    return end + 1;
}

// dynamic_statement translates EXECUTE IMMEDIATE of a literal.
static int dynamic_statement(Block *b, int i) {
    int end = find_end(b->k, i);
    if (b->k[i + 2].kind != K_STRING) {
        refuse(b->t, 20998, "ocisim: EXECUTE IMMEDIATE of anything but a literal is not emulated");
        return end + 1;
    }
    Trans inner;
    translate(b->k[i + 2].text, &inner);
    if (inner.bad)
        refuse(b->t, inner.bad, "%s", inner.badmsg);
    buf_str(b->out, " EXECUTE ");
    put_string(inner.block ? "SELECT ocisim.no_nested_block()" : inner.sql, b->out);
    trans_free(&inner);
    effect(b);
    put(b, i + 3, end);
    buf_str(b->out, "; GET DIAGNOSTICS ocisim_rowcount = ROW_COUNT;");
    return end + 1;
}

// raise_statement translates RAISE; and refuses exceptions of one's own.
static int raise_statement(Block *b, int i) {
    int end = find_end(b->k, i);
    if (end != i + 1)
        refuse(b->t, 20998, "ocisim: RAISE of a declared exception is not emulated");
    buf_str(b->out, " RAISE;");
    return end + 1;
}

// commit_statement takes COMMIT, which waits for the disk, as the last statement of a
// block only.
static int commit_statement(Block *b, int i) {
    int end = find_end(b->k, i);
    int last = is_word(&b->k[i], "COMMIT") && is_word(&b->k[end + 1], "END") && b->level == 1;
    for (int j = i + 1; last && j < end; j++)
        last = is_word(&b->k[j], "WRITE") || is_word(&b->k[j], "IMMEDIATE") || is_word(&b->k[j], "WAIT");
    if (!last)
        refuse(b->t, 20998, "ocisim: %s inside a block is not emulated", b->k[i].text);
    b->t->commit_after = 1;
    buf_str(b->out, " NULL;");
    return end + 1;
}

// handler translates EXCEPTION: it must guard no more than one statement.
static int handler(Block *b, int i) {
    if (b->level < MAX_NESTING && b->effects[b->level] > 1)
        refuse(
            b->t, 20998,
            "ocisim: an exception handler over several statements is not emulated: it would undo them all");
    buf_str(b->out, " EXCEPTION");
    return i + 1;
}

// when_condition translates the conditions of a handler, up to THEN.
static int when_condition(Block *b, int i) {
    static const struct {
        const char *oracle, *postgres;
    } names[] = {{"DUP_VAL_ON_INDEX", "unique_violation"},
                 {"ZERO_DIVIDE", "division_by_zero"},
                 {"VALUE_ERROR", "data_exception"},
                 {"INVALID_NUMBER", "invalid_text_representation"},
                 {"NO_DATA_FOUND", "no_data_found"},
                 {"TOO_MANY_ROWS", "too_many_rows"},
                 {"OTHERS", "others"},
                 {"OR", "OR"}};
    buf_str(b->out, " WHEN");
    for (i++; i < b->to && !is_word(&b->k[i], "THEN"); i++) {
        const char *by = NULL;
        for (size_t j = 0; j < sizeof names / sizeof *names; j++)
            if (is_word(&b->k[i], names[j].oracle))
                by = names[j].postgres;
        if (!by)
            refuse(b->t, 20998, "ocisim: exception %s is not emulated", b->k[i].text);
        buf_fmt(b->out, " %s", by ? by : "others");
    }
    return i;
}

// control copies the head of IF, WHILE, FOR... up to THEN or LOOP, which the
// caller sees as the start of a statement.
static int control(Block *b, int i) {
    int j = i, nested = 0;
    if (is_word(&b->k[i], "WHEN") || is_word(&b->k[i], "CASE"))
        j++; // of a CASE statement
    for (; j < b->to; j++) {
        nested += is_word(&b->k[j], "CASE") - (nested && is_word(&b->k[j], "END"));
        if (!nested && (is_word(&b->k[j], "THEN") || is_word(&b->k[j], "LOOP") || is_punct(&b->k[j], ";") ||
                        (is_word(&b->k[i], "CASE") && is_word(&b->k[j], "WHEN"))))
            break;
    }
    int wait = wait_of(b, i, j);
    if (wait) {
        set_wait(b, wait - 1);
        b->waits = 1;
    }
    put(b, i, j);
    return j;
}

// end_statement translates END, END IF, END LOOP, END CASE and END name.
static int end_statement(Block *b, int i) {
    static const char *const kinds[] = {"IF", "LOOP", "CASE", NULL};
    int end = find_end(b->k, i);
    buf_str(b->out, " END");
    if (in_words(&b->k[i + 1], kinds))
        buf_fmt(b->out, " %s", b->k[i + 1].text);
    else if (b->level > 0)
        b->level--;
    buf_str(b->out, ";");
    if (b->waits && is_word(&b->k[i + 1], "LOOP")) {
        set_wait(b, 0);
        b->waits = 0;
    }
    return end + 1;
}

// assignment translates target := value, and what else is no statement of its
// own kind here: EXIT, NULL.
static int assignment(Block *b, int i) {
    int end = find_end(b->k, i);
    mark_set(b, &b->k[i]);
    int next = call_function(b, i, end);
    if (next)
        return next;
    put(b, i, end);
    buf_str(b->out, ";");
    return end + 1;
}

// return_statement translates RETURN value.
static int return_statement(Block *b, int i) {
    int end = find_end(b->k, i);
    if (b->result && end > i + 1) {
        buf_str(b->out, " ocisim_result :=");
        put(b, i + 1, end);
        buf_str(b->out, "; RETURN;");
        return end + 1;
    }
    put(b, i, end);
    buf_str(b->out, ";");
    return end + 1;
}

// declarations translates what stands before BEGIN.
static int declarations(Block *b, int i) {
    static const char *const refused[] = {"PROCEDURE", "FUNCTION", "CURSOR", "TYPE", "SUBTYPE", NULL};
    while (i < b->to && !is_word(&b->k[i], "BEGIN")) {
        int end = find_end(b->k, i);
        if (in_words(&b->k[i], refused) || is_word(&b->k[i + 1], "EXCEPTION"))
            refuse(b->t, 20998, "ocisim: this declaration is not emulated: %s %s", b->k[i].text,
                   b->k[i + 1].text);
        if (is_word(&b->k[i], "PRAGMA")) {
            if (is_word(&b->k[i + 1], "AUTONOMOUS_TRANSACTION"))
                refuse(b->t, 20998, "ocisim: autonomous transactions are not emulated");
        } else {
            rewrite(b->t, b->k, i, end, RW_PLSQL | RW_TYPES, b->pkg, b->out);
            buf_str(b->out, ";");
        }
        i = end + 1;
    }
    return i;
}

// begin_statement opens a level, with the declarations before it.
static int begin_statement(Block *b, int i) {
    if (is_word(&b->k[i], "DECLARE")) {
        buf_str(b->out, " DECLARE");
        i = declarations(b, i + 1);
    }
    if (++b->level < MAX_NESTING)
        b->effects[b->level] = 0;
    buf_str(b->out, " BEGIN");
    return i + 1;
}

// is_cursor_loop says whether FOR r IN (SELECT ...) begins at i.
static int is_cursor_loop(const Tok *k, int i) {
    return is_word(&k[i], "FOR") && k[i + 1].kind == K_WORD && is_word(&k[i + 2], "IN") &&
           is_punct(&k[i + 3], "(");
}

// lock_loop translates FOR r IN (SELECT ...) LOOP NULL; END LOOP: rows are looked at,
// that is locked, and no more. Returns 0 when the loop at i is another.
static int lock_loop(Block *b, int i) {
    int close = find_close(b->k, i + 3);
    if (!is_cursor_loop(b->k, i) || !is_word(&b->k[i + 4], "SELECT") || *seq(b->k, close + 1, "LOOP NULL ; END LOOP ;"))
        return 0;
    int wait = wait_of(b, i, close);
    if (wait)
        set_wait(b, wait - 1);
    buf_str(b->out, " PERFORM");
    put(b, i + 5, close);
    buf_str(b->out, ";");
    if (wait)
        set_wait(b, 0);
    return close + 7;
}

// statement translates the statement at i and returns the start of the next.
static int statement(Block *b, int i) {
    static const char *const sql[] = {"INSERT", "UPDATE", "DELETE", "MERGE", "SELECT", "WITH", "LOCK", NULL};
    static const char *const heads[] = {"IF", "ELSIF", "WHILE", "FOR", "CASE", "WHEN", NULL};
    static const char *const plain[] = {"EXIT", "CONTINUE", "NULL", NULL};
    static const char *const openers[] = {"THEN", "ELSE", "LOOP", NULL};
    const Tok *tok = &b->k[i];
    if (in_words(tok, openers)) {
        buf_fmt(b->out, " %s", tok->text);
        if (b->waits && is_word(tok, "LOOP"))
            set_wait(b, 0);
        return i + 1;
    }
    if (in_words(tok, sql))
        return sql_statement(b, i);
    int next = lock_loop(b, i);
    if (next)
        return next;
    if (in_words(tok, heads))
        return control(b, i);
    if (in_words(tok, plain))
        return assignment(b, i);
    if (is_word(tok, "RETURN"))
        return return_statement(b, i);
    if (is_word(tok, "BEGIN") || is_word(tok, "DECLARE"))
        return begin_statement(b, i);
    if (is_word(tok, "END"))
        return end_statement(b, i);
    if (is_word(tok, "EXCEPTION"))
        return handler(b, i);
    if (is_word(tok, "RAISE"))
        return raise_statement(b, i);
    if (is_word(tok, "COMMIT") || is_word(tok, "ROLLBACK") || is_word(tok, "SAVEPOINT"))
        return commit_statement(b, i);
    if (is_word(tok, "EXECUTE"))
        return dynamic_statement(b, i);
    if (is_word(tok, "RAISE_APPLICATION_ERROR")) {
        int end = find_end(b->k, i);
        buf_str(b->out, " PERFORM ocisim.raise_application_error");
        put(b, i + 1, end);
        buf_str(b->out, ";");
        return end + 1;
    }
    int end = find_end(b->k, i);
    for (int j = i; j < end; j++)
        if (is_punct(&b->k[j], ":="))
            return assignment(b, i);
        else if (is_punct(&b->k[j], "("))
            j = find_close(b->k, j);
    return call_statement(b, i);
}

// in_handler finds out whether the WHEN at i belongs to a handler: the ones
// after EXCEPTION do, up to the END of their level.
static int in_handler(const Tok *k, int from, int i) {
    static const char *const kinds[] = {"IF", "LOOP", "CASE", NULL};
    int depth = 0;
    for (int j = i - 1; j >= from; j--) {
        if (is_word(&k[j], "END"))
            depth += !in_words(&k[j + 1], kinds) || is_word(&k[j + 1], "CASE");
        else if (depth > 0 &&
                 (is_word(&k[j], "BEGIN") || (is_word(&k[j], "CASE") && !is_word(&k[j - 1], "END"))))
            depth--;
        else if (depth == 0 && is_word(&k[j], "EXCEPTION"))
            return 1;
        else if (depth == 0 && (is_word(&k[j], "BEGIN") || is_word(&k[j], "CASE")))
            return 0;
    }
    return 0;
}

// loop_variables declares the records of FOR r IN (SELECT ...): PL/SQL does it
// by itself, for each loop anew.
static void loop_variables(const Tok *k, int from, int to, Buf *out) {
    for (int i = from; i + 3 < to; i++) {
        int known = !is_cursor_loop(k, i);
        for (int j = from; j < i && !known; j++)
            known = is_cursor_loop(k, j) && is_word(&k[j + 1], k[i + 1].text);
        if (!known)
            buf_fmt(out, " %s record;", k[i + 1].raw);
    }
}

// new_lines ends lines until the token at i stands in its own: errors say in which line
// they were.
static void new_lines(Block *b, int i) {
    for (; b->line < b->k[i].line; b->line++)
        buf_str(b->out, "\n");
}

// statements translates [from, to), which begins with BEGIN or declarations.
static void statements(Trans *t, const Tok *k, int from, int to, const Package *pkg, int result, Buf *out) {
    Block b = {.t = t, .k = k, .to = to, .pkg = pkg, .result = result, .out = out};
    buf_str(out, "#variable_conflict use_column\n DECLARE ocisim_rowcount numeric := 0;");
    loop_variables(k, from, to, out);
    b.line = t->block ? 1 : k[from].line;
    new_lines(&b, from);
    int i = declarations(&b, from);
    i = begin_statement(&b, i);
    while (i < to) {
        new_lines(&b, i);
        if (is_word(&k[i], "WHEN") && in_handler(k, from, i))
            i = when_condition(&b, i);
        else
            i = statement(&b, i);
    }
}

// translate_subprogram translates the part of a subprogram after IS, up to and
// with its END. With result set, RETURN sets a parameter.
void translate_subprogram(Trans *t, const Tok *k, int from, int to, const Package *pkg, int result,
                          Buf *out) {
    statements(t, k, from, to, pkg, result, out);
}

// translate_block translates an anonymous block.
void translate_block(Trans *t, const Tok *k, int n, const Package *pkg, Buf *out) {
    int from = is_word(&k[0], "DECLARE") ? 1 : 0;
    t->block = xstrdup("");
    for (int i = 0; i < n; i++) // positions are those of the text
        if (k[i].kind == K_BIND)
            add_placeholder(t, k[i].text, 0);
    if (!is_punct(&k[n - 1], ";"))
        refuse(t, 6550, "line 1, column 1:\nPLS-00103: Encountered the symbol \"end-of-file\"");
    statements(t, k, from, n, pkg, 0, out);
}
