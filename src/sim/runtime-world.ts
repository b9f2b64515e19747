import { Emitter } from "../base/emitter.ts";
import { dirname } from "node:path/posix";
import { CriError } from "../ports/cri.ts";
import type { ContainerConfig, LinuxContainerResources, PodSandboxConfig } from "../ports/gen/runtime/v1/api_pb.js";
import type { RuntimeHandlerInfo } from "../runtime-service/features.ts";
import { parseHook } from "./behaviour.ts";
import type { SimClock } from "./clock.ts";
import type { MemoryFiles } from "./files.ts";
import { type Health, isWell, parseHealth } from "./health.ts";
import { SimImages } from "./images.ts";
import { LateContainers } from "./late-containers.ts";
import { type RuntimeWays, usualHandlers, usualWays } from "./runtime-ways.ts";
import { createdContainer, mayRun, type SimContainer, type SimSandbox, type WorldChange } from "./world-model.ts";

const killDelayMs = 5;
const chatterMs = 15_000;
const chatter = `2023-11-14T22:13:20.000000000Z stdout F ${"x".repeat(3000)}\n`;

/**
 * The simulated runtime's own state: sandboxes and containers as in containerd. It outlives every incarnation of the
 * node. Operations are immediate; calls with delays and faults are in cri.ts.
 */
export class RuntimeWorld {
  readonly clock: SimClock;
  readonly sandboxes = new Map<string, SimSandbox>();
  readonly containers = new Map<string, SimContainer>();
  readonly images = new SimImages();
  readonly ways: RuntimeWays;
  /** As it lists them; another version of it may list others. */
  handlers: readonly RuntimeHandlerInfo[] = usualHandlers;
  /** Where containers write their logs and messages; undefined: nowhere. */
  readonly #files: MemoryFiles | undefined;
  readonly #changes = new Emitter<WorldChange>();
  readonly #downs = new Emitter();
  readonly #cuts = new Emitter();
  readonly #late: LateContainers;
  #nextId = 0;
  #down = false;
  #life = 1;
  #upSinceMs = 0;

  constructor(clock: SimClock, files?: MemoryFiles, ways: RuntimeWays = usualWays) {
    this.clock = clock;
    this.ways = ways;
    this.#files = files;
    this.#late = new LateContainers(clock);
  }

  /** True while the runtime itself is down; its containers keep running. */
  get down(): boolean {
    return this.#down;
  }

  /** Simulated ms of its last start. */
  get upSinceMs(): number {
    return this.#upSinceMs;
  }

  /** How often the runtime has been started. */
  get life(): number {
    return this.#life;
  }

  /** Stops the runtime: connections break, containers keep running, and pending operations are lost. */
  goDown(): void {
    this.#down = true;
    this.cutStreams();
    this.#downs.emit();
  }

  /** Breaks every event stream; other calls continue. */
  cutStreams(): void {
    this.#cuts.emit();
  }

  /** Starts it again. `loses` selects containers whose state it has lost. */
  comeUp(loses: (container: SimContainer) => boolean): void {
    this.#down = false;
    this.#life++;
    this.#upSinceMs = this.clock.nowMs;
    for (const container of this.containers.values()) {
      if (this.ways.forgetsResizes) container.reportedResources = container.config.linux?.resources;
      if (container.state !== "running" || !loses(container)) continue;
      container.state = "unknown";
      container.wasLost = true;
    }
  }

  /** Reports every change until the result is disposed of. */
  onChange(listener: (change: WorldChange) => void): Disposable {
    return this.#changes.on(listener);
  }

  /** Calls back when the runtime stops, until the result is disposed of. */
  onDown(listener: () => void): Disposable {
    return this.#downs.on(listener);
  }

  /** Calls back when event streams break, until the result is disposed of. */
  onCut(listener: () => void): Disposable {
    return this.#cuts.on(listener);
  }

