// Decodes the fields of a body from the server. Before: `frame.js`. After: `../send/protocol.js`.

/** The bytes violate the protocol. */
export class Damaged extends Error {}

export class Reader {
  /** @param {import('node:buffer').Buffer} body */
  constructor(body) {
    this.body = body;
    this.at = 0;
  }

  u8() {
    if (this.at >= this.body.length) {
      throw new Damaged(`field beyond the end of the frame (byte ${this.at})`);
    }
    return this.body[this.at++];
  }

  /** @returns {number | bigint} a bigint if a number would not be exact */
  varint() {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.u8();
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) {
        if (value >= 1n << 64n) {
          break;
        }
        return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
      }
    }
    throw new Damaged(`varint of more than 64 bits (byte ${this.at})`);
  }

  i64() {
    if (this.at + 8 > this.body.length) {
      throw new Damaged(`field beyond the end of the frame (byte ${this.at})`);
    }
    this.at += 8;
    return this.body.readBigInt64LE(this.at - 8);
  }

  string() {
    const end = Number(this.varint()) + this.at;
    if (end > this.body.length) {
      throw new Damaged(`string beyond the end of the frame (byte ${this.at})`);
    }
    const text = this.body.toString('utf8', this.at, end);
    this.at = end;
    return text;
  }
}
