// What is the shape of a statement? Literals become `?`, white space one blank, comments nothing, and lists of values one
// value, so that statements that differ only in data are one operation and no data leaves the process. The same rules as
// `Sql.java` and Python's `sql.py`; the cases in `testdata/sql` hold all three to them.
//
// What is a literal depends on the dialect: `"a"` is a name in PostgreSQL and a string in MySQL, where a backslash also escapes a
// quote. Where two readings of a text are possible and differ in what is a literal, the shape ends there with `...`.
// Before: `pg.js`. After: `../wire/dictionary.js`.

/** Characters of a name; what is longer is cut. */
const NAME_CHARS_MAX = 1_000;
/** Characters that are read; a bulk insert may have megabytes. */
const TEXT_CHARS_MAX = 20_000;
/** What the second and later rows of a bulk insert become. */
const ROWS = '), ...';

/** How a backslash before a quote is read. */
const PLAIN = 0;
const ESCAPE = 1;
const UNSURE = 2;

/**
 * `standard` is what SQL says, and Oracle's q'[...]': Oracle, H2, HSQLDB, Derby, Db2. `other` is a dialect that is not known.
 * @typedef {'postgresql' | 'mysql' | 'sqlite' | 'sqlserver' | 'standard' | 'other'} Dialect
 */

