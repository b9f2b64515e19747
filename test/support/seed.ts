/** PODWRIGHT_TEST_SEED; `npm test` sets it to a constant. */
export function chosenSeed(): number | undefined {
  const text = process.env["PODWRIGHT_TEST_SEED"];
  return text === undefined ? undefined : Number(text);
}

/** The given seed, or else a random one. */
export function seedOfTest(): number {
  return chosenSeed() ?? Date.now() % 1_000_000;
}
