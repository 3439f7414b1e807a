// The agent's log: one line at a time, on standard error or in a file. Lines of `sayOnce` are not repeated within a minute, so
// that a recurring error cannot fill a disk.

import { appendFileSync, writeSync } from 'node:fs';

const REPEAT_MS = 60_000;
const SUBJECTS_MAX = 1_000;

export class Log {
  /**
   * @param {string} file empty for standard error
   * @param {boolean} chatty true to write `detail` lines too
   */
  constructor(file = '', chatty = false) {
    this.file = file;
    this.chatty = chatty;
    /** @type {Map<string, number>} */
    this.saidAt = new Map();
  }

  /**
   * Falls back to standard error if the file is not writable; returns the reason, or an empty string.
   * @returns {string}
   */
  fallBack() {
    try {
      if (this.file !== '') {
        appendFileSync(this.file, '');
      }
    } catch (error) {
      this.file = '';
      return error instanceof Error ? error.message : String(error);
    }
    return '';
  }

  /** @param {string} line */
  say(line) {
    const text = `${new Date().toISOString()} tachograph: ${line}\n`;
    try {
      if (this.file !== '') {
        appendFileSync(this.file, text);
      } else {
        writeSync(2, text); // not process.stderr: creating its stream would be visible to the program
      }
    } catch {
      // No output is possible.
    }
  }

  /**
   * As `say`, but at most once a minute for each subject. After the first 1,000 subjects, new ones are not logged.
   * @param {string} subject
   * @param {string} line
   */
  sayOnce(subject, line) {
    const now = Date.now();
    const before = this.saidAt.get(subject);
    if (before === undefined ? this.saidAt.size >= SUBJECTS_MAX : now - before < REPEAT_MS) {
      return;
    }
    this.saidAt.set(subject, now);
    this.say(line);
  }

  /** @param {string} line is written only if `log_detail` is set */
  detail(line) {
    if (this.chatty) {
      this.say(line);
    }
  }
}
