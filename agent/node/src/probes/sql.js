// Reduces the text of a statement to its shape: literals become `?`, white space becomes one blank, comments are removed, and
// lists of values become one value. So statements that differ only in data are one operation. The shape names the operation, and
// has no data, except in the gaps that `docs/guide/statements.md` lists. The rules are the same as in `Sql.java` and Python's
// `sql.py`; the cases in `testdata/sql` test all three.
//
// Literals depend on the dialect: `"a"` is a name in PostgreSQL and a string in MySQL, where a backslash also escapes a quote. If
// a text has two readings that differ in a literal, or a quote is not closed, the shape ends with `...`. Before: `pg.js`. After:
// `sql-shape.js`.

import { NAME_CHARS_MAX, Shape } from './sql-shape.js';

/** Limit on characters to read; a bulk insert may have megabytes. */
const TEXT_CHARS_MAX = 8_000;
/** Limit on tokens to read. Few shapes have more tokens. A longer text mostly has rows and lists that are folded anyway. */
const TOKENS_MAX = 1_000;

/** Meaning of a backslash before a quote. */
const PLAIN = 0;
const ESCAPE = 1;
/** Probably an escape. In MySQL's mode NO_BACKSLASH_ESCAPES, the literal ends at the quote. */
const LIKELY = 2;
const UNSURE = 3;

/**
 * `standard` is for Oracle, H2, HSQLDB, Derby and Db2: standard SQL, and Oracle's q'[...]'. `other` is an unknown dialect.
 * @typedef {'postgresql' | 'mysql' | 'sqlite' | 'sqlserver' | 'standard' | 'other'} Dialect
 */

