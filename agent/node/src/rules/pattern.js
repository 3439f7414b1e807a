// Matches names with a pattern. The syntax is that of the Java agent (agent/java/README.md, Patterns), without annotations. A
// pattern may have any length and any number of stars, and is matched on the program's own thread. Matching does not backtrack,
// so its time is bounded by the product of the lengths of pattern and name. Before: `rules.js`.
//
//   com.shop..*Service.find*     groups: [com, shop] [*Service, find*]     `..` between groups: any number of parts
//                                the first group fits the beginning, the last group the end, and each other group its first
//                                possible place

import * as messages from '../messages.js';

const PART = /^[\p{ID_Continue}$.*<>-]$/u;
const EVERYTHING = '*';

export class Pattern {
  /**
   * @param {string} text
   * @throws {RangeError} with a message, if the text is not a pattern
   */
  constructor(text) {
    this.text = text;
    if (text.startsWith('@')) {
      throw new RangeError(`annotation patterns are not supported in JavaScript: ${text}`);
    }
    for (const character of text) {
      if (!PART.test(character)) {
        throw new RangeError(messages.patternCharacter(character, text));
      }
    }
    if (text === '' || text.includes('...') || text.endsWith('.') || /^\.(?!\.)/.test(text)) {
      throw new RangeError(messages.patternDot(text));
    }
    const whole = text === EVERYTHING ? `..${text}` : text;
    /** The parts of each group, split at their stars. */
    this.groups = whole.split('..').map((group) => (group === '' ? [] : group.split('.').map((part) => part.split('*'))));
    /** Texts that every matching name contains: the pieces of the pattern between stars and double dots. */
    this.texts = new Set(whole.split('..').flatMap((group) => group.split('*')));
  }

  /**
   * True if the pattern matches the name of an operation, or the part of the name before its last dot.
   * @param {string[]} parts of the name, split at its dots
   */
  fits(parts) {
    return this.#fits(parts, parts.length) || (parts.length > 1 && this.#fits(parts, parts.length - 1));
  }

  /** @param {string[]} parts @param {number} count number of parts to match */
  #fits(parts, count) {
    const { groups } = this;
    const first = groups[0];
    if (groups.length === 1) {
      return count === first.length && fitsAt(first, parts, 0);
    }
    const last = groups[groups.length - 1];
    const end = count - last.length;
    let at = first.length;
    if (end < at || !fitsAt(first, parts, 0) || !fitsAt(last, parts, end)) {
      return false;
    }
    for (let next = 1; next < groups.length - 1; next++) {
      const group = groups[next];
      while (at + group.length <= end && !fitsAt(group, parts, at)) {
        at++;
      }
      at += group.length;
      if (at > end) {
        return false;
      }
    }
    return true;
  }
}

/** @param {string[][]} group @param {string[]} parts @param {number} from */
function fitsAt(group, parts, from) {
  for (let at = 0; at < group.length; at++) {
    if (!fitsPart(group[at], parts[from + at])) {
      return false;
    }
  }
  return true;
}

/**
 * Each piece is matched at its first position. If the following pieces do not match after the first position, they do not match
 * after a later position either.
 * @param {string[]} pieces
 * @param {string} text
 */
function fitsPart(pieces, text) {
  const first = pieces[0];
  if (pieces.length === 1) {
    return first === text;
  }
  const last = pieces[pieces.length - 1];
  const end = text.length - last.length;
  let at = first.length;
  if (at > end || !text.startsWith(first) || !text.endsWith(last)) {
    return false;
  }
  for (let next = 1; next < pieces.length - 1; next++) {
    const found = text.indexOf(pieces[next], at);
    at = found + pieces[next].length;
    if (found < 0 || at > end) {
      return false;
    }
  }
  return true;
}
