// The colour of the n-th series. tokens.css has eight colours; the ninth series has the first colour again.
const SERIES = 8;

/** Class with the colour: c1 to c8. */
export const colorClass = (index: number): string => `c${(index % SERIES) + 1}`;

/** Token for canvases: --s1 to --s8. */
export const colorToken = (index: number): string => `--s${(index % SERIES) + 1}`;
