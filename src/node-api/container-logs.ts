import type { ContainerStatus as ApiContainerStatus, PodStatus as ApiPodStatus } from "../api/status.ts";
import { parseTime } from "../base/time.ts";
import type { LogLine } from "../logs/cri-log.ts";
import { followLog, type LogRange, type LogStore, readLog } from "../logs/reader.ts";
import type { ApiResponse } from "../ports/api-server.ts";
import type { Clock } from "../ports/clock.ts";
import { FileError } from "../ports/files.ts";
import { ApiError } from "./api-error.ts";
import { type LogOptions, logOptions, LogOptionsError } from "./log-options.ts";
import { findPod, hasContainer, type NodePod, type PodTarget } from "./node-pods.ts";

export interface LogDependencies {
  readonly clock: Clock;
  readonly store: LogStore;
  readonly pods: () => readonly NodePod[];
}

/** While following, how often it is looked whether the container has ended. */
const endedCheckMs = 1000;
const flushBytes = 32 * 1024;

/**
 * `/containerLogs/<namespace>/<pod>/<container>`. Following goes on over rotation and restarts, until the pod will
 * write no more.
 * @throws ApiError
 */
export async function containerLogs(
  deps: LogDependencies,
  target: PodTarget,
  query: URLSearchParams,
  signal: AbortSignal,
): Promise<ApiResponse> {
  const options = readOptions(query, deps.clock.now());
  const pod = findPod(deps.pods(), target);
  const { container } = target;
  if (!hasContainer(pod.pod, container)) {
    throw new ApiError(404, `container ${JSON.stringify(container)} not found in pod ${JSON.stringify(target.name)}\n`);
  }
  const path = logPath(pod, container, options.previous);
  const { sinceMs } = options;
  const range: LogRange = {
    ...(options.tailLines !== undefined && { tailLines: options.tailLines }),
    ...(sinceMs !== undefined && { include: (time) => !((parseTime(time) ?? sinceMs) < sinceMs) }),
  };
  const ended = endOf(deps, target, pod.pod.metadata.uid);
  const lines = options.follow
    ? followLog(deps.store, deps.clock, path, { ...range, ended, signal })
    : readLog(deps.store, path, range);
  return {
    status: 200,
    contentType: "text/plain",
    headers: { "X-Content-Type-Options": "nosniff" },
    body: bytes(lines, options),
  };
}

function readOptions(query: URLSearchParams, nowMs: number): LogOptions {
  try {
    return logOptions(query, nowMs);
  } catch (error) {
    if (!(error instanceof LogOptionsError)) throw error;
    throw new ApiError(error.status, `${error.message}\n`, { cause: error });
  }
}

/** The log of the present instance, or of the one that ended last before it. @throws ApiError 400 when there is none */
function logPath({ pod, status, observed }: NodePod, name: string, previous: boolean): string {
  const container = containerStatus(status, name);
  const quoted = `container ${JSON.stringify(name)} in pod ${JSON.stringify(pod.metadata.name)}`;
  const { state, lastState } = container ?? {};
  const before = lastState?.terminated?.containerID;
  const present = state?.running !== undefined || state?.terminated !== undefined ? container?.containerID : before;
  const id = previous ? before : present;
  const instance = observed.containers.find((candidate) => id?.endsWith(`://${candidate.id}`) === true);
  if (instance !== undefined && instance.logPath !== "") return instance.logPath;
  if (previous) throw new ApiError(400, `previous terminated ${quoted} not found\n`);
  const { reason, message } = state?.waiting ?? {};
  if (reason === "ErrImagePull" || reason === "ImagePullBackOff" || reason === "ErrImageNeverPull") {
    throw new ApiError(400, `${quoted} is waiting to start: image can't be pulled: ${message ?? reason}\n`);
  }
  if (reason !== undefined) throw new ApiError(400, `${quoted} is waiting to start: ${reason}\n`);
  throw new ApiError(400, `${quoted} is not available\n`);
}

function containerStatus(status: ApiPodStatus | undefined, name: string): ApiContainerStatus | undefined {
  const all = [
    ...(status?.containerStatuses ?? []),
    ...(status?.initContainerStatuses ?? []),
    ...(status?.ephemeralContainerStatuses ?? []),
  ];
  return all.find((candidate) => candidate.name === name);
}

function endOf({ clock, pods }: LogDependencies, target: PodTarget, uid: string): () => Promise<boolean> {
  let checkedMs = Number.NEGATIVE_INFINITY;
  let ended = false;
  return async () => {
    const now = clock.monotonic();
    if (ended || now - checkedMs < endedCheckMs) return ended;
    checkedMs = now;
    const pod = pods().find((candidate) => candidate.pod.metadata.uid === uid);
    const own = containerStatus(pod?.status, target.container);
    const isInit = pod?.pod.spec.initContainers?.some(({ name }) => name === target.container) === true;
    // An init container that has ended well is over while its pod goes on.
    ended = pod === undefined || pod.ended || (isInit && own?.state.terminated?.exitCode === 0);
    return ended;
  };
}

/** What the client gets: the container's own bytes, with times before lines where asked for. Many lines at once. */
async function* bytes(lines: AsyncIterable<LogLine>, options: LogOptions): AsyncGenerator<Uint8Array> {
  let left = options.limitBytes ?? Number.POSITIVE_INFINITY;
  let pieces: Uint8Array[] = [];
  let size = 0;
  const take = (): Uint8Array => {
    const whole = Buffer.concat(pieces).subarray(0, left);
    left -= whole.length;
    pieces = [];
    size = 0;
    return whole;
  };
  try {
    for await (const line of lines) {
      if (options.stream !== undefined && line.stream !== options.stream) continue;
      const piece = render(line, options.timestamps);
      pieces.push(piece);
      size += piece.length;
      if (options.follow || size >= flushBytes || size >= left) yield take();
      if (left <= 0) return;
    }
  } catch (error) {
    // Removed with its container between the look and the reading.
    if (!(error instanceof FileError) || error.code !== "ENOENT") throw error;
  }
  if (size > 0) yield take();
}

function render({ time, text, start, end }: LogLine, timestamps: boolean): Uint8Array {
  const stamp = timestamps && start && time !== "" ? `${time} ` : "";
  return Buffer.concat([Buffer.from(stamp), text, Buffer.from(end ? "\n" : "")]);
}
