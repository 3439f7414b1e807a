// The board as a program of ES modules: `pg` is imported before anything else.

import pg from 'pg';
import { record } from 'tachograph';
import board from './board.cjs';

if (typeof pg.Pool !== 'function') throw new Error('no pool');
await board(record);