const BLANKS = /[\0- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+/y;
const LETTER = /[\p{L}_]/uy;
const WORD = /[\p{L}\p{Nd}_$]*/uy;
const WORD_WITH_HASH = /[\p{L}\p{Nd}_$#]*/uy;
const NUMBER = /(?:[eE][+-]|[A-Za-z0-9._])*/y;
const DIGITS = /[0-9]*/y;
const PARAMETER = /[?$][\p{L}\p{Nd}_]*/uy;
/** PostgreSQL treats every non-ASCII character as a letter. */
const TAG = /\$(?:[A-Za-z_\x80-\uffff][A-Za-z0-9_\x80-\uffff]*)?\$/y;
const PERCENT = /%(?:[sbt](?![A-Za-z0-9_\x80-\uffff])|\([A-Za-z0-9_\x80-\uffff]+\)[sbt])/y;
const LINE = /[^\r\n]*/y;
/** Quotes, and the beginnings of comments and `$` strings, which may contain quotes. */
const QUOTES = /['"`$]|\/\*|--/;
const EXECUTED = /\/\*M?!/y;
const AFTER_QUALIFIER = /\.[A-Za-z_\x80-\uffff"`*]/y;
const NAME_CHAR = /[A-Za-z0-9_\x80-\uffff]/;

/** A value that all dialects read alike if a comma or a closing bracket follows. */
const ITEM =
  '[\\t-\\r ]*(?:[-+]?[0-9](?:[eE][-+]|[A-Za-z0-9._])*' +
  "|[bBeEnNxX]?'(?!'')[^'\\\\]*(?:''[^'\\\\]*)*'" +
  '|[nN][uU][lL][lL]|[tT][rR][uU][eE]|[fF][aA][lL][sS][eE]|[dD][eE][fF][aA][uU][lL][tT]' +
  '|\\?|[$:@][A-Za-z0-9_]+|%s)[\\t-\\r ]*';
const ITEMS = new RegExp(`(?:,${ITEM}(?=[,)]))*`, 'y');
const ROWS = new RegExp(`(?:[\\t-\\r ]*,[\\t-\\r ]*\\(${ITEM}(?:,${ITEM})*\\))*`, 'y');

/**
 * @param {string} text
 * @param {Dialect} dialect
 * @returns {string} at most 1,000 characters
 */
export function shape(text, dialect) {
  return new Reader(text, dialect).run();
}

class Reader {
  /** @param {string} text @param {Dialect} dialect */
  constructor(text, dialect) {
    this.text = text.slice(0, TEXT_CHARS_MAX);
    this.isWhole = text.length <= TEXT_CHARS_MAX;
    this.dialect = dialect;
    this.shape = new Shape();
    this.at = 0;
    /** Meaning of a backslash in a plain string. */
    this.backslash = this.is('mysql') ? LIKELY : this.is('postgresql', 'other') ? UNSURE : PLAIN;
    this.words = this.is('standard', 'sqlserver') ? WORD_WITH_HASH : WORD;
  }

  run() {
    const { text, shape } = this;
    let tokens = 0;
    while (this.at < text.length && shape.out.length < NAME_CHARS_MAX && tokens < TOKENS_MAX) {
      this.step(text[this.at]);
      tokens++;
    }
    return shape.finish(this.isWhole && this.at >= text.length);
  }

  /** @param {string} c */
  step(c) {
    const next = this.text[this.at + 1];
    if (c <= ' ') {
      this.blanks();
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c === '_') {
      this.word();
    } else if (c >= '0' && c <= '9') {
      this.at = this.match(NUMBER);
      this.shape.value();
    } else if (c === "'") {
      this.string(this.backslash);
    } else if (c === '"') {
      this.doubleQuoted();
    } else if (c === '-' && next === '-') {
      this.dashes();
    } else if (c === '/' && next === '*') {
      this.blockComment();
    } else if (c === '/' && next === '/') {
      this.slashes();
    } else if (c === '#') {
      this.hash();
    } else if (c === '`') {
      this.backtick();
    } else if (c === '[') {
      this.bracket();
    } else if (c === '$') {
      this.dollar();
    } else if (c <= '\x7f') {
      this.sign(c);
    } else if (this.match(BLANKS) > this.at) {
      this.blanks();
    } else if (this.match(LETTER) > this.at) {
      this.word();
    } else {
      this.sign(c);
    }
  }

  /** @param {...Dialect} dialects */
  is(...dialects) {
    return dialects.includes(this.dialect);
  }

  /** @param {RegExp} pattern sticky @returns {number} end of the match */
  match(pattern) {
    pattern.lastIndex = this.at;
    return pattern.test(this.text) ? pattern.lastIndex : this.at;
  }

  /** Ignores the rest of the text, which is ambiguous. */
  cut() {
    this.at = this.text.length;
    this.isWhole = false;
  }

  /** @param {boolean} isSure true if the end of the literal is certain; `at` is then behind it */
  literal(isSure) {
    this.shape.value();
    if (!isSure) {
      this.cut();
    }
  }

  /**
   * @param {string} text to search for
   * @param {number} from
   * @returns {boolean} true if found; `at` is then behind it
   */
  passTo(text, from) {
    const found = this.text.indexOf(text, from);
    if (found >= 0) {
      this.at = found + text.length;
    }
    return found >= 0;
  }

  blanks() {
    this.at = this.match(BLANKS);
    this.shape.blank();
  }

  /** @param {string} c */
  sign(c) {
    const { shape } = this;
    const percent = c === '%' ? this.match(PERCENT) : this.at;
    if (percent > this.at) {
      this.at = percent;
      shape.value();
    } else if (c === '?') {
      this.at++;
      this.at = this.match(DIGITS);
      shape.value();
    } else if (c === ',') {
      this.comma();
    } else {
      this.at++;
      if (c === '(') {
        shape.openBracket();
      } else if (c === ')') {
        this.closing();
      } else {
        shape.sign(c);
      }
    }
  }

  /**
   * Closes a bracket. After a row that `...` replaces, the plain rows that follow are skipped. If the text is longer than the
   * limit, reading stops after such a row, so that the shape does not depend on the number of rows.
   */
  closing() {
    if (this.shape.closeBracket()) {
      this.at = this.isWhole ? this.match(ROWS) : this.text.length;
    }
  }

  comma() {
    const { shape, at } = this;
    shape.dropBlank();
    if (shape.endItem()) {
      this.at = this.match(ITEMS);
    }
    if (this.at === at) {
      this.at++;
      shape.comma();
    }
  }

  /** `-- ...`: a comment; in MySQL only if white space follows, otherwise two signs. */
  dashes() {
    const isComment = !(this.text[this.at + 2] > ' ');
    if (isComment || !this.is('mysql', 'other')) {
      this.lineComment();
    } else if (this.is('mysql')) {
      this.at += 2;
      this.shape.sign('--');
    } else {
      this.cut();
    }
  }

  /** `// ...`: a comment only in H2 and HSQLDB; it may be an operator if the dialect is unknown. */
  slashes() {
    if (this.is('other') || (this.is('standard') && QUOTES.test(this.text.slice(this.at, this.match(LINE))))) {
      this.cut();
    } else if (this.is('standard')) {
      this.lineComment();
    } else {
      this.sign('/');
    }
  }

  /** A comment in MySQL, an operator or part of a name elsewhere. */
  hash() {
    if (this.is('mysql')) {
      this.lineComment();
    } else if (this.is('other')) {
      this.cut();
    } else {
      this.sign('#');
    }
  }

  /** A comment to the end of the line. A lone carriage return certainly ends a line only in PostgreSQL. */
  lineComment() {
    const { text } = this;
    const end = this.match(LINE);
    const isSure = text[end] !== '\r' || end + 1 >= text.length || text[end + 1] === '\n';
    if (isSure || this.is('postgresql')) {
      this.at = Math.min(end + 1, text.length);
      this.shape.blank();
    } else {
      this.cut();
    }
  }

  /** Comments nest in PostgreSQL and SQL Server. In MySQL, a string in an executable comment may contain an end sign. */
  blockComment() {
    const { text, at } = this;
    let depth = 0;
    let to = at;
    do {
      const close = text.indexOf('*/', to + 2);
      const inner = text.indexOf('/*', to + 2);
      if (close < 0) {
        to = text.length;
        break;
      }
      if (inner >= 0 && inner < close && this.is('standard', 'other')) {
        this.cut();
        return;
      }
      const isInner = inner >= 0 && inner < close && this.is('postgresql', 'sqlserver');
      depth += isInner ? 1 : -1;
      to = isInner ? inner : close;
    } while (depth >= 0);
    const isCode = this.is('mysql', 'other') && this.match(EXECUTED) > at;
    if (isCode && QUOTES.test(text.slice(at + 2, to))) {
      this.cut();
      return;
    }
    this.at = Math.min(to + 2, text.length);
    this.shape.blank();
  }

  /**
   * @param {string} quote a doubled quote is part of the text
   * @param {number} backslash
   * @returns {boolean} true if the end is certain; `at` is then behind the closing quote
   */
  pass(quote, backslash) {
    const { text } = this;
    const from = this.at + 1;
    for (let at = text.indexOf(quote, from); at >= 0; at = text.indexOf(quote, at + 1)) {
      if (backslash !== PLAIN && this.isEscaped(from, at)) {
        const isEscape = backslash === LIKELY && this.backslash === LIKELY ? this.isInside(at) : backslash !== UNSURE;
        if (!isEscape) {
          return false;
        }
      } else if (text[at + 1] === quote) {
        at++;
      } else {
        this.at = at + 1;
        return true;
      }
    }
    return false;
  }

  /** True if an odd number of backslashes precedes the quote. @param {number} from @param {number} at */
  isEscaped(from, at) {
    let before = at;
    while (before > from && this.text[before - 1] === '\\') {
      before--;
    }
    return (at - before) % 2 === 1;
  }

  /**
   * A quote followed by a word does not end a literal, so the backslash before the quote is an escape. Later backslashes of the
   * statement are then escapes, too.
   * @param {number} at
   */
  isInside(at) {
    const isInside = at + 1 < this.text.length && NAME_CHAR.test(this.text[at + 1]);
    if (isInside) {
      this.backslash = ESCAPE;
    }
    return isInside;
  }

  /**
   * True for three quotes in an unknown dialect. They begin a literal of several lines, or a literal with a quote as its first
   * character.
   * @param {string} quotes
   */
  isTriple(quotes) {
    return this.is('other') && this.text.startsWith(quotes, this.at);
  }

  /** @param {number} backslash */
  string(backslash) {
    this.literal(!this.isTriple("'''") && this.pass("'", backslash));
  }

  /** A name. In MySQL, SQLite and unknown dialects it is a string, except where only a name is possible. */
  doubleQuoted() {
    const from = this.at;
    const isString = this.is('mysql', 'sqlite', 'other');
    const isSure = !this.isTriple('"""') && this.pass('"', isString ? this.backslash : PLAIN);
    if (isSure && (!isString || this.isName())) {
      this.shape.name(this.text.slice(from, this.at));
    } else {
      this.literal(isSure);
    }
  }

  /** True if the quoted text can only be a name: it is qualified, or an alias, a column, or, in SQLite, a table. */
  isName() {
    return (
      this.shape.isBeforeName() || this.match(AFTER_QUALIFIER) > this.at || (this.is('sqlite') && this.shape.isBeforeTable())
    );
  }

  /** @param {string} quote @param {boolean} isDoubled whether a doubled quote is one quote of the name */
  quotedName(quote, isDoubled) {
    const from = this.at;
    if (isDoubled ? this.pass(quote, PLAIN) : this.passTo(quote, from + 1)) {
      this.shape.name(this.text.slice(from, this.at));
    } else {
      this.literal(false);
    }
  }

  /** A name in MySQL, SQLite and H2; an operator or an error elsewhere. */
  backtick() {
    if (this.is('mysql', 'sqlite')) {
      this.quotedName('`', true);
    } else if (this.hasQuote('`')) {
      this.cut();
    } else if (this.is('other')) {
      this.quotedName('`', true);
    } else {
      this.sign('`');
    }
  }

  /** True if a match of `QUOTES` is before the next `sign`, or, without one, before the end. @param {string} sign */
  hasQuote(sign) {
    const close = this.text.indexOf(sign, this.at + 1);
    return QUOTES.test(this.text.slice(this.at + 1, close < 0 ? undefined : close));
  }

  /** `[name]` in SQL Server and SQLite, otherwise an array index. */
  bracket() {
    if (this.is('sqlserver', 'sqlite')) {
      this.quotedName(']', this.is('sqlserver'));
    } else if (this.is('other') && this.hasQuote(']')) {
      this.cut();
    } else {
      this.sign('[');
    }
  }

  /**
   * `$1` is a parameter, `$tag$...$tag$` is a string. In SQL Server `$1.50` is money. In SQL Server and MySQL `$` may also begin
   * a name.
   */
  dollar() {
    const { text, at } = this;
    const next = text[at + 1];
    const end = this.is('sqlite', 'sqlserver') ? at : this.match(TAG);
    if (end > at) {
      // MySQL supports such a string only since version 9.
      this.literal(this.passTo(text.slice(at, end), end) && !this.is('mysql'));
    } else if (this.is('sqlserver') && ((next >= '0' && next <= '9') || next === '.')) {
      this.at++;
      this.at = this.match(NUMBER);
      this.shape.value();
    } else if (this.is('mysql', 'sqlserver')) {
      this.at = this.match(this.words);
      this.shape.name(text.slice(at, this.at));
    } else {
      this.at = this.match(PARAMETER);
      this.shape.value();
    }
  }

  word() {
    const from = this.at;
    this.at = this.match(this.words);
    const word = this.text.slice(from, this.at);
    if (this.text[this.at] !== "'") {
      this.shape.name(word);
    } else if (this.is('standard', 'other') && /^n?q$/i.test(word)) {
      this.alternative();
    } else if (word.length === 1) {
      // E'..', N'..', X'..', B'..'
      this.string(/e/i.test(word) && this.is('postgresql', 'other') ? ESCAPE : this.backslash);
    } else {
      this.shape.name(word);
    }
  }

  /**
   * Oracle's q'[...]' ends with a quote after the closing bracket, or after the same sign if the opening sign is not a
   * bracket.
   */
  alternative() {
    const opening = this.text[this.at + 1] ?? '';
    const closing = { '[': ']', '(': ')', '{': '}', '<': '>' }[opening] ?? opening;
    this.literal(this.passTo(`${closing}'`, this.at + 2));
  }
}
