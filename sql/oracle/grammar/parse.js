// Parses Oracle's SQL and PL/SQL with the PL/SQL grammar of grammars-v4.
// Standard input: [{"name": ..., "text": ...}]. Standard output: the syntax
// errors, [{"name", "line", "column", "message"}], lines and columns from 1.
'use strict';

const { CharStreams } = require('antlr4ts/CharStreams');
const { CommonTokenStream } = require('antlr4ts/CommonTokenStream');
const { PlSqlLexer } = require('antlr4ts-sql/dist/src/grammar-output/plsql/PlSqlLexer');
const { PlSqlParser } = require('antlr4ts-sql/dist/src/grammar-output/plsql/PlSqlParser');

// Upper gives the lexer upper-case letters, for the grammar knows no others.
class Upper {
  constructor(text) { this.stream = CharStreams.fromString(text); }
  get index() { return this.stream.index; }
  get size() { return this.stream.size; }
  get sourceName() { return this.stream.sourceName; }
  consume() { this.stream.consume(); }
  mark() { return this.stream.mark(); }
  release(marker) { this.stream.release(marker); }
  seek(index) { this.stream.seek(index); }
  getText(interval) { return this.stream.getText(interval); }
  LA(i) {
    const c = this.stream.LA(i);
    return c >= 97 && c <= 122 ? c - 32 : c;
  }
}

function parse({ name, text }) {
  const errors = [];
  const listener = {
    syntaxError(recognizer, symbol, line, column, message) {
      // What would have been possible is a list of every keyword.
      errors.push({ name, line, column: column + 1, message: message.replace(/ expecting \{.*/s, '') });
    },
  };
  const lexer = new PlSqlLexer(new Upper(text));
  const parser = new PlSqlParser(new CommonTokenStream(lexer));
  for (const recognizer of [lexer, parser]) {
    recognizer.removeErrorListeners();
    recognizer.addErrorListener(listener);
  }
  parser.sql_script();
  return errors;
}

const units = JSON.parse(require('fs').readFileSync(0, 'utf8'));
process.stdout.write(JSON.stringify(units.flatMap(parse)) + '\n');
