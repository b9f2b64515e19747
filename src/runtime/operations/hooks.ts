import type { Container, ContainerPort } from "../../api/container.ts";
import type { Cause, PodRef } from "../../journal/entry.ts";
import { type ActionInput, perform } from "../../journal/perform.ts";
import { printable } from "../../journal/text.ts";
import type { ExecSyncResponse } from "../../ports/gen/runtime/v1/api_pb.js";
import { type NetworkProbes, ProbeTargetError } from "../../ports/network-probes.ts";
import type { HideSecrets } from "../config/hidden-secrets.ts";
import type { Effects } from "../effects.ts";
import { httpGetRequest } from "./http-get-action.ts";

/** User agent of lifecycle hooks, with the matching kubelet version. */
const userAgent = "kube-lifecycle/1.36";

const maxOutputBytes = 4096;
const maxOutputLength = 1024;

/** corev1.LifecycleHandler. */
export type LifecycleHandler = NonNullable<NonNullable<Container["lifecycle"]>["preStop"]>;

type HttpGet = NonNullable<LifecycleHandler["httpGet"]>;

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
  /** Filter for quoted output. */
  readonly hide: HideSecrets;
}

export interface Hook {
  readonly kind: HookKind;
  readonly container: HookContainer;
  readonly handler: LifecycleHandler;
  readonly cause: Cause;
}

/** A hook that failed, or that cannot be run. */
export class HookError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "HookError";
  }
}

const actionOf = { postStart: "PostStartHook", preStop: "PreStopHook" } as const satisfies Record<HookKind, string>;

/** Runs lifecycle hooks, each as an action of the journal. */
export class HookRunner {
  readonly #effects: Pick<Effects, "clock" | "cri" | "journal">;
  readonly #networkProbes: Pick<NetworkProbes, "httpGet">;

  constructor(effects: Pick<Effects, "clock" | "cri" | "journal">, networkProbes: Pick<NetworkProbes, "httpGet">) {
    this.#effects = effects;
    this.#networkProbes = networkProbes;
  }

  /**
   * Runs a hook to its end. It has no timeout of its own: only the signal ends it, which kills the command in the
   * container.
   * @throws HookError, CriError or ProbeTargetError for a failed hook, or the signal's reason
   */
  async run(hook: Hook, signal: AbortSignal): Promise<void> {
    const { kind, container, handler, cause } = hook;
    const action: ActionInput = {
      what: actionOf[kind],
      message: `run the ${kind} hook of container ${container.name}: ${describe(handler)}`,
      pod: container.pod,
      container: container.name,
      cause,
      data: { id: container.id },
    };
    const details = (output: string): Readonly<Record<string, string>> => (output === "" ? {} : { output });
    const { journal, clock } = this.#effects;
    await perform(journal, clock, action, () => this.#handle(hook, signal), details);
  }

  /** Returns what the hook printed. */
  async #handle(hook: Hook, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    const { exec, httpGet, sleep } = hook.handler;
    const { name } = hook.container;
    if (exec) return await this.#execute(hook.container, exec.command ?? [], signal);
    if (httpGet) {
      await this.#get(hook, httpGet, signal);
      return "";
    }
    if (sleep) {
      await this.#effects.clock.sleep(`sleep hook of container ${name}`, Math.max(0, sleep.seconds) * 1000, signal);
      return "";
    }
    throw new HookError("invalid handler: a hook is exec, httpGet or sleep");
  }

  async #execute({ id, hide }: HookContainer, command: readonly string[], signal: AbortSignal): Promise<string> {
    let response: ExecSyncResponse;
    try {
      const request = { containerId: id, cmd: [...command], timeout: 0n };
      response = await this.#effects.cri.runtime.execSync(request, { signal });
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
    const output = textOf(response, hide);
    if (response.exitCode === 0) return output;
    throw new HookError(`exited with code ${response.exitCode}${output === "" ? "" : `: ${output}`}`);
  }

  /** Any HTTP response is a success. */
  async #get({ container, cause }: Hook, action: HttpGet, signal: AbortSignal): Promise<void> {
    const host = action.host || container.ips[0];
    if (host === undefined) throw new HookError("the pod has no IP address and the hook has no host");
    const request = httpGetRequest(action, container.ports, host, userAgent);
    try {
      await this.#networkProbes.httpGet(request, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ProbeTargetError && error.plainText)) throw error;
      // Before 1.25 hooks ignored the HTTPS scheme, so pods may say HTTPS and serve HTTP.
      const headers = request.headers.filter(([name]) => name.toLowerCase() !== "authorization");
      try {
        await this.#networkProbes.httpGet({ ...request, scheme: "http", headers }, signal);
      } catch {
        signal.throwIfAborted();
        throw error;
      }
      this.#effects.journal.record({
        kind: "observation",
        what: "LifecycleHTTPFallback",
        message: `request to HTTPS lifecycle hook ${host}:${request.port} got HTTP response, retry with HTTP succeeded`,
        pod: container.pod,
        container: container.name,
        cause,
      });
    }
  }
}

/** A short description of a hook. Commands and headers may contain secrets and are omitted. */
function describe({ exec, httpGet, sleep, tcpSocket }: LifecycleHandler): string {
  if (exec) return `execute ${printable(exec.command?.[0] ?? "").slice(0, 100)}`;
  if (httpGet) return `${httpGet.scheme ?? "HTTP"} GET from port ${printable(String(httpGet.port))}`;
  if (sleep) return `sleep ${sleep.seconds} s`;
  return tcpSocket ? "open a TCP connection" : "nothing";
}

/** Its beginning, made safe to show: the container chose it. */
function textOf({ stdout, stderr }: ExecSyncResponse, hide: HideSecrets): string {
  const bytes = Buffer.concat([stdout.subarray(0, maxOutputBytes), stderr.subarray(0, maxOutputBytes)]);
  const text = printable(hide(bytes.toString("utf8")));
  return text.length > maxOutputLength ? `${text.slice(0, maxOutputLength)}…` : text;
}
