import { isSidecar } from "../api/all-containers.ts";
import { restartsAfter } from "../api/restart-policy.ts";
import type { ContainerStatus as ApiContainerStatus, PodStatus as ApiPodStatus } from "../api/status.ts";
import type { PodUid } from "../base/ids.ts";
import { followLogText, type LogStore, readLogText, type TextRange } from "../logs/reader.ts";
import type { ApiResponse } from "../ports/api-server.ts";
import type { Clock } from "../ports/clock.ts";
import { FileError } from "../ports/files.ts";
import { ApiError } from "./api-error.ts";
import { type LogOptions, logOptions, LogOptionsError } from "./log-options.ts";
import { notBefore } from "./log-since.ts";
import { mayRestartAll } from "../status/restarting.ts";
import { findPod, hasContainer, type NodePod, type PodTarget } from "./node-pods.ts";

export interface LogDependencies {
  readonly clock: Clock;
  readonly store: LogStore;
  readonly pods: () => readonly NodePod[];
}

/** While following, the interval of checking whether the container has ended. */
const endedCheckMs = 1000;

/**
 * `/containerLogs/<namespace>/<pod>/<container>`. Following continues across rotation and restarts, until the pod
 * writes no more.
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
  const { sinceMs, tailLines, stream, timestamps } = options;
  const include = sinceMs === undefined ? undefined : notBefore(sinceMs);
  const range: TextRange = { tailLines, stream, timestamps, include };
  const ended = endOf(deps, target, pod.pod.metadata.uid);
  // The previous instance writes no more, and its successor was not asked for.
  const text =
    options.follow && !options.previous
      ? ignoringRemoval(followLogText(deps.store, deps.clock, path, { ...range, ended, signal }))
      : await begun(readLogText(deps.store, path, range), path);
  return {
    status: 200,
    contentType: "text/plain",
    headers: { "X-Content-Type-Options": "nosniff" },
    body: limited(text, options.limitBytes),
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

/** The log of the current instance, or of the previous one. @throws ApiError 400 if there is none */
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

function endOf({ clock, pods }: LogDependencies, target: PodTarget, uid: PodUid): () => Promise<boolean> {
  let checkedMs = Number.NEGATIVE_INFINITY;
  let ended = false;
  return async () => {
    const now = clock.monotonic();
    if (ended || now - checkedMs < endedCheckMs) return ended;
    checkedMs = now;
    const pod = pods().find((candidate) => candidate.pod.metadata.uid === uid);
    ended = pod === undefined || pod.ended || staysEnded(pod, target.container);
    return ended;
  };
}

/** Whether a container has ended, and will not run again, while its pod goes on. */
function staysEnded({ pod, status }: NodePod, name: string): boolean {
  const exit = containerStatus(status, name)?.state.terminated;
  if (exit === undefined) return false;
  const { containers, initContainers = [], ephemeralContainers = [] } = pod.spec;
  if (ephemeralContainers.some((each) => each.name === name)) return true;
  const init = initContainers.find((each) => each.name === name);
  const container = init ?? containers.find((each) => each.name === name);
  // A sidecar runs as long as its pod.
  if (container === undefined || isSidecar(container) || mayRestartAll(pod)) return false;
  return (init !== undefined && exit.exitCode === 0) || !restartsAfter(pod, container, exit.exitCode);
}

async function* limited(text: AsyncIterable<Uint8Array>, limitBytes: number | undefined): AsyncGenerator<Uint8Array> {
  let left = limitBytes ?? Number.POSITIVE_INFINITY;
  for await (const read of text) {
    const piece = read.subarray(0, left);
    left -= piece.length;
    if (piece.length > 0) yield piece;
    if (left <= 0) return;
  }
}

/** A followed log may be removed with its pod. */
async function* ignoringRemoval(text: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* text;
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/**
 * The text, once its first piece is read: no error status is possible afterwards, only a broken connection.
 * @throws ApiError 400 with upstream's message for a log that is missing, or was removed meanwhile
 */
async function begun(text: AsyncGenerator<Uint8Array>, path: string): Promise<AsyncIterable<Uint8Array>> {
  let first: IteratorResult<Uint8Array> | undefined;
  try {
    first = await text.next();
  } catch (error) {
    if (!isMissing(error)) throw error;
    const missing = `lstat ${path}: no such file or directory`;
    const message = `failed to try resolving symlinks in path ${JSON.stringify(path)}: ${missing}\n`;
    throw new ApiError(400, message, { cause: error });
  }
  return {
    [Symbol.asyncIterator]: () => ({
      next: async () => {
        const result = first ?? (await text.next());
        first = undefined;
        return result;
      },
      return: async () => await text.return(undefined),
    }),
  };
}

function isMissing(error: unknown): boolean {
  return error instanceof FileError && error.code === "ENOENT";
}
