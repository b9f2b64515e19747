import { allContainers } from "../api/all-containers.ts";
import { type Cri, isCriError } from "../ports/cri.ts";
import type { Forward, NodeRequest, StreamChoice } from "../ports/node-server.ts";
import { findContainer } from "../runtime/status/pod-status.ts";
import { ApiError, rpcStatus } from "./api-error.ts";
import { findPod, hasContainer, type NodePod, type PodTarget } from "./node-pods.ts";

export interface StreamingDependencies {
  readonly cri: Cri;
  readonly pods: () => readonly NodePod[];
}

/** The runtime's streaming server handles upgrades; podwright passes the bytes. @throws ApiError */
export async function exec(deps: StreamingDependencies, target: PodTarget, request: NodeRequest): Promise<Forward> {
  const streams = streamsOf(request);
  const cmd = request.query.getAll("command");
  if (cmd.length === 0) throw new ApiError(400, "you must specify a command\n");
  const containerId = runningContainer(deps, target);
  const forwarding = await forward(request, "exec", () =>
    deps.cri.runtime.exec({ containerId, cmd, ...streams }, { signal: request.signal }),
  );
  return { ...forwarding, streams };
}

export async function attach(deps: StreamingDependencies, target: PodTarget, request: NodeRequest): Promise<Forward> {
  const asked = streamsOf(request);
  const containerId = runningContainer(deps, target);
  // Whether a process has a terminal was decided at its start, whatever a client requests.
  const all = allContainers(findPod(deps.pods(), target).pod.spec);
  const tty = all.find(({ name }) => name === target.container)?.tty === true;
  const streams = { ...asked, tty, stderr: asked.stderr && !tty };
  const forwarding = await forward(request, "attach", () =>
    deps.cri.runtime.attach({ containerId, ...streams }, { signal: request.signal }),
  );
  return { ...forwarding, streams };
}

/** Ports are named in the stream itself, or, for WebSocket, in the query. */
export async function portForward(
  deps: StreamingDependencies,
  target: PodTarget,
  request: NodeRequest,
): Promise<Forward> {
  const port = request.query
    .getAll("port")
    .flatMap((list) => list.split(","))
    .map(portNumber);
  const { observed } = findPod(deps.pods(), target);
  const sandbox = observed.sandboxes.find(({ ready }) => ready);
  if (sandbox === undefined) throw new ApiError(404, `pod ${JSON.stringify(target.name)} is not running\n`);
  return await forward(request, "port-forward", () =>
    deps.cri.runtime.portForward({ podSandboxId: sandbox.id, port }, { signal: request.signal }),
  );
}

/** A running container in the pod's spec. @throws ApiError 404 */
export function runningContainer({ pods }: Pick<StreamingDependencies, "pods">, target: PodTarget): string {
  const id = runningIn(findPod(pods(), target), target.container);
  if (id !== undefined) return id;
  throw new ApiError(404, `container not found (${JSON.stringify(target.container)})\n`);
}

/** The id of a running container in the pod's spec; undefined: none of the name runs. */
export function runningIn({ pod, observed }: NodePod, name: string): string | undefined {
  const found = hasContainer(pod, name) ? findContainer(observed, name) : undefined;
  return found?.state === "running" ? found.id : undefined;
}

/** Checked before the runtime is called: it keeps the state of an exec until a client connects. */
async function forward(
  { upgrade }: NodeRequest,
  what: string,
  ask: () => Promise<{ readonly url: string }>,
): Promise<Forward> {
  if (!upgrade) throw new ApiError(400, "Upgrade request required\n");
  try {
    return { forwardTo: (await ask()).url };
  } catch (error) {
    if (!isCriError(error)) throw error;
    const status = isCriError(error, "NotFound") ? 404 : isCriError(error, "ResourceExhausted") ? 429 : 500;
    throw new ApiError(status, `the container runtime refused to ${what}: ${rpcStatus(error)}\n`, { cause: error });
  }
}

/** A terminal has one output: its error stream is dropped, as in upstream. */
function streamsOf({ query }: NodeRequest): StreamChoice {
  const wanted = (name: string): boolean => query.get(name) === "1";
  const tty = wanted("tty");
  const streams = { stdin: wanted("input"), stdout: wanted("output"), stderr: !tty && wanted("error"), tty };
  if (streams.stdin || streams.stdout || streams.stderr) return streams;
  throw new ApiError(400, "you must specify at least 1 of stdin, stdout, stderr\n");
}

function portNumber(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port >= 1 && port <= 65_535) return port;
  throw new ApiError(400, `${JSON.stringify(text)} is not a port\n`);
}
