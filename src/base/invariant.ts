/** What holds whenever podwright is right was not so: a defect of podwright. */
export class InvariantError extends Error {
  constructor(name: string, detail: string) {
    super(`broken invariant: ${name}: ${detail}`);
    this.name = "InvariantError";
  }
}

/** What is done about a broken invariant; it may throw. */
export type BrokenInvariant = (name: string, detail: string) => void;

function refuse(name: string, detail: string): void {
  throw new InvariantError(name, detail);
}

let broken: BrokenInvariant = refuse;

/**
 * States what always holds, and what a violation means. A violation throws, unless a handler is set ({@link
 * onBrokenInvariant}): a production node continues.
 * @param name a sentence, once in the sources; the comment beside a use says why it holds
 * @param detail is evaluated only for a violation
 */
export function invariant(name: string, holds: boolean, detail: () => string): void {
  if (!holds) broken(name, detail());
}

/** Says what is done about broken invariants from now on, until disposed of. */
export function onBrokenInvariant(handle: BrokenInvariant): Disposable {
  const before = broken;
  broken = handle;
  return { [Symbol.dispose]: () => void (broken = before) };
}
