import { CriError } from "../ports/cri.ts";
import type { ContainerConfig, PodSandboxConfig } from "../ports/gen/runtime/v1/api_pb.js";
import { type Behaviour, type HookBehaviour, parseBehaviour, parseHook } from "./behaviour.ts";
import type { SimClock } from "./clock.ts";

export interface SimSandbox {
  readonly id: string;
  readonly config: PodSandboxConfig;
  readonly createdAt: bigint;
  readonly ip: string;
  ready: boolean;
}

export interface SimContainer {
  readonly id: string;
  readonly sandboxId: string;
  readonly config: ContainerConfig;
  readonly behaviour: Behaviour;
  readonly createdAt: bigint;
  state: "created" | "running" | "exited";
  startedAt: bigint;
  finishedAt: bigint;
  exitCode: number;
  reason: string;
  /** The process' own end, while it runs. */
  exitTimer: Disposable | undefined;
  /** Called when it has exited. */
  readonly onExit: (() => void)[];
}

/** Something that changed, for event streams and for whoever checks a container's history. */
export interface WorldChange {
  readonly type:
    | "sandboxStarted"
    | "sandboxStopped"
    | "sandboxRemoved"
    | "created"
    | "started"
    | "hook"
    | "stopping"
    | "exited"
    | "removed";
  readonly podUid: string;
  readonly sandbox: SimSandbox | undefined;
  readonly container: SimContainer | undefined;
  /** hook: what begins to run in the container. */
  readonly hook?: HookBehaviour;
  /** stopping: from the stop signal to SIGKILL. */
  readonly timeoutMs?: number;
}

const killDelayMs = 5;

/**
 * The simulated runtime's own truth: sandboxes and containers as containerd has them. It outlives every incarnation of
 * the node. Operations are immediate; calls with their delays and faults are in cri.ts.
 */
export class RuntimeWorld {
  readonly clock: SimClock;
  readonly sandboxes = new Map<string, SimSandbox>();
  readonly containers = new Map<string, SimContainer>();
  readonly images = new Set<string>();
  readonly #listeners = new Set<(change: WorldChange) => void>();
  #nextId = 0;

  constructor(clock: SimClock) {
    this.clock = clock;
  }

  /** Tells every change until the result is disposed of. */
  onChange(listener: (change: WorldChange) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => this.#listeners.delete(listener) };
  }

  runSandbox(config: PodSandboxConfig): string {
    const metadata = config.metadata;
    const name = `${metadata?.name}_${metadata?.namespace}_${metadata?.uid}_${metadata?.attempt ?? 0}`;
    for (const other of this.sandboxes.values()) {
      const taken = other.config.metadata;
      if (`${taken?.name}_${taken?.namespace}_${taken?.uid}_${taken?.attempt ?? 0}` === name) {
        throw new CriError(
          "Unknown",
          "RunPodSandbox",
          `failed to reserve sandbox name "${name}": name is reserved for "${other.id}"`,
        );
      }
    }
    const id = this.#id("s");
    const sandbox: SimSandbox = {
      id,
      config,
      createdAt: this.#nowNs(),
      ip: `10.0.0.${this.#nextId % 250}`,
      ready: true,
    };
    this.sandboxes.set(id, sandbox);
    this.#tell("sandboxStarted", sandbox, undefined);
    return id;
  }

  /** Kills what runs in it, at once, as containerd does. */
  stopSandbox(id: string): void {
    const sandbox = this.sandboxes.get(id);
    if (sandbox === undefined) return;
    for (const container of this.containers.values()) {
      if (container.sandboxId === id && container.state === "running") this.exit(container, 137, "Error");
    }
    if (!sandbox.ready) return;
    sandbox.ready = false;
    this.#tell("sandboxStopped", sandbox, undefined);
  }

  removeSandbox(id: string): void {
    const sandbox = this.sandboxes.get(id);
    if (sandbox === undefined) return;
    this.stopSandbox(id);
    for (const container of [...this.containers.values()]) {
      if (container.sandboxId === id) this.removeContainer(container.id);
    }
    this.sandboxes.delete(id);
    this.#tell("sandboxRemoved", sandbox, undefined);
  }

  createContainer(sandboxId: string, config: ContainerConfig): string {
    const sandbox = this.sandboxes.get(sandboxId);
    if (sandbox === undefined) throw new CriError("NotFound", "CreateContainer", `sandbox ${sandboxId} not found`);
    if (!sandbox.ready) throw new CriError("Unknown", "CreateContainer", `sandbox ${sandboxId} is not running`);
    for (const other of this.containers.values()) {
      const same =
        other.config.metadata?.name === config.metadata?.name && this.#uidOf(other) === sandbox.config.metadata?.uid;
      if (same && other.config.metadata?.attempt === config.metadata?.attempt) {
        throw new CriError(
          "Unknown",
          "CreateContainer",
          `failed to reserve container name: name is reserved for "${other.id}"`,
        );
      }
    }
    const id = this.#id("c");
    const container: SimContainer = {
      id,
      sandboxId,
      config,
      behaviour: parseBehaviour(config.command),
      createdAt: this.#nowNs(),
      state: "created",
      startedAt: 0n,
      finishedAt: 0n,
      exitCode: 0,
      reason: "",
      exitTimer: undefined,
      onExit: [],
    };
    this.containers.set(id, container);
    this.#tell("created", sandbox, container);
    return id;
  }

