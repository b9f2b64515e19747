import type { Container, ContainerPort } from "../../api/container.ts";
import type { Cause, PodRef } from "../../journal/entry.ts";
import { perform } from "../../journal/perform.ts";
import { printable } from "../../journal/text.ts";
import type { ExecSyncResponse } from "../../ports/gen/runtime/v1/api_pb.js";
import { ProbeTargetError } from "../../ports/network-probes.ts";
import type { RuntimeDependencies } from "../dependencies.ts";
import type { HideSecrets } from "../config/hidden-secrets.ts";
import { httpGetRequest } from "./http-get-action.ts";

/** What lifecycle hooks call themselves, by the version of Kubernetes whose kubelet this is like. */
const userAgent = "kube-lifecycle/1.36";

const maxOutputBytes = 4096;
const maxOutputLength = 1024;

/** corev1.LifecycleHandler. */
export type LifecycleHandler = NonNullable<NonNullable<Container["lifecycle"]>["preStop"]>;

export type HookKind = "postStart" | "preStop";

/** The container instance whose hook runs. */
export interface HookContainer {
  readonly pod: PodRef;
  readonly name: string;
  readonly id: string;
  /** For httpGet hooks that name their port. */
  readonly ports: readonly ContainerPort[];
  /** The pod's addresses, the primary one first. */
  readonly ips: readonly string[];
  /** What is told of output passes through it. */
  readonly hide: HideSecrets;
}

/** A hook that ran and failed, or that can't be run. */
export class HookError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "HookError";
  }
}

const actionOf = { postStart: "PostStartHook", preStop: "PreStopHook" } as const satisfies Record<HookKind, string>;

type HookDependencies = Pick<RuntimeDependencies, "clock" | "cri" | "journal" | "networkProbes">;

/**
 * Runs a lifecycle hook to its end, as an action of the journal. It has no time limit of its own: only the signal ends
 * it, and then what was executed in the container is killed.
 * @throws HookError, CriError or ProbeTargetError for a hook that failed, or the signal's reason
 */
export async function runHook(
  deps: HookDependencies,
  kind: HookKind,
  container: HookContainer,
  handler: LifecycleHandler,
  cause: Cause,
  signal: AbortSignal,
): Promise<void> {
  const action = {
    what: actionOf[kind],
    message: `run the ${kind} hook of container ${container.name}: ${describe(handler)}`,
    pod: container.pod,
    container: container.name,
    cause,
    data: { id: container.id },
  };
  const details = (output: string): Readonly<Record<string, string>> => (output === "" ? {} : { output });
  await perform(deps.journal, deps.clock, action, () => handle(deps, container, handler, cause, signal), details);
}

/** What a hook does, in a word or two. Commands and headers may hold secrets and are left out. */
function describe({ exec, httpGet, sleep, tcpSocket }: LifecycleHandler): string {
  if (exec) return `execute ${printable(exec.command?.[0] ?? "").slice(0, 100)}`;
  if (httpGet) return `${httpGet.scheme ?? "HTTP"} GET from port ${printable(String(httpGet.port))}`;
  if (sleep) return `sleep ${sleep.seconds} s`;
  return tcpSocket ? "open a TCP connection" : "nothing";
}

/** Returns what the hook printed. */
async function handle(
  deps: HookDependencies,
  container: HookContainer,
  { exec, httpGet, sleep }: LifecycleHandler,
  cause: Cause,
  signal: AbortSignal,
): Promise<string> {
  signal.throwIfAborted();
  if (exec) return await execute(deps, container, exec.command ?? [], signal);
  if (httpGet) {
    await get(deps, container, httpGet, cause, signal);
    return "";
  }
  if (sleep) {
    await deps.clock.sleep(`sleep hook of container ${container.name}`, Math.max(0, sleep.seconds) * 1000, signal);
    return "";
  }
  throw new HookError("invalid handler: only exec, httpGet and sleep can be hooks");
}

async function execute(
  { cri }: HookDependencies,
  { id, hide }: HookContainer,
  command: readonly string[],
  signal: AbortSignal,
): Promise<string> {
  let response: ExecSyncResponse;
  try {
    response = await cri.runtime.execSync({ containerId: id, cmd: [...command], timeout: 0n }, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
  const output = textOf(response, hide);
  if (response.exitCode === 0) return output;
  throw new HookError(`exited with code ${response.exitCode}${output === "" ? "" : `: ${output}`}`);
}

/** Its beginning, as text that is safe to show: the container chose it. */
function textOf({ stdout, stderr }: ExecSyncResponse, hide: HideSecrets): string {
  const bytes = Buffer.concat([stdout.subarray(0, maxOutputBytes), stderr.subarray(0, maxOutputBytes)]);
  const text = printable(hide(bytes.toString("utf8")));
  return text.length > maxOutputLength ? `${text.slice(0, maxOutputLength)}…` : text;
}

/** The answer is enough, whatever its status. */
async function get(
  deps: HookDependencies,
  container: HookContainer,
  action: NonNullable<LifecycleHandler["httpGet"]>,
  cause: Cause,
  signal: AbortSignal,
): Promise<void> {
  const host = action.host || container.ips[0];
  if (host === undefined) throw new HookError("the pod has no address and the hook names no host");
  const request = httpGetRequest(action, container.ports, host, userAgent);
  try {
    await deps.networkProbes.httpGet(request, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ProbeTargetError && error.plainText)) throw error;
    // Before 1.25 hooks knew no HTTPS, so that pods say HTTPS and serve HTTP.
    const headers = request.headers.filter(([name]) => name.toLowerCase() !== "authorization");
    try {
      await deps.networkProbes.httpGet({ ...request, scheme: "http", headers }, signal);
    } catch {
      signal.throwIfAborted();
      throw error;
    }
    deps.journal.record({
      kind: "observation",
      what: "LifecycleHTTPFallback",
      message: `request to HTTPS lifecycle hook ${host}:${request.port} got HTTP response, retry with HTTP succeeded`,
      pod: container.pod,
      container: container.name,
      cause,
    });
  }
}
