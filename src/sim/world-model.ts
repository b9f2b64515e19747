import type { ContainerConfig, LinuxContainerResources, PodSandboxConfig } from "../ports/gen/runtime/v1/api_pb.js";
import type { ProbeType } from "../prober/probe-spec.ts";
import { type Behaviour, type HookBehaviour, parseBehaviour } from "./behaviour.ts";

export interface SimSandbox {
  readonly id: string;
  readonly config: PodSandboxConfig;
  readonly createdAt: bigint;
  /** Empty when the network plugin assigned none. */
  readonly ip: string;
  ready: boolean;
  /** It was stopped on request. One that died by itself keeps its network until then. */
  released: boolean;
}

export interface SimContainer {
  readonly id: string;
  readonly sandboxId: string;
  readonly config: ContainerConfig;
  /** A process may change its manners. */
  behaviour: Behaviour;
  /** The cgroup's current values; undefined: as created. */
  resources: LinuxContainerResources | undefined;
  /** The runtime's own record of them. */
  reportedResources: LinuxContainerResources | undefined;
  /** On the node; empty when the runtime writes no logs. */
  readonly logPath: string;
  readonly createdAt: bigint;
  /** unknown: the runtime lost track of it, its process may run. */
  state: "created" | "running" | "exited" | "unknown";
  /** The runtime lost track of it once. */
  wasLost: boolean;
  startedAt: bigint;
  /** Simulated ms of its start, independent of the wall clock. */
  startedMs: number;
  finishedAt: bigint;
  exitCode: number;
  reason: string;
  /** Timers of the process's own behaviour. */
  readonly timers: Disposable[];
  /** Called after its exit. */
  readonly onExit: (() => void)[];
}

/** A change in the runtime, for event streams and for the rules. */
export interface WorldChange {
  readonly type:
    | "sandboxStarted"
    | "sandboxStopped"
    | "sandboxRemoved"
    | "created"
    | "started"
    | "hook"
    | "probed"
    | "resized"
    | "stopping"
    | "exited"
    | "removed";
  readonly podUid: string;
  readonly sandbox: SimSandbox | undefined;
  readonly container: SimContainer | undefined;
  /** hook: the behaviour of the hook that starts. */
  readonly hook?: HookBehaviour;
  /** probed: the probe's type and result. */
  readonly probe?: { readonly type: ProbeType; readonly ok: boolean };
  /** resized: the previous values. */
  readonly before?: LinuxContainerResources | undefined;
  /** stopping: from the stop signal to SIGKILL. */
  readonly timeoutMs?: number;
}

/** A new container. */
export function createdContainer(made: {
  readonly id: string;
  readonly sandbox: SimSandbox;
  readonly config: ContainerConfig;
  readonly createdAt: bigint;
  readonly isLogged: boolean;
}): SimContainer {
  const { id, sandbox, config, createdAt } = made;
  const { logDirectory } = sandbox.config;
  const isLogged = made.isLogged && logDirectory !== "" && config.logPath !== "";
  return {
    id,
    sandboxId: sandbox.id,
    config,
    behaviour: parseBehaviour(config.command),
    logPath: isLogged ? `${logDirectory}/${config.logPath}` : "",
    resources: config.linux?.resources,
    reportedResources: config.linux?.resources,
    createdAt,
    state: "created",
    wasLost: false,
    startedAt: 0n,
    startedMs: 0,
    finishedAt: 0n,
    exitCode: 0,
    reason: "",
    timers: [],
    onExit: [],
  };
}

/** Its process runs, or may run. */
export function mayRun({ state }: SimContainer): boolean {
  return state === "running" || state === "unknown";
}

export function nameOf(container: Pick<SimContainer, "config">): string {
  return container.config.metadata?.name ?? "";
}

/** The instance's restart count in podwright's metadata. */
export function attemptOf(instance: Pick<SimContainer, "config"> | Pick<SimSandbox, "config">): number {
  return instance.config.metadata?.attempt ?? 0;
}
