/**
 * Work that is done side by side. Settles when both have ended, so that nothing goes on behind a failure's back.
 * @throws the first one's error before the second's
 */
export async function bothEnded<A, B>(first: Promise<A>, second: B | Promise<B>): Promise<[A, B]> {
  await Promise.allSettled([first, second]);
  return [await first, await second];
}
