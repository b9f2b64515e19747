/** Wall clock milliseconds as metav1.Time writes them: RFC 3339, UTC, whole seconds. */
export function formatTime(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19)}Z`;
}

/** Nanoseconds since the epoch, as CRI gives times, as metav1.Time; null for 0n, which CRI means as "not yet". */
export function formatNanoseconds(nanoseconds: bigint): string | null {
  return nanoseconds === 0n ? null : formatTime(Number(nanoseconds / 1_000_000n));
}

/** RFC 3339 text as wall clock milliseconds, what is finer cut off; undefined for any other text. */
export function parseTime(text: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/i.test(text)) return undefined;
  const milliseconds = Date.parse(text);
  return Number.isNaN(milliseconds) ? undefined : milliseconds;
}
