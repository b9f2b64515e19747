/** Versions of one kind grow (KEP-5504); where they are no numbers, what comes later is taken to be newer. */
export function isNewer(version: string | undefined, than: string | undefined): boolean {
  const numbers = [version, than].map((text) => (text !== undefined && /^\d+$/u.test(text) ? BigInt(text) : undefined));
  const [a, b] = numbers;
  return a === undefined || b === undefined || a > b;
}
