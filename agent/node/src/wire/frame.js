// Encodes bodies as frames, and decodes frames from the bytes of a socket. Drawn in `docs/format/wire.md`. Before:
// `../send/outbox.js`, `../send/protocol.js`. After: a socket.

import { Buffer } from 'node:buffer';
import { Bytes } from './bytes.js';
import { FRAME, FRAME_BODY_BYTES_MAX, FRAME_HEADER_BYTES, HELLO_PAIRS_MAX, VERSION } from './constants.js';
import { crc32c } from './crc32c.js';
import { Damaged, Reader } from './reader.js';
import * as messages from '../messages.js';

/** The bytes "HTTP", read as the length of a frame: the server's HTTP port answers with them. */
const HTTP = 0x5054_5448;

/**
 * Reserves room for the header. The caller then writes the body and calls `finishFrame`.
 * @param {Bytes} bytes
 */
export function beginFrame(bytes) {
  bytes.clear().reserve(FRAME_HEADER_BYTES);
  bytes.size = FRAME_HEADER_BYTES;
  return bytes;
}

/**
 * Fills in the header.
 * @param {Bytes} bytes
 * @param {number} type
 */
export function finishFrame(bytes, type) {
  const { array, size } = bytes;
  array.writeUInt32LE(size - FRAME_HEADER_BYTES, 0);
  array.writeUInt32LE(type, 4);
  array.writeUInt32LE(crc32c(array, FRAME_HEADER_BYTES, size, crc32c(array, 0, 8)), 8);
  return bytes;
}

/** Stands for a missing secret before a token. */
const NO_SECRET = new Uint8Array(16);

/**
 * @param {Uint8Array} session 16 bytes
 * @param {Iterable<[string, string]>} pairs attributes of the process
 * @param {{ versionMax?: number, secret?: Uint8Array | null, token?: Uint8Array | null }} [more] `secret`: the bytes from which
 * the session is derived; `token`: authenticates the client
 */
export function helloFrame(session, pairs, { versionMax = VERSION, secret = null, token = null } = {}) {
  const sent = [...pairs].slice(0, HELLO_PAIRS_MAX);
  const out = beginFrame(new Bytes(256)).raw(Buffer.from('tacho')).u8(VERSION).u8(versionMax).raw(session).varint(sent.length);
  for (const [key, value] of sent) {
    out.string(key).string(value);
  }
  if (secret !== null || token !== null) {
    out.raw(secret ?? NO_SECRET);
  }
  if (token !== null) {
    out.varint(token.length).raw(token);
  }
  return finishFrame(out, FRAME.HELLO).copy();
}

/**
 * @param {number | bigint} executionsDropped
 * @param {number | bigint} samplesDropped
 * @param {number | bigint} entriesDropped
 * @param {number | bigint} bytesBuffered
 */
export function pingFrame(executionsDropped, samplesDropped, entriesDropped, bytesBuffered) {
  const out = beginFrame(new Bytes(64)).varint(executionsDropped).varint(samplesDropped);
  return finishFrame(out.varint(entriesDropped).varint(bytesBuffered), FRAME.PING).copy();
}

export function byeFrame() {
  return finishFrame(beginFrame(new Bytes(16)), FRAME.BYE).copy();
}

/** Splits a stream of bytes, in pieces of any size, into frames. */
export class FrameReader {
  constructor() {
    /** @type {Buffer} */
    this.rest = Buffer.alloc(0);
  }

  /** @param {Buffer} bytes */
  push(bytes) {
    this.rest = this.rest.length === 0 ? bytes : Buffer.concat([this.rest, bytes]);
  }

  /** @returns {{ type: number, body: Reader } | null} null until the next frame is complete */
  next() {
    const { rest } = this;
    if (rest.length < FRAME_HEADER_BYTES) {
      return null;
    }
    const length = rest.readUInt32LE(0);
    if (length === HTTP) {
      throw new Damaged(messages.SERVER_IS_HTTP);
    }
    if (length > FRAME_BODY_BYTES_MAX) {
      throw new Damaged(`frame of ${length} bytes, at most ${FRAME_BODY_BYTES_MAX} are allowed`);
    }
    const end = FRAME_HEADER_BYTES + length;
    if (rest.length < end) {
      return null;
    }
    const expected = rest.readUInt32LE(8);
    const found = crc32c(rest, FRAME_HEADER_BYTES, end, crc32c(rest, 0, 8));
    if (found !== expected) {
      throw new Damaged(`frame checksum mismatch: expected 0x${expected.toString(16)}, got 0x${found.toString(16)}`);
    }
    this.rest = rest.subarray(end);
    return { type: rest[4], body: new Reader(rest.subarray(FRAME_HEADER_BYTES, end)) };
  }
}
