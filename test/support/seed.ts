/** What PODWRIGHT_TEST_SEED says; `npm test` sets it, so that it tries the same each time. */
export function chosenSeed(): number | undefined {
  const text = process.env["PODWRIGHT_TEST_SEED"];
  return text === undefined ? undefined : Number(text);
}

/** The seed that was chosen; another one each time where none was. */
export function seedOfTest(): number {
  return chosenSeed() ?? Date.now() % 1_000_000;
}
