// Runs `board.cjs` as a program of ES modules. The first import is `pg`.

import pg from 'pg';
import { record } from 'tachograph';
import board from './board.cjs';

if (typeof pg.Pool !== 'function') throw new Error('no pool');
await board(record);
