// The types of `index.js` for programs in TypeScript.

/** The name, or all labels with `__name__`. */
export type Labels = string | (Record<string, unknown> & { __name__: string });

/**
 * Runs `fn` as a recorded call, the parent of calls inside it. Returns or throws the same as `fn`. If the result is a promise,
 * the caller gets another promise that settles in the same way, and the call ends when it settles. A promise of a subclass or
 * with members of its own is returned unchanged, and the call ends at once.
 */
export function record<T>(name: string, fn: () => T): T;

/** Returns a function or method that behaves like `fn` and records its calls. A construction with `new` is not recorded. */
export function wrap<F extends (this: any, ...args: any[]) => any>(fn: F, name?: string): F;

/** Records a sample at the current time. A bigint is sent as an integer of 64 bits. */
export function sample(labels: Labels, value: number | bigint): void;

/** Records an entry at the current time, such as an event or a line of a log. */
export function entry(labels: Labels, text: string): void;
