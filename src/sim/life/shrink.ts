/** The part of a life to play: steps by index, and features that its pods lack. */
interface SmallerLife {
  readonly steps: readonly number[];
  readonly without: readonly string[];
}

/** A smaller life that breaks the same rule. */
export interface Shrunk extends SmallerLife {
  /** Number of lives played to find it. */
  readonly tries: number;
}

/**
 * Shrinks a failing life: leaves out halves of its steps, quarters and so on down to single ones, then features of
 * pods, as long as it still fails.
 * @param mayTry whether another life may be played after so many
 */
export async function shrink(
  all: readonly number[],
  features: readonly string[],
  fails: (options: SmallerLife) => Promise<boolean>,
  mayTry: (tries: number) => boolean,
): Promise<Shrunk> {
  let steps = all;
  let without: readonly string[] = [];
  let tries = 0;
  const stillFails = async (options: SmallerLife): Promise<boolean> => {
    tries++;
    return await fails(options);
  };
  for (let size = Math.ceil(steps.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < steps.length && mayTry(tries);) {
      const rest = steps.toSpliced(from, size);
      if (rest.length > 0 && (await stillFails({ steps: rest, without }))) steps = rest;
      else from += size;
    }
  }
  for (const feature of features) {
    if (!mayTry(tries)) break;
    const more = [...without, feature];
    if (await stillFails({ steps, without: more })) without = more;
  }
  return { steps, without, tries };
}
