// Samples and entries that the server would refuse are dropped and logged once.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LABELS_BYTES_MAX, LABEL_VALUE_BYTES_MAX } from '../src/wire/constants.js';
import { parts } from './support/parts.js';

/**
 * Labels that, together with the label `service` of `parts`, have this size in the canonical form of the server. The form takes
 * two bytes per label in addition to name and value.
 */
function labels(bytes) {
  const own = { __name__: 'm' };
  let rest = bytes - ('__name__'.length + 1 + 2) - ('service'.length + 1 + 2);
  for (let at = 10; rest > 0; at++) {
    const value = Math.min(LABEL_VALUE_BYTES_MAX, rest - 'l00'.length - 2);
    own[`l${at}`] = 'v'.repeat(value);
    rest -= value + 'l00'.length + 2;
  }
  return own;
}

test('labels of one series may have as many bytes as the server accepts, and not one more', () => {
  const { samples, totals, log } = parts();
  samples.sample(labels(LABELS_BYTES_MAX), 1);
  samples.entry(labels(LABELS_BYTES_MAX), 'text');
  assert.deepEqual([totals.samplesSent, totals.entriesSent, log.lines], [1, 1, []]);
  samples.sample(labels(LABELS_BYTES_MAX + 1), 1);
  samples.entry(labels(LABELS_BYTES_MAX + 1), 'text');
  assert.deepEqual([totals.samplesSent, totals.samplesDropped], [1, 1]);
  assert.deepEqual([totals.entriesSent, totals.entriesDropped], [1, 1]);
  assert.match(log.lines[0], /labels of 65537 bytes, at most 65536 are allowed for one series/);
});
