// Builds the shape of a statement from its tokens: white space becomes one blank, rows and lists of values are folded, long text
// is cut. The rules are the same as in `SqlShape.java` and Python's `sql_shape.py`. Before: `sql.js`, which reads the tokens.
// After: `../wire/dictionary.js`.

/** Maximum length of a shape, characters. */
export const NAME_CHARS_MAX = 1_000;
/** End of the first row of a bulk insert, and `...` for the later rows. */
const ROWS = '), ...';

/** Classes of characters in the patterns below: characters of a name, and all others. */
const NAME = '[A-Za-z0-9_\\x80-\\uffff]';
const NO_NAME = '[^A-Za-z0-9_\\x80-\\uffff]';
/** One value of a list: a literal, a parameter, or a word such as null. It may have a sign, a type and a cast. */
const ITEM = new RegExp(
  '^[-+]? ?(?:(?:date|time|timestamp|interval) )?' + `(?::?\\?|null|true|false|default|[:@]${NAME}+)(?:::${NAME}+(?:\\[\\])?)?$`,
  'i',
);
/** Text before a list of values or before a row: `in`, `values`, a row, a bracket. */
const BEFORE_ITEMS = new RegExp(`(?:^|${NO_NAME})(in) ?$|(?:(?:^|${NO_NAME})values? ?|\\)(?:, \\.\\.\\.)?, )(row ?)?$|\\($`, 'i');
const BEFORE_ITEMS_CHARS = 12;
/** A folded row: each value is `?`. */
const ROW = /^(?:row ?)?\([?, ]*\)$/i;
const VALUES = new RegExp(`(?:^|${NO_NAME})values? ?$`, 'i');
const ARRAY = /\[\?(?:, \?)+\]$/;
/** After these words, SQLite reads a text in double quotes as the name of a table. */
const BEFORE_TABLE = new RegExp(`(?:^|${NO_NAME})(?:(?<!distinct )from|join|into|update|table) $`, 'i');
const BEFORE_ALIAS = new RegExp(`${NO_NAME}as $`, 'i');
const TABLE = /^ [^ ()]+ ?$/;
const BEFORE_PASSWORD = new RegExp(
  `(?:^|${NO_NAME})(?:identified (?:by|by \\? replace|(?:with|via) [^ ]+ (?:as|by|using))` +
    '|pragma (?:[^ ]+\\.)?(?:hex|text)?(?:re)?key ?[=(]) ?$',
  'i',
);
/** A column list may follow after `into`, a password after the other words. */
const TELLING = /^(?:(into)|identified|pragma)$/i;

/** Content of a bracket. */
const OTHER = 0;
const LIST = 1;
const ROW_OF_VALUES = 2;

