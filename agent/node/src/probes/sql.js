// What is the shape of a statement? Literals become `?`, white space one blank, comments nothing, and lists of values one
// value, so that statements that differ only in data are one operation and no data leaves the process. The same as the Java
// agent's `Sql.java`.
//
// Knows what the common dialects agree on: 'it''s', E'\'', $tag$...$tag$, "name", `name`, -- ..., /* ... */, $1. A text that ends
// inside a literal is taken as if it were closed there. Before: `pg.js`. After: `../wire/dictionary.js`.

/** Characters of a name; what is longer is cut. */
const NAME_CHARS_MAX = 1_000;
/** Characters that are read; a bulk insert may have megabytes. */
const TEXT_CHARS_MAX = 20_000;
/** What the second and later rows of a bulk insert become. */
const ROWS = '), ...';

const LETTER = /\p{L}/u;
const WORD = /[\p{L}\p{Nd}_$#]*/uy;
const NUMBER = /(?:[eE][+-]|[\p{L}\p{Nd}._])*/uy;
const DOLLAR = /\$([\p{L}\p{Nd}_]*)\$?/uy;

/** @param {string} text @returns {string} at most 1,000 characters */
export function shape(text) {
  return new Shape(text).run();
}

class Shape {
  /** @param {string} text */
  constructor(text) {
    this.text = text.slice(0, TEXT_CHARS_MAX);
    this.isWhole = text.length <= TEXT_CHARS_MAX;
    this.out = '';
    this.at = 0;
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
    const trimmed = this.out.replace(/[ ;]+$/, '');
    return isCut ? trimmed.slice(0, NAME_CHARS_MAX - 3) + '...' : trimmed;
  }

  step() {
    const { text, at } = this;
    const c = text[at];
    const next = text[at + 1];
    if (/\s/.test(c)) {
      this.at++;
      this.blank();
    } else if ((c === '-' && next === '-') || (c === '/' && next === '*')) {
      this.comment(c);
    } else if (c === "'") {
      this.string(false);
    } else if (c === '"' || c === '`') {
      this.quotedName(c);
    } else if (c === '$') {
      this.dollar();
    } else if (c >= '0' && c <= '9') {
      this.at = this.match(NUMBER);
      this.value();
    } else if (c === '_' || LETTER.test(c)) {
      this.word();
    } else {
      this.at++;
      this.sign(c);
    }
  }

  /** @param {RegExp} pattern sticky @returns {number} where what it matches here ends */
  match(pattern) {
    pattern.lastIndex = this.at;
    pattern.exec(this.text);
    return Math.max(pattern.lastIndex, this.at + 1);
  }

  blank() {
    if (this.out !== '' && !this.out.endsWith(' ') && !this.out.endsWith('(')) {
      this.out += ' ';
    }
  }

  /** @param {string} c */
  sign(c) {
    if ((c === ',' || c === ')') && this.out.endsWith(' ')) {
      this.out = this.out.slice(0, -1);
    }
    if (c === ')') {
      this.foldRow();
    } else if (c === '?') {
      this.value();
    } else {
      this.out += c === ',' ? ', ' : c;
    }
  }

  /** A literal or a parameter. In a list of values after `in (` the first one stands for all. */
  value() {
    if (this.out.endsWith('(?, ') && /(?:^|[^\p{L}\p{Nd}])in *\(\?, $/iu.test(this.out.slice(-40))) {
      this.out = this.out.slice(0, -2);
    } else {
      this.out += '?';
    }
  }

  /** Closes a bracket; `(?, ?), (?, ?)` of a bulk insert becomes `(?, ?), ...`. */
  foldRow() {
    this.out += ')';
    const open = this.out.lastIndexOf('(');
    const row = open < 0 ? '' : this.out.slice(open);
    if (!/^\([?, ]*\)$/.test(row)) {
      return;
    }
    const before = this.out.slice(0, open);
    if (before.endsWith('..., ')) {
      this.out = before.slice(0, -2);
    } else if (before.endsWith(`${row}, `)) {
      this.out = `${before}...`;
    }
  }

  /** @param {string} first */
  comment(first) {
    const close = first === '-' ? this.text.indexOf('\n', this.at) : this.text.indexOf('*/', this.at + 2);
    this.at = close < 0 ? this.text.length : close + (first === '-' ? 1 : 2);
    this.blank();
  }

  /** @param {boolean} backslash whether one protects the next character */
  string(backslash) {
    const { text } = this;
    for (this.at++; this.at < text.length; this.at++) {
      if (text[this.at] === '\\' && backslash) {
        this.at++;
      } else if (text[this.at] === "'") {
        if (text[this.at + 1] !== "'") {
          break;
        }
        this.at++;
      }
    }
    this.at++;
    this.value();
  }

  /** @param {string} quote */
  quotedName(quote) {
    const close = this.text.indexOf(quote, this.at + 1);
    const end = close < 0 ? this.text.length : close + 1;
    this.out += this.text.slice(this.at, end);
    this.at = end;
  }

  /** `$1` is a parameter, `$tag$...$tag$` a string. */
  dollar() {
    const end = this.match(DOLLAR);
    const tag = this.text.slice(this.at, end);
    if (tag.length > 1 && tag.endsWith('$')) {
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
    if (this.text[this.at] === "'" && this.at - from === 1) {
      this.string(/e/i.test(this.text[from])); // E'..', N'..', X'..', B'..'
    } else {
      this.out += this.text.slice(from, this.at);
    }
  }
}