const LETTER = /\p{L}/u;
const WORD = /[\p{L}\p{Nd}_$#]*/uy;
const NUMBER = /(?:[eE][+-]|[\p{L}\p{Nd}._])*/uy;
const DOLLAR = /\$([\p{L}\p{Nd}_]*)\$?/uy;
const DIGITS = /[0-9]*/y;
const PERCENT = /%(?:s(?![\p{L}\p{Nd}_])|\([\p{L}\p{Nd}_]+\)s)/uy;
const TYPED = '(?:(?:date|time|timestamp|interval) )?';
const VALUE = '(?:\\?|null|true|false|default|[:@][\\p{L}\\p{Nd}_]+)';
const CAST = '(?:::[\\p{L}\\p{Nd}_]+(?:\\[\\])?)?';
/** One value of a list: a literal, a parameter, or a word that stands for a value; with a sign, a type, a cast. */
const ITEM = new RegExp(`^[-+]? ?${TYPED}${VALUE}${CAST}$`, 'iu');
/** What hides quotes, or is one. */
const QUOTES = /['"`]|\/\*/;
/** After these words of SQLite a text in double quotes is the name of a table. */
const BEFORE_TABLE = /(?:^|[^\p{L}\p{Nd}_])(?:(?<!distinct )from|join|into|update|table) $/iu;
const BEFORE_ALIAS = /[^\p{L}\p{Nd}_]as $/iu;
const BEFORE_COLUMNS = /(?:^|[^\p{L}\p{Nd}_])into [^ ()]+ ?$/iu;
const BEFORE_PASSWORD = /(?:^|[^\p{L}\p{Nd}_])identified by $/iu;
const IN = /(?:^|[^\p{L}\p{Nd}])in ?$/iu;
const VALUES = /(?:^|[^\p{L}\p{Nd}_])values? ?$/iu;

/**
 * @param {string} text
 * @param {Dialect} dialect
 * @returns {string} at most 1,000 characters
 */
export function shape(text, dialect) {
  return new Shape(text, dialect).run();
}

class Shape {
  /** @param {string} text @param {Dialect} dialect */
  constructor(text, dialect) {
    this.text = text.slice(0, TEXT_CHARS_MAX);
    this.isWhole = text.length <= TEXT_CHARS_MAX;
    this.dialect = dialect;
    this.out = '';
    this.at = 0;
    /** Where the open brackets are in `out`. @type {number[]} */
    this.open = [];
    /** How many brackets are open inside the column list of an insert; 0 outside one. */
    this.columns = 0;
  }

  run() {
    while (this.at < this.text.length && this.out.length < NAME_CHARS_MAX) {
      this.step();
    }
    const isCut = !this.isWhole || this.at < this.text.length || this.out.length > NAME_CHARS_MAX;
    const rows = isCut ? this.out.lastIndexOf(ROWS) : -1;
    if (rows >= 0) {
      return this.out.slice(0, rows + ROWS.length); // cut inside a bulk insert: where exactly depends on the data
    }
    const list = isCut ? this.openList() : -1;
    if (list >= 0) {
      return this.out.slice(0, list) + '(?...';
    }
    const trimmed = this.out.replace(/[ ;]+$/, '');
    return isCut ? trimmed.slice(0, NAME_CHARS_MAX - 3) + '...' : trimmed;
  }

  /** Where a list of values after `in` was left without its end; -1 where none was. */
  openList() {
    const open = this.open.at(-1);
    const isList = open !== undefined && IN.test(this.out.slice(0, open).slice(-4)) && this.out.startsWith('(?', open);
    return isList ? open : -1;
  }

  step() {
    const { text, at } = this;
    const c = text[at];
    const next = text[at + 1];
    if (/\s/.test(c)) {
      this.at++;
      this.blank();
    } else if (c === '-' && next === '-') {
      this.dashes();
    } else if (c === '/' && next === '*') {
      this.blockComment();
    } else if (c === '#') {
      this.hash();
    } else if (c === "'") {
      this.string(this.escapes());
    } else if (c === '"') {
      this.doubleQuoted();
    } else if (c === '`') {
      this.quotedName('`');
    } else if (c === '[') {
      this.bracket();
    } else if (c === '$') {
      this.dollar();
    } else if (c >= '0' && c <= '9') {
      this.at = this.match(NUMBER);
      this.value();
    } else if (c === '_' || LETTER.test(c)) {
      this.word();
    } else {
      this.sign(c);
    }
  }

  /** @param {...Dialect} dialects */
  is(...dialects) {
    return dialects.includes(this.dialect);
  }

  /** How a backslash in a plain string is read. */
  escapes() {
    return this.is('mysql') ? ESCAPE : this.is('postgresql', 'other') ? UNSURE : PLAIN;
  }

  /** @param {RegExp} pattern sticky @returns {number} where what it matches here ends */
  match(pattern) {
    pattern.lastIndex = this.at;
    pattern.exec(this.text);
    return Math.max(pattern.lastIndex, this.at + 1);
  }

  /** The rest may be read in two ways: it is left out. */
  cut() {
    this.at = this.text.length;
    this.isWhole = false;
  }

  blank() {
    if (this.out !== '' && !this.out.endsWith(' ') && !this.out.endsWith('(')) {
      this.out += ' ';
    }
  }

  dropBlank() {
    if (this.out.endsWith(' ')) {
      this.out = this.out.slice(0, -1);
    }
  }

  value() {
    this.out += '?';
  }

  /** @param {string} c */
  sign(c) {
    const percent = c === '%' ? this.match(PERCENT) : this.at;
    if (percent > this.at + 1) {
      this.at = percent;
      this.value();
      return;
    }
    this.at++;
    if (c === '?') {
      DIGITS.lastIndex = this.at;
      DIGITS.exec(this.text);
      this.at = DIGITS.lastIndex;
      this.value();
    } else if (c === '(') {
      this.openBracket();
    } else if (c === ')') {
      this.closeBracket();
    } else if (c === ',') {
      this.dropBlank();
      this.endItem();
      this.out += ', ';
    } else {
      this.out += c;
      if (c === ']') {
        this.out = this.out.replace(/\[\?(?:, \?)+\]$/, '[?]');
      }
    }
  }

  openBracket() {
    if (this.columns > 0) {
      this.columns++;
    } else if (BEFORE_COLUMNS.test(this.out.slice(-200))) {
      this.columns = 1;
    }
    this.open.push(this.out.length);
    this.out += '(';
  }

  closeBracket() {
    this.dropBlank();
    this.endItem();
    this.out += ')';
    this.columns = Math.max(0, this.columns - 1);
    const open = this.open.pop();
    if (open !== undefined) {
      this.foldRow(open);
    }
  }

  /** A value of a list ends: in a list after `in` the first one stands for all; in a row all values look alike. */
  endItem() {
    const open = this.open.at(-1);
    if (open === undefined) {
      return;
    }
    const from = Math.max(open, this.out.lastIndexOf(', ') + 1) + 1;
    if (!ITEM.test(this.out.slice(from)) || from > this.out.length) {
      return;
    }
    const before = this.out.slice(0, open);
    if (IN.test(before.slice(-4)) && (from === open + 1 || this.out.slice(open, from) === '(?, ')) {
      this.out = `${before}(?`;
    } else if (VALUES.test(before.slice(-8)) || /\)(?:, \.\.\.)?, $/.test(before.slice(-8)) || /\($/.test(before)) {
      this.out = `${this.out.slice(0, from)}?`;
    }
  }

  /** `(?, ?), (?, ?)` of a bulk insert becomes `(?, ?), ...`. @param {number} open */
  foldRow(open) {
    const row = this.out.slice(open);
    const before = this.out.slice(0, open);
    const isRow = /^\([?, ]*\)$/.test(row) || VALUES.test(before.slice(0, -(row.length + 2)).slice(-8));
    if (/^\([?, ]*\)$/.test(row) && before.endsWith('..., ')) {
      this.out = before.slice(0, -2);
    } else if (isRow && before.endsWith(`${row}, `)) {
      this.out = `${before}...`;
    } else if (before.endsWith(`${row}, ..., `)) {
      this.out = before.slice(0, -2);
    }
  }

  /** `-- ...`: in MySQL only before white space, else two signs. */
  dashes() {
    const after = this.text[this.at + 2];
    const isComment = after === undefined || /\s/.test(after);
    if (isComment || !this.is('mysql', 'other')) {
      this.lineComment();
    } else if (this.is('mysql')) {
      this.at += 2;
      this.out += '--';
    } else {
      this.commentOrSign('--');
    }
  }

  /** A comment in MySQL, an operator or a part of names elsewhere. */
  hash() {
    if (this.is('mysql')) {
      this.lineComment();
    } else if (this.is('other')) {
      this.commentOrSign('#');
    } else {
      this.at++;
      this.out += '#';
    }
  }

  /** @param {string} sign */
  commentOrSign(sign) {
    const line = this.text.slice(this.at, this.endOfLine());
    if (QUOTES.test(line)) {
      this.cut();
    } else {
      this.at += sign.length;
      this.out += sign;
    }
  }

  endOfLine() {
    const end = this.text.indexOf('\n', this.at);
    return end < 0 ? this.text.length : end;
  }

  lineComment() {
    this.at = Math.min(this.endOfLine() + 1, this.text.length);
    this.blank();
  }

  /** They nest in PostgreSQL and SQL Server; what MySQL executes of a comment may hold texts with the sign of its end. */
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
    const isCode = this.is('mysql', 'other') && /^\/\*M?!/.test(text.slice(at, at + 4));
    if (isCode && /['"`]/.test(text.slice(at, to))) {
      this.cut();
      return;
    }
    this.at = Math.min(to + 2, text.length);
    this.blank();
  }

  /**
   * @param {string} quote doubled, it is part of the text
   * @param {number} escapes
   * @returns {boolean} whether it is sure where it ends; if so `at` is there
   */
  pass(quote, escapes) {
    const { text } = this;
    let backslashes = 0;
    for (this.at++; this.at < text.length; this.at++) {
      const c = text[this.at];
      if (c === quote) {
        const isOdd = backslashes % 2 === 1;
        if (isOdd && escapes === UNSURE) {
          return false;
        }
        if (!isOdd || escapes === PLAIN) {
          if (text[this.at + 1] !== quote) {
            break;
          }
          this.at++;
        }
      }
      backslashes = c === '\\' ? backslashes + 1 : 0;
    }
    this.at = Math.min(this.at + 1, text.length);
    return true;
  }

  /** @param {number} escapes */
  string(escapes) {
    const isSure = this.pass("'", escapes);
    this.value();
    if (!isSure) {
      this.cut();
    }
  }

  /** A name, or in MySQL, SQLite and where the dialect is not known a string, unless nothing but a name can be here. */
  doubleQuoted() {
    const from = this.at;
    if (!this.is('mysql', 'sqlite', 'other')) {
      this.pass('"', PLAIN);
      this.name(this.text.slice(from, this.at));
      return;
    }
    const isSure = this.pass('"', this.escapes());
    if (isSure && this.isName()) {
      this.name(this.text.slice(from, this.at));
      return;
    }
    this.value();
    if (!isSure) {
      this.cut();
    }
  }

  /** Whether what ends here can only be a name: it is qualified, or it stands where a table, an alias or a column is named. */
  isName() {
    const tail = this.out.slice(-40);
    return (
      this.columns === 1 ||
      tail.endsWith('.') ||
      /^\.[\p{L}_"`*]/u.test(this.text.slice(this.at, this.at + 3)) ||
      BEFORE_ALIAS.test(tail) ||
      (this.is('sqlite') && BEFORE_TABLE.test(tail))
    );
  }

  /** A name as it is; after `identified by` it is a password. @param {string} name */
  name(name) {
    if (BEFORE_PASSWORD.test(this.out.slice(-40))) {
      this.value();
    } else {
      this.out += name;
    }
  }

  /** @param {string} quote */
  quotedName(quote) {
    const from = this.at;
    const close = this.text.indexOf(quote, from + 1);
    this.at = close < 0 ? this.text.length : close + 1;
    this.out += this.text.slice(from, this.at);
  }

  /** `[name]` in SQL Server and SQLite, else the index of an array. */
  bracket() {
    const close = this.text.indexOf(']', this.at);
    if (this.is('sqlserver', 'sqlite')) {
      this.quotedName(']');
    } else if (this.is('other') && QUOTES.test(this.text.slice(this.at, close < 0 ? undefined : close))) {
      this.cut();
    } else {
      this.at++;
      this.out += '[';
    }
  }

  /** `$1` is a parameter, `$tag$...$tag$` a string; in MySQL and SQL Server it begins a name. */
  dollar() {
    if (this.is('mysql', 'sqlserver')) {
      const from = this.at;
      this.at = this.match(WORD);
      this.out += this.text.slice(from, this.at);
      return;
    }
    const end = this.match(DOLLAR);
    const tag = this.text.slice(this.at, end);
    if (tag.length > 1 && tag.endsWith('$') && !this.is('sqlite')) {
      const close = this.text.indexOf(tag, end);
      this.at = close < 0 ? this.text.length : close + tag.length;
    } else {
      this.at = end;
    }
    this.value();
  }

  word() {
    const from = this.at;
    this.at = this.match(WORD);
    const word = this.text.slice(from, this.at);
    if (this.text[this.at] !== "'") {
      this.name(word);
    } else if (/^n?q$/i.test(word) && this.is('standard', 'other')) {
      this.alternative();
    } else if (word.length === 1) {
      // E'..', N'..', X'..', B'..'
      this.string(/e/i.test(word) && this.is('postgresql', 'other') ? ESCAPE : this.escapes());
    } else {
      this.name(word);
    }
  }

  /** Oracle's q'[...]': it ends with the bracket that closes, or the same sign, and a quote. */
  alternative() {
    const opening = this.text[this.at + 1] ?? '';
    const closing = { '[': ']', '(': ')', '{': '}', '<': '>' }[opening] ?? opening;
    const close = this.text.indexOf(`${closing}'`, this.at + 2);
    this.at = close < 0 ? this.text.length : close + 2;
    this.value();
  }
}
