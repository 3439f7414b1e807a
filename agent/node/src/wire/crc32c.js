// CRC-32C (Castagnoli, RFC 3720 appendix B.4), four bytes per step.

const POLYNOMIAL = 0x82f63b78;
const TABLES = makeTables();

function makeTables() {
  const tables = [new Int32Array(256), new Int32Array(256), new Int32Array(256), new Int32Array(256)];
  for (let byte = 0; byte < 256; byte++) {
    let value = byte;
    for (let bit = 0; bit < 8; bit++) {
      value = value & 1 ? (value >>> 1) ^ POLYNOMIAL : value >>> 1;
    }
    tables[0][byte] = value;
  }
  for (let table = 1; table < 4; table++) {
    for (let byte = 0; byte < 256; byte++) {
      const before = tables[table - 1][byte];
      tables[table][byte] = (before >>> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

/**
 * @param {Uint8Array} bytes
 * @param {number} from
 * @param {number} to
 * @param {number} [before] the checksum of the preceding bytes
 * @returns {number} from 0 to 2^32 - 1
 */
export function crc32c(bytes, from, to, before = 0) {
  const [t0, t1, t2, t3] = TABLES;
  let crc = ~before;
  let at = from;
  for (; at + 4 <= to; at += 4) {
    crc ^= bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
    crc = t3[crc & 0xff] ^ t2[(crc >>> 8) & 0xff] ^ t1[(crc >>> 16) & 0xff] ^ t0[crc >>> 24];
  }
  for (; at < to; at++) {
    crc = (crc >>> 8) ^ t0[(crc ^ bytes[at]) & 0xff];
  }
  return ~crc >>> 0;
}
