// Runs `board.cjs` as a CommonJS program.
'use strict';

const { record } = require('tachograph');
const board = require('./board.cjs');

board(record);
