// The types of `index.js` for programs in TypeScript.

/** The name alone, or all labels with `__name__`. */
export type Labels = string | (Record<string, unknown> & { __name__: string });

/** Runs `fn` as a call; what it calls is below it. A promise ends the call when it settles. */
export function record<T>(name: string, fn: () => T): T;

/** A function or method that does what `fn` does, and is a call each time. */
export function wrap<F extends (this: any, ...args: any[]) => any>(fn: F, name?: string): F;

/** A number of a series, now. A bigint is sent as a whole number of 64 bits. */
export function sample(labels: Labels, value: number | bigint): void;

/** A text of a series, now: an event, a line of a log. */
export function entry(labels: Labels, text: string): void;
