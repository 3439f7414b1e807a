// Which colour does the n-th series get? Tokens of tokens.css, used again from the start after the last.
const SERIES = 8;

/** Class that sets the colour: c1 to c8. */
export const colorClass = (index: number): string => `c${(index % SERIES) + 1}`;

/** Token for canvases: --s1 to --s8. */
export const colorToken = (index: number): string => `--s${(index % SERIES) + 1}`;
