import { formatTime } from "../base/time.ts";
import type { ApiResponse } from "../ports/api-server.ts";
import type { Clock } from "../ports/clock.ts";
import { type Cri, isCriError } from "../ports/cri.ts";
import type { Files } from "../ports/files.ts";
import type { NodeRequest } from "../ports/node-server.ts";
import { json, plain } from "./answers.ts";
import { ApiError } from "./api-error.ts";
import type { NodePod, PodTarget } from "./node-pods.ts";
import { runningContainer } from "./streaming.ts";

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
  const result = await asked("run a command", () =>
    deps.cri.runtime.execSync({ containerId, cmd: text.split(" ") }, { signal: request.signal }),
  );
  const output = Buffer.concat([result.stdout, result.stderr]).toString("utf8");
  if (result.exitCode === 0) return plain(200, output);
  throw new ApiError(500, `command '${text}' exited with ${result.exitCode}: ${output}\n`);
}

/** `/checkpoint/…`: passes the runtime's errors on; containerd and runc often lack support. */
export async function checkpoint(
  deps: CommandDependencies,
  target: PodTarget,
  request: NodeRequest,
): Promise<ApiResponse> {
  const timeout = timeoutOf(request);
  const containerId = runningContainer(deps, target);
  const { namespace, name, container } = target;
  const time = formatTime(deps.clock.now());
  const location = `${deps.checkpointDirectory}/checkpoint-${name}_${namespace}-${container}-${time}.tar`;
  // A checkpoint contains the container's memory, and so its secrets.
  await deps.files.makeDirectory(deps.checkpointDirectory, 0o700);
  await asked(`checkpoint ${namespace}/${name}/${container}`, () =>
    deps.cri.runtime.checkpointContainer({ containerId, location, timeout }, { signal: request.signal }),
  );
  return json({ items: [location] });
}

/** In seconds; 0: the runtime's default. */
function timeoutOf({ query }: NodeRequest): bigint {
  const text = query.get("timeout") ?? "";
  if (/^\d{0,9}$/.test(text)) return BigInt(text);
  throw new ApiError(404, "cannot parse value of timeout parameter\n");
}

async function asked<T>(what: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!isCriError(error)) throw error;
    throw new ApiError(500, `the container runtime could not ${what}: ${error.message}\n`, { cause: error });
  }
}
