// Ids of texts, operations and series on the wire. An id keeps its meaning for the whole session, so frames that are sent again
// stay valid; a new connection gets all definitions from the start. Sizes are bounded as the protocol requires; names beyond a
// bound become `(other)`. Before: `../record/`, `../sample/`. After: `../send/protocol.js`, which sends new definitions before a
// DATA frame.

import { Bytes } from './bytes.js';
import { ATTRIBUTE_BYTES_MAX, DICT, DICT_BYTES_MAX, DICT_IDS_MAX, FRAME, KIND, OPERATION_BYTES_MAX, STATE } from './constants.js';
import { beginFrame, finishFrame } from './frame.js';

export const OTHER = '(other)';
/** The state of an operation without an id. */
export const UNKNOWN = 255;

/** These limits are lower than the bounds of the protocol, because a limit is checked before a definition is added. */
const OPERATIONS_MAX = DICT_IDS_MAX - 64;
const STRING_BYTES_MAX = DICT_BYTES_MAX - (1 << 20);

/**
 * Limit on names of each kind except method. These names may come from data. Each kind has its own limit, so that no kind uses
 * up the ids of the others.
 */
const KIND_MAX = 8_192;
const METHODS_MAX = OPERATIONS_MAX - 5 * KIND_MAX;
/** Limits on the ids of keys and thread names, and on the ids of repeated values. */
const TEXTS_MAX = 32_768;
const VALUES_MAX = 16_384;
const SERIES_MAX = 16_384;
/** Longer values are sent as strings. */
const VALUE_CHARS_MAX = 64;
/** A DICT frame is closed when it reaches this size. */
const BODY_BYTES = 65_536;
const SEEN = 4_096;

/** @param {Bytes} out @param {number} id @param {string} text */
export function defineText(out, id, text) {
  out.u8(DICT.TEXT).varint(id).stringCut(text, ATTRIBUTE_BYTES_MAX);
}

/** @param {Bytes} out @param {number} id @param {number} kind @param {string} name */
export function defineOperation(out, id, kind, name) {
  out.u8(DICT.OPERATION).varint(id).u8(kind).stringCut(name, OPERATION_BYTES_MAX);
}

/** @param {Bytes} out @param {number} id @param {[string, string][]} labels */
export function defineSeries(out, id, labels) {
  out.u8(DICT.SERIES).varint(id).varint(labels.length);
  for (const [name, value] of labels) {
    out.string(name).string(value);
  }
}

export class Dictionary {
  /** @param {{ methods?: number, stringBytes?: number }} [limits] for tests, instead of the usual limits */
  constructor(limits = {}) {
    this.methodsMax = limits.methods ?? METHODS_MAX;
    this.stringBytesMax = limits.stringBytes ?? STRING_BYTES_MAX;
    this.definitions = new Bytes(16_384);
    /** Positions where a DICT body may end. Each is at least BODY_BYTES after the previous one. @type {number[]} */
    this.cuts = [];
    this.stringBytes = 0;
    /** One map for each kind. @type {Map<string, number>[]} */
    this.operations = Array.from({ length: 7 }, () => new Map());
    this.operationCount = 0;
    /** Kind and name of each operation by its id. */
    this.entries = [{ kind: 0, name: '' }];
    /** State of each operation by its id. The state of id 0 (an operation that has no id yet) is `UNKNOWN`. */
    this.states = new Uint8Array(DICT_IDS_MAX + 1).fill(STATE.ON);
    this.states[0] = UNKNOWN;
    /** Called for each new operation. @type {(kind: number, name: string, id: number) => number} */
    this.stateOf = () => STATE.ON;
    /** @type {Map<string, number>} */
    this.texts = new Map();
    this.textCount = 0;
    this.valueCount = 0;
    this.seriesCount = 0;
    this.seen = new Int32Array(SEEN);
    for (let kind = KIND.METHOD; kind <= KIND.TASK; kind++) {
      this.#defineOperation(kind, OTHER);
    }
  }

