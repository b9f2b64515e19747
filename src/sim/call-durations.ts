/** Typical durations of a real containerd's calls, ms: from, to. */
const durations: Readonly<Record<string, readonly [number, number]>> = {
  runPodSandbox: [100, 300],
  stopPodSandbox: [50, 300],
  removePodSandbox: [10, 60],
  createContainer: [10, 60],
  startContainer: [40, 120],
  removeContainer: [5, 30],
};
const quick: readonly [number, number] = [0.3, 2];
const looks: ReadonlySet<string> = new Set(["listPodSandbox", "listContainers", "podSandboxStatus", "containerStatus"]);

/** Time until an absent runtime refuses a call, ms. */
export const refusedAfterMs = quick[0];

/** Minimum and maximum duration of a call, ms. */
export function callDurationMs(method: string): readonly [number, number] {
  return durations[method] ?? quick;
}

/** True for calls that only query pods. */
export function isLook(method: string): boolean {
  return looks.has(method);
}

/** The factor of a call's duration. */
export function slownessOf(
  method: string,
  { slowness, lookSlowness }: { readonly slowness: number; readonly lookSlowness: number },
): number {
  return isLook(method) ? Math.max(slowness, lookSlowness) : slowness;
}
