/** Wall clock milliseconds as metav1.Time writes them: RFC 3339, UTC, whole seconds. */
export function formatTime(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19)}Z`;
}

/** Nanoseconds since the epoch, as CRI gives times, as metav1.Time; null for 0n, which CRI means as "not yet". */
export function formatNanoseconds(nanoseconds: bigint): string | null {
  return nanoseconds === 0n ? null : formatTime(Number(nanoseconds / 1_000_000n));
}