  /**
   * Bytes of all definitions so far. A connection must have sent them before a DATA frame that is closed now.
   */
  size() {
    return this.definitions.size;
  }

  /**
   * @param {number} kind
   * @param {string} name cut at 8,192 bytes when it is sent
   * @returns {number}
   */
  operation(kind, name) {
    const known = this.operations[kind];
    const id = known.get(name);
    if (id !== undefined) {
      return id;
    }
    const full = known.size >= (kind === KIND.METHOD ? this.methodsMax : KIND_MAX) || this.stringBytes > this.stringBytesMax;
    return full ? /** @type {number} */ (known.get(OTHER)) : this.#defineOperation(kind, name);
  }

  /** @param {number} kind @param {string} name */
  #defineOperation(kind, name) {
    const id = this.operationCount + 1;
    const state = this.stateOf(kind, name, id);
    this.#define(() => defineOperation(this.definitions, id, kind, name));
    this.states[id] = state;
    this.entries[id] = { kind, name };
    this.operationCount = id;
    this.operations[kind].set(name, id);
    return id;
  }

  /**
   * Id of a key or a thread's name.
   * @param {string} text
   * @returns {number}
   */
  text(text) {
    const id = this.texts.get(text);
    if (id !== undefined) {
      return id;
    }
    const full = this.texts.size - this.valueCount >= TEXTS_MAX || this.stringBytes > this.stringBytesMax;
    return full && text !== OTHER ? this.text(OTHER) : this.#defineText(text);
  }

  /**
   * Id of a short value.
   * @param {string} value
   * @returns {number} 0 if the value is long or was not seen lately, or if the dictionary is full
   */
  value(value) {
    const id = this.texts.get(value);
    if (id !== undefined) {
      return id;
    }
    if (value.length > VALUE_CHARS_MAX || this.valueCount >= VALUES_MAX || this.stringBytes > this.stringBytesMax) {
      return 0;
    }
    let hash = 0;
    for (let at = 0; at < value.length; at++) {
      hash = (Math.imul(hash, 31) + value.charCodeAt(at)) | 0;
    }
    hash |= 1;
    const slot = (hash >>> 1) % SEEN;
    if (this.seen[slot] !== hash) {
      this.seen[slot] = hash;
      return 0;
    }
    const defined = this.#defineText(value);
    this.valueCount++;
    return defined;
  }

  /** @param {string} text */
  #defineText(text) {
    const id = this.textCount + 1;
    this.#define(() => defineText(this.definitions, id, text));
    this.textCount = id;
    this.texts.set(text, id);
    return id;
  }

  /**
   * @param {[string, string][]} labels
   * @returns {number} 0 if the dictionary is full
   */
  series(labels) {
    if (this.seriesCount >= SERIES_MAX || this.stringBytes > this.stringBytesMax) {
      return 0;
    }
    const id = this.seriesCount + 1;
    this.#define(() => defineSeries(this.definitions, id, labels));
    this.seriesCount = id;
    return id;
  }

  /**
   * Writes completely or not at all, because the program's stack may overflow in `write`.
   * @param {() => void} write
   */
  #define(write) {
    const { cuts, definitions } = this;
    const before = definitions.size;
    try {
      write();
      if (definitions.size - (cuts.at(-1) ?? 0) >= BODY_BYTES) {
        cuts.push(definitions.size);
      }
    } catch (fault) {
      definitions.size = before;
      throw fault;
    }
    this.stringBytes += definitions.size - before;
  }

  /**
   * The next DICT frame of a connection.
   * @param {number} from bytes already sent on it
   * @param {number} to bytes needed, more than `from`
   * @returns {{ frame: Buffer, end: number }} `end`: total bytes of definitions on this connection after this frame
   */
  frame(from, to) {
    const cut = this.cuts.find((at) => at > from);
    const end = cut === undefined ? to : Math.min(cut, to);
    const out = beginFrame(new Bytes(end - from + 16)).raw(this.definitions.array.subarray(from, end));
    return { frame: finishFrame(out, FRAME.DICT).array.subarray(0, out.size), end };
  }
}
