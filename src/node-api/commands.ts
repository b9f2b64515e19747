import { formatTime } from "../base/time.ts";
import type { ApiResponse } from "../ports/api-server.ts";
import type { Clock } from "../ports/clock.ts";
import { type Cri, isCriError } from "../ports/cri.ts";
import type { Files } from "../ports/files.ts";
import type { NodeRequest } from "../ports/node-server.ts";
import { json, plain } from "./answers.ts";
import { ApiError, rpcStatus } from "./api-error.ts";
import { hasContainer, type NodePod, podOf, type PodTarget } from "./node-pods.ts";
import { runningContainer, runningIn } from "./streaming.ts";

/** In seconds: thirty years, which timers can still count. */
const longestTimeout = 999_999_999n;

export interface CommandDependencies {
  readonly clock: Clock;
  readonly cri: Cri;
  readonly files: Pick<Files, "makeDirectory">;
  readonly pods: () => readonly NodePod[];
  /** Directory of checkpoints: `<root>/checkpoints`. */
  readonly checkpointDirectory: string;
}

/** `/run/…?cmd=`: runs a command, split at single spaces, and responds with its output. */
export async function runCommand(
  deps: CommandDependencies,
  target: PodTarget,
  request: NodeRequest,
): Promise<ApiResponse> {
  const text = request.query.get("cmd") ?? "";
  if (text === "") throw new ApiError(400, "you must specify a command in cmd\n");
  const containerId = runningContainer(deps, target);
  const result = await deps.cri.runtime
    .execSync({ containerId, cmd: text.split(" ") }, { signal: request.signal })
    .catch((error: unknown) => {
      throw isCriError(error) ? new ApiError(500, rpcStatus(error), { cause: error }) : error;
    });
  const output = Buffer.concat([result.stdout, result.stderr]).toString("utf8");
  if (result.exitCode === 0) return plain(200, output);
  throw new ApiError(500, `command '${text}' exited with ${result.exitCode}: ${output}\n`);
}

/**
 * `/checkpoint/…`: the runtime writes a checkpoint. Errors have upstream's texts, with the runtime's status: containerd
 * and runc often lack support, which clients tell by it.
 */
export async function checkpoint(
  deps: CommandDependencies,
  target: PodTarget,
  request: NodeRequest,
): Promise<ApiResponse> {
  const { namespace, name, container } = target;
  const found = podOf(deps.pods(), target);
  if (found === undefined) throw new ApiError(404, "pod does not exist");
  if (!hasContainer(found.pod, container)) throw new ApiError(404, `container ${container} does not exist`);
  const timeout = timeoutOf(request);
  const failure = (problem: string, options?: ErrorOptions): ApiError =>
    new ApiError(500, `checkpointing of ${namespace}/${name}/${container} failed (${problem})`, options);
  const containerId = runningIn(found, container);
  if (containerId === undefined) throw failure(`container ${container} not found`);
  if (timeout < 0n) throw failure("CheckpointContainer requires the timeout value to be > 0");
  const time = formatTime(deps.clock.now());
  const location = `${deps.checkpointDirectory}/checkpoint-${name}_${namespace}-${container}-${time}.tar`;
  // A checkpoint contains the container's memory, and so its secrets.
  await deps.files.makeDirectory(deps.checkpointDirectory, 0o700);
  try {
    await deps.cri.runtime.checkpointContainer({ containerId, location, timeout }, { signal: request.signal });
  } catch (error) {
    throw isCriError(error) ? failure(rpcStatus(error), { cause: error }) : error;
  }
  return json({ items: [location] });
}

/** In seconds, of several the last; 0: the runtime's default. */
function timeoutOf({ query }: NodeRequest): bigint {
  const text = query.getAll("timeout").at(-1) ?? "0";
  if (!/^[+-]?\d{1,18}$/.test(text)) throw new ApiError(404, "cannot parse value of timeout parameter");
  const seconds = BigInt(text.replace("+", ""));
  return seconds > longestTimeout ? longestTimeout : seconds;
}