  startContainer(id: string): void {
    const container = this.#container("StartContainer", id);
    if (container.state !== "created") {
      throw new CriError(
        "Unknown",
        "StartContainer",
        `container is in CONTAINER_${container.state.toUpperCase()} state`,
      );
    }
    if (this.sandboxes.get(container.sandboxId)?.ready !== true) {
      throw new CriError("Unknown", "StartContainer", "sandbox container is not running");
    }
    if (container.behaviour.unstartable) {
      this.exit(container, 128, "StartError");
      throw new CriError("Unknown", "StartContainer", `exec: "sim": executable file not found in $PATH`);
    }
    container.state = "running";
    container.startedAt = this.#nowNs();
    const { exitAfterMs, exitCode } = container.behaviour;
    if (exitAfterMs !== undefined) {
      const end = (): void => this.exit(container, exitCode, exitCode === 0 ? "Completed" : "Error");
      container.exitTimer = this.clock.schedule(`process of ${id} to end`, exitAfterMs, end);
    }
    this.#tell("started", this.sandboxes.get(container.sandboxId), container);
  }

  /** Its stop signal now, SIGKILL after the timeout; `done` when it has exited (at once when it does not run). */
  stopContainer(id: string, timeoutMs: number, done: () => void): void {
    const container = this.containers.get(id);
    if (container?.state !== "running") {
      done();
      return;
    }
    container.onExit.push(done);
    this.#tell("stopping", this.sandboxes.get(container.sandboxId), container, { timeoutMs });
    if (!container.behaviour.deaf) this.#endSoon(container, killDelayMs, 143);
    else this.#endSoon(container, timeoutMs, 137);
  }

  /**
   * Runs a command in a container; `done` with its exit code, 137 when the container ends first. Returns how to kill it.
   */
  exec(id: string, command: readonly string[], done: (exitCode: number) => void): () => void {
    const container = this.#container("ExecSync", id);
    if (container.state !== "running") {
      throw new CriError("Unknown", "ExecSync", `container is in CONTAINER_${container.state.toUpperCase()} state`);
    }
    const hook = parseHook(command);
    if (hook === undefined) throw new CriError("Unknown", "ExecSync", `exec: "${command[0] ?? ""}": not found`);
    let running = true;
    const end = (exitCode: number): void => {
      if (!running) return;
      running = false;
      timer[Symbol.dispose]();
      done(exitCode);
    };
    const timer = this.clock.schedule(`command in ${id} to end`, hook.durationMs, () => end(hook.exitCode));
    container.onExit.push(() => end(137));
    this.#tell("hook", this.sandboxes.get(container.sandboxId), container, { hook });
    return () => end(137);
  }

  removeContainer(id: string): void {
    const container = this.containers.get(id);
    if (container === undefined) return;
    if (container.state === "running") this.exit(container, 137, "Error");
    this.containers.delete(id);
    this.#tell("removed", this.sandboxes.get(container.sandboxId), container);
  }

  /** The process is gone: by itself, by a signal, or by a fault. */
  exit(container: SimContainer, code: number, reason: string): void {
    if (container.state === "exited") return;
    container.exitTimer?.[Symbol.dispose]();
    container.exitTimer = undefined;
    container.state = "exited";
    container.finishedAt = this.#nowNs();
    container.exitCode = code;
    container.reason = reason;
    for (const done of container.onExit.splice(0)) done();
    this.#tell("exited", this.sandboxes.get(container.sandboxId), container);
  }

  #endSoon(container: SimContainer, delayMs: number, code: number): void {
    this.clock.schedule(`${container.id} to end`, delayMs, () => this.exit(container, code, "Error"));
  }

  #container(method: string, id: string): SimContainer {
    const container = this.containers.get(id);
    if (container === undefined) throw new CriError("NotFound", method, `container "${id}": not found`);
    return container;
  }

  #uidOf(container: SimContainer): string | undefined {
    return this.sandboxes.get(container.sandboxId)?.config.metadata?.uid;
  }

  #id(prefix: string): string {
    return `${prefix}${String(this.#nextId++).padStart(11, "0")}`;
  }

  #nowNs(): bigint {
    return BigInt(Math.round(this.clock.wallMs * 1000)) * 1000n;
  }

  #tell(
    type: WorldChange["type"],
    sandbox: SimSandbox | undefined,
    container: SimContainer | undefined,
    more: Pick<WorldChange, "hook" | "timeoutMs"> = {},
  ): void {
    const podUid = sandbox?.config.metadata?.uid ?? container?.config.labels["io.kubernetes.pod.uid"] ?? "";
    for (const listener of this.#listeners) listener({ type, podUid, sandbox, container, ...more });
  }
}
