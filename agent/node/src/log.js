// What should a person know of the agent? One line at a time, on standard error or in a file, and never a second copy of what was
// said a short while ago, so that a fault that repeats cannot fill a disk.

import { appendFileSync, writeSync } from 'node:fs';

const REPEAT_MS = 60_000;
const SUBJECTS_MAX = 1_000;

export class Log {
  /**
   * @param {string} file nothing for standard error
   * @param {boolean} chatty also `detail` lines
   */
  constructor(file = '', chatty = false) {
    this.file = file;
    this.chatty = chatty;
    /** @type {Map<string, number>} */
    this.saidAt = new Map();
  }

  /**
   * Why the file cannot be written to, in which case lines go to standard error; empty if it can.
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

  /** @param {string} line a fault, or that it is over */
  say(line) {
    const text = `${new Date().toISOString()} tachograph: ${line}\n`;
    try {
      if (this.file !== '') {
        appendFileSync(this.file, text);
      } else {
        writeSync(2, text); // not process.stderr: to make its stream would change what the program finds
      }
    } catch {
      // Nowhere to say it.
    }
  }

  /**
   * As `say`, but at most once a minute for each subject.
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

  /** @param {string} line said only when the setting log_detail is set */
  detail(line) {
    if (this.chatty) {
      this.say(line);
    }
  }
}