  running(uid: string, name: string): SimContainer | undefined {
    for (const container of this.containers.values()) {
      if (container.state !== "running" || container.config.metadata?.name !== name) continue;
      if (container.config.labels["io.kubernetes.pod.uid"] === uid) return container;
    }
    return undefined;
  }

  runSandbox(config: PodSandboxConfig, hasAddress = true): string {
    const name = sandboxName(config);
    const taken = [...this.sandboxes.values()].find((other) => sandboxName(other.config) === name);
    if (taken !== undefined) {
      const problem = `failed to reserve sandbox name "${name}": name is reserved for "${taken.id}"`;
      throw new CriError("Unknown", "RunPodSandbox", problem);
    }
    const id = this.#id("s");
    const ip = hasAddress ? `10.1.${(this.#nextId >> 8) & 255}.${this.#nextId & 255}` : "";
    const sandbox: SimSandbox = { id, config, createdAt: this.#nowNs(), ip, ready: true, released: false };
    this.sandboxes.set(id, sandbox);
    this.#tell("sandboxStarted", sandbox, undefined);
    return id;
  }

  /** {@link stopSandbox} on request, which also releases its network. */
  releaseSandbox(id: string): void {
    const sandbox = this.sandboxes.get(id);
    if (sandbox !== undefined) sandbox.released = true;
    for (const container of this.containers.values()) {
      if (container.sandboxId === id && this.#endsBySigkillOnly(container)) this.exit(container, 137, "Error");
    }
    this.stopSandbox(id);
  }

  /** Whether stopping this container or sandbox waits for a container that ignores its stop signal. */
  holdsUnstarted(id: string): boolean {
    const own = [...this.containers.values()].filter((each) => each.id === id || each.sandboxId === id);
    return own.some((each) => this.#endsBySigkillOnly(each));
  }

  /** Kills its containers at once, as containerd does. */
  stopSandbox(id: string): void {
    const sandbox = this.sandboxes.get(id);
    if (sandbox === undefined) return;
    for (const container of this.containers.values()) {
      if (container.sandboxId === id && mayRun(container)) this.exit(container, 137, "Error");
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
    this.#late.drop(id);
    this.sandboxes.delete(id);
    this.#tell("sandboxRemoved", sandbox, undefined);
  }

  /** @param isLate the caller has given up */
  createContainer(sandboxId: string, config: ContainerConfig, isLate = false): string {
    const sandbox = this.sandboxes.get(sandboxId);
    if (sandbox === undefined) throw new CriError("NotFound", "CreateContainer", `sandbox ${sandboxId} not found`);
    if (!sandbox.ready) throw new CriError("Unknown", "CreateContainer", `sandbox ${sandboxId} is not running`);
    for (const other of this.containers.values()) {
      const { metadata } = other.config;
      if (metadata?.name !== config.metadata?.name || metadata?.attempt !== config.metadata?.attempt) continue;
      if (this.#uidOf(other) !== sandbox.config.metadata?.uid) continue;
      const problem = `failed to reserve container name: name is reserved for "${other.id}"`;
      throw new CriError("Unknown", "CreateContainer", problem);
    }
    for (const { image } of [config, ...config.mounts]) this.images.require(image?.image ?? "");
    const podUid = sandbox.config.metadata?.uid ?? "";
    const container = this.#late.take(podUid, { config }) ?? this.#newContainer(sandbox, config);
    if (isLate && this.ways.keepsLateContainers) {
      this.#late.keep(podUid, container);
      return container.id;
    }
    this.containers.set(container.id, container);
    this.#tell("created", sandbox, container);
    return container.id;
  }

  /** Whether a hidden container was created in it. */
  hasLate(sandboxId: string): boolean {
    return this.#late.has(sandboxId);
  }

  #newContainer(sandbox: SimSandbox, config: ContainerConfig): SimContainer {
    const { leastMemoryBytes, logsBeforeStart } = this.ways;
    const memoryBytes = config.linux?.resources?.memoryLimitInBytes ?? 0n;
    if (memoryBytes > 0n && memoryBytes < leastMemoryBytes) {
      const problem = `set memory limit ${memoryBytes} too low; should be at least ${leastMemoryBytes}`;
      throw new CriError("Unknown", "CreateContainer", problem);
    }
    const isLogged = this.#files !== undefined;
    const container = createdContainer({ id: this.#id("c"), sandbox, config, createdAt: this.#nowNs(), isLogged });
    if (logsBeforeStart) this.#log(container, "");
    return container;
  }

  startContainer(id: string): void {
    const container = this.#container("StartContainer", id);
    if (container.state !== "created") {
      const state = `CONTAINER_${container.state.toUpperCase()}`;
      throw new CriError("Unknown", "StartContainer", `container is in ${state} state`);
    }
    if (this.sandboxes.get(container.sandboxId)?.ready !== true) {
      throw new CriError("Unknown", "StartContainer", "sandbox container is not running");
    }
    this.#log(container, "");
    if (container.behaviour.unstartable) {
      this.exit(container, 128, "StartError");
      throw new CriError("Unknown", "StartContainer", `exec: "sim": executable file not found in $PATH`);
    }
    container.state = "running";
    container.startedAt = this.#nowNs();
    container.startedMs = this.clock.nowMs;
    const { exitAfterMs, exitCode, chatty } = container.behaviour;
    if (exitAfterMs !== undefined) {
      const end = (): void => this.exit(container, exitCode, exitCode === 0 ? "Completed" : "Error");
      container.timers.push(this.clock.schedule(`process of ${id} to end`, exitAfterMs, end));
    }
    if (chatty === true) this.#chat(container);
    this.#tell("started", this.sandboxes.get(container.sandboxId), container);
  }

  /**
   * Sends the stop signal now, SIGKILL after the timeout; calls `done` after the exit (at once when it does not run).
   * If the caller gives up, the signal stays sent, but SIGKILL follows only if `stillWanted`.
   */
  stopContainer(id: string, timeoutMs: number, stillWanted: () => boolean, done: () => void): void {
    const container = this.containers.get(id);
    const isDeaf = container !== undefined && this.#endsBySigkillOnly(container);
    if (container === undefined || !(mayRun(container) || isDeaf)) {
      done();
      return;
    }
    container.onExit.push(done);
    this.#tell("stopping", this.sandboxes.get(container.sandboxId), container, { timeoutMs });
    const { life } = this;
    const kill = (): void => {
      if (life === this.#life && stillWanted()) this.exit(container, 137, "Error");
    };
    if (container.behaviour.deaf || isDeaf || container.state === "unknown") {
      this.clock.schedule(`SIGKILL for ${container.id}`, timeoutMs, kill);
    } else {
      const isPolite = container.behaviour.polite === true;
      const obey = (): void => this.exit(container, isPolite ? 0 : 143, isPolite ? "Completed" : "Error");
      this.clock.schedule(`${container.id} to obey`, killDelayMs, obey);
    }
  }

  /**
   * Runs a command in a container; calls `done` with its exit code, 137 when the container exits first. Returns a
   * function that kills it.
   */
  exec(id: string, command: readonly string[], done: (exitCode: number) => void): () => void {
    const container = this.#container("ExecSync", id);
    if (container.state !== "running") {
      const state = `CONTAINER_${container.state.toUpperCase()}`;
      throw new CriError("Unknown", "ExecSync", `container is in ${state} state`);
    }
    const hook = parseHook(command);
    const health = command[1] === "health" ? parseHealth(command[2] ?? "") : undefined;
    if (hook === undefined && health === undefined) {
      throw new CriError("Unknown", "ExecSync", `exec: "${command[0] ?? ""}": not found`);
    }
    let running = true;
    const end = (exitCode: number): void => {
      if (!running) return;
      running = false;
      timer?.[Symbol.dispose]();
      done(exitCode);
    };
    let timer: Disposable | undefined;
    container.onExit.push(() => end(137));
    if (hook !== undefined) {
      timer = this.clock.schedule(`command in ${id} to end`, hook.durationMs, () => end(hook.exitCode));
      this.#tell("hook", this.sandboxes.get(container.sandboxId), container, { hook });
    } else if (health !== undefined) {
      const ok = this.probe(container, health);
      const hangs = !ok && health.manner === "hangs";
      timer = hangs ? undefined : this.clock.schedule(`health of ${id}`, 20, () => end(ok ? 0 : 1));
    }
    return () => end(137);
  }

  /** Probes a container; true when it is healthy. */
  probe(container: SimContainer, health: Health): boolean {
    const ok = isWell(health, this.clock.nowMs - container.startedMs);
    const sandbox = this.sandboxes.get(container.sandboxId);
    this.#tell("probed", sandbox, container, { probe: { type: health.type, ok } });
    return ok;
  }

  removeContainer(id: string): void {
    const container = this.containers.get(id);
    if (container === undefined) return;
    if (mayRun(container)) this.exit(container, 137, "Error");
    this.containers.delete(id);
    this.#tell("removed", this.sandboxes.get(container.sandboxId), container);
  }

  updateResources(id: string, resources: LinuxContainerResources): void {
    const container = this.#container("UpdateContainerResources", id);
    if (container.state !== "running" && container.state !== "created") {
      throw new CriError("Unknown", "UpdateContainerResources", "container is not running");
    }
    const before = container.resources;
    container.resources = resources;
    container.reportedResources = resources;
    this.#tell("resized", this.sandboxes.get(container.sandboxId), container, { before });
  }

  /** The runtime reopens the log under its own name. */
  reopenLog(id: string): void {
    const container = this.#container("ReopenContainerLog", id);
    if (container.state !== "running") throw new CriError("Unknown", "ReopenContainerLog", "container is not running");
    this.#log(container, "");
  }

  /** The process has exited: by itself, by a signal, or by a fault. */
  exit(container: SimContainer, code: number, reason: string): void {
    if (container.state === "exited") return;
    for (const timer of container.timers.splice(0)) timer[Symbol.dispose]();
    const ran = container.state === "running";
    container.state = "exited";
    container.finishedAt = this.#nowNs();
    container.exitCode = code;
    container.reason = reason;
    const message = container.config.mounts.find(({ containerPath }) => containerPath === "/dev/termination-log");
    if (ran && message !== undefined) this.#write(message.hostPath, `ended with ${code}`);
    for (const done of container.onExit.splice(0)) done();
    this.#tell("exited", this.sandboxes.get(container.sandboxId), container);
  }

  #endsBySigkillOnly({ state }: SimContainer): boolean {
    return state === "created" && this.ways.stopsUnstartedLate;
  }

  #chat(container: SimContainer): void {
    const next = this.clock.schedule(`${container.id} to say more`, chatterMs, () => {
      container.timers.splice(container.timers.indexOf(next), 1);
      this.#log(container, chatter);
      this.#chat(container);
    });
    container.timers.push(next);
  }

  #log({ logPath }: SimContainer, text: string): void {
    if (logPath !== "") this.#write(logPath, text);
  }

  /** Containers write asynchronously; on a full disk they lose their output. */
  #write(path: string, text: string): void {
    const files = this.#files;
    if (files === undefined) return;
    void files.makeDirectory(dirname(path), 0o755).then(() => files.append(path, text, 0o640));
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
    more: Pick<WorldChange, "hook" | "probe" | "timeoutMs" | "before"> = {},
  ): void {
    const podUid = sandbox?.config.metadata?.uid ?? container?.config.labels["io.kubernetes.pod.uid"] ?? "";
    this.#changes.emit({ type, podUid, sandbox, container, ...more });
  }
}

function sandboxName({ metadata }: PodSandboxConfig): string {
  return `${metadata?.name}_${metadata?.namespace}_${metadata?.uid}_${metadata?.attempt ?? 0}`;
}