export class Shape {
  constructor() {
    this.out = '';
    /**
     * The open brackets: position, start of the row, content.
     * @type {{ at: number, from: number, holds: number }[]}
     */
    this.open = [];
    /** Start of the current value of a list. */
    this.item = 0;
    /** End of the last `into`; -1 if a bracket was opened after it. */
    this.into = -1;
    /** Number of open brackets of the column list of an insert, including its own; 0 outside of a column list. */
    this.columns = 0;
    /** True if a password may follow. */
    this.isSecret = false;
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

  /** @param {string} text */
  sign(text) {
    this.out += text;
    if (text === ']') {
      this.out = this.out.replace(ARRAY, '[?]');
    }
  }

  /** Copies a name; after `identified by` and similar words it is a password. @param {string} name */
  name(name) {
    if (this.isSecret && BEFORE_PASSWORD.test(this.out.slice(-80))) {
      this.value();
    } else {
      this.out += name;
      if (name.length === 4 || name.length === 6 || name.length === 10) {
        this.note(name);
      }
    }
  }

  /** @param {string} word has the length of one of the known words */
  note(word) {
    const found = TELLING.exec(word);
    if (found !== null && found[1] !== undefined) {
      this.into = this.out.length;
    } else if (found !== null) {
      this.isSecret = true;
    }
  }

  /** True if only a name is possible here: the later part of a qualified name, an alias, a column. */
  isBeforeName() {
    const { out } = this;
    const isQualified = out.endsWith('.') && !out.endsWith('...');
    return this.columns === 1 || isQualified || BEFORE_ALIAS.test(out.slice(-4));
  }

  isBeforeTable() {
    return BEFORE_TABLE.test(this.out.slice(-16));
  }

  openBracket() {
    const { out } = this;
    if (this.columns > 0) {
      this.columns++;
    } else if (this.into >= 0) {
      this.columns = TABLE.test(out.slice(this.into)) ? 1 : 0;
      this.into = -1;
    }
    const found = BEFORE_ITEMS.exec(out.slice(-BEFORE_ITEMS_CHARS));
    const holds = found === null ? OTHER : found[1] === undefined ? ROW_OF_VALUES : LIST;
    this.open.push({ at: out.length, from: out.length - (found?.[2]?.length ?? 0), holds });
    this.out += '(';
    this.item = this.out.length;
  }

  /** @returns {boolean} true if the closed bracket is one of the rows that `...` replaces */
  closeBracket() {
    this.dropBlank();
    this.endItem();
    this.out += ')';
    this.columns = Math.max(0, this.columns - 1);
    const bracket = this.open.pop();
    return bracket !== undefined && this.foldRow(bracket.from);
  }

  comma() {
    this.out += ', ';
    this.item = this.out.length;
  }

  /**
   * Ends a value of a list: after `in`, the first value stands for all values; in a row, each value becomes `?`.
   * @returns {boolean} true if this value also stands for the values that follow
   */
  endItem() {
    const { out, item } = this;
    const bracket = this.open.at(-1);
    if (bracket === undefined || bracket.holds === OTHER) {
      return false;
    }
    const isValue = out.length === item + 1 && out.endsWith('?');
    if (!isValue && !ITEM.test(out.slice(item))) {
      return false;
    }
    const { at } = bracket;
    const isFirst = item === at + 1;
    const stands = bracket.holds === LIST && (isFirst || out.slice(at, item) === '(?, ');
    if (stands) {
      this.out = `${out.slice(0, at)}(?`;
    } else if (bracket.holds === ROW_OF_VALUES) {
      this.out = `${out.slice(0, item)}?`;
    }
    return stands;
  }

  /** `(?, ?), (?, ?)` of a bulk insert becomes `(?, ?), ...`. @param {number} from start of the row */
  foldRow(from) {
    const { out } = this;
    const row = out.slice(from);
    const isPlain = ROW.test(row);
    if ((isPlain && out.endsWith('..., ', from)) || out.endsWith(`${row}, ..., `, from)) {
      this.out = out.slice(0, from - 2);
      return true;
    }
    const before = from - row.length - 2;
    if (out.endsWith(`${row}, `, from) && (isPlain || VALUES.test(out.slice(Math.max(0, before - 8), before)))) {
      this.out = `${out.slice(0, from)}...`;
      return true;
    }
    return false;
  }

  /** @param {boolean} isWhole true if the statement was read to its end @returns {string} */
  finish(isWhole) {
    const { out } = this;
    const isCut = !isWhole || out.length > NAME_CHARS_MAX;
    const rows = isCut ? out.lastIndexOf(ROWS) : -1;
    if (rows >= 0) {
      // A cut may be inside the rows of a bulk insert, at a place that depends on the data. So the shape ends after `...`, which
      // stands for the rows, even if the cut is later.
      return out.slice(0, Math.min(rows + ROWS.length, NAME_CHARS_MAX));
    }
    const list = isCut ? this.openList() : -1;
    if (list >= 0) {
      return out.slice(0, Math.min(list, NAME_CHARS_MAX - 5)) + '(?...';
    }
    const trimmed = out.replace(/[ ;]+$/, '');
    return isCut ? trimmed.slice(0, NAME_CHARS_MAX - 3) + '...' : trimmed;
  }

  /** Start of an unclosed list of values after `in`; -1 for none. */
  openList() {
    const bracket = this.open.at(-1);
    return bracket !== undefined && bracket.holds === LIST && this.out.startsWith('(?', bracket.at) ? bracket.at : -1;
  }
}
