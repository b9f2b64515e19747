import { parseTime } from "../base/time.ts";

/** The last year that RFC 3339 can write ends here, wall clock ms. */
const lastMs = Date.UTC(10_000, 0, 1) - 1;

/**
 * Whether a line of a log is not older than a time, as the runtime dated it; of what it did not date nobody knows.
 * @param sinceMs wall clock ms
 */
export function notBefore(sinceMs: number): (time: string) => boolean {
  const exact = (time: string): boolean => !((parseTime(time) ?? sinceMs) < sinceMs);
  if (sinceMs < 0 || sinceMs > lastMs) return exact;
  const second = new Date(sinceMs).toISOString().slice(0, 19);
  return (time) => {
    // Times of one zone are in the order of their texts, which compare in a tenth of the time that reading them takes.
    const own = time.endsWith("Z") ? time.slice(0, 19) : second;
    return own === second ? exact(time) : own > second;
  };
}
