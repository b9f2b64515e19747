/** The messages of upstream's image Events, verbatim. */
export const pullMessages = {
  /** @param judged the pod's access to the image was verified */
  present: (image: string, judged: boolean) =>
    `Container image ${JSON.stringify(image)} already present on machine${judged ? " and can be accessed by the pod" : ""}`,
  pulling: (image: string) => `Pulling image ${JSON.stringify(image)}`,
  pulled: (image: string, pullMs: number, totalMs: number, sizeBytes: bigint) =>
    `Successfully pulled image ${JSON.stringify(image)} in ${goDuration(pullMs)} (${goDuration(totalMs)} including waiting). ` +
    `Image size: ${sizeBytes} bytes.`,
  failed: (image: string, message: string) => `Failed to pull image ${JSON.stringify(image)}: ${message}`,
  backOff: (image: string) => `Back-off pulling image ${JSON.stringify(image)}`,
  neverPull: (image: string) => `Container image ${JSON.stringify(image)} is not present with pull policy of Never`,
  inspectFailed: (image: string, message: string) => `Failed to inspect image ${JSON.stringify(image)}: ${message}`,
  invalidName: (image: string, message: string) =>
    `Failed to apply default image tag ${JSON.stringify(image)}: ${message}`,
} as const;

/** A duration in Go's format, truncated to milliseconds: `850ms`, `1.2s`, `2m0.5s`, `1h0m0s`. */
export function goDuration(durationMs: number): string {
  const ms = Math.trunc(durationMs);
  if (ms === 0) return "0s";
  if (ms < 1_000) return `${ms}ms`;
  const hours = Math.floor(ms / 3_600_000);
  const minutes = Math.floor(ms / 60_000) % 60;
  const seconds = `${(ms % 60_000) / 1_000}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}
