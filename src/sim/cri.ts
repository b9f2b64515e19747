import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { onAbort } from "../base/abort.ts";
import { type Cri, CriError, type CriImageService, type CriRuntimeService } from "../ports/cri.ts";
import type { RpcCallOptions, RpcCode } from "../ports/rpc.ts";
import * as pb from "../ports/gen/runtime/v1/api_pb.js";
import type { Clock } from "../ports/clock.ts";
import { callDurationMs, isLook, refusedAfterMs, slownessOf } from "./call-durations.ts";
import { containerItem, containerStatusAnswer, matcher, sandboxItem, sandboxStatus } from "./cri-messages.ts";
import type { CriFaults } from "./cri-faults.ts";
import { eventStream } from "./event-stream.ts";
import { imageService } from "./image-service.ts";
import type { SimRandom } from "./random.ts";
import type { RuntimeWorld } from "./runtime-world.ts";
import { emptyStream, refuseStream, unimplemented } from "./unimplemented.ts";

/** Hooks of a connection for the simulation. */
export interface ConnectionWatcher {
  /** Called with each call before its effect and before its response; false ends the caller there. */
  readonly onStep: () => boolean;
  readonly onFault: (kind: string) => void;
}

const codes = [
  "Unavailable",
  "Unknown",
  "Internal",
  "ResourceExhausted",
  "DeadlineExceeded",
  "Aborted",
] as const satisfies RpcCode[];

const stops: ReadonlySet<string> = new Set(["stopContainer", "stopPodSandbox"]);

type Fate = "fine" | "failBefore" | "failAfter" | "hangBefore" | "hangAfter";

/** containerd's message before there is a CNI configuration. */
const withoutNetwork = {
  status: false,
  reason: "NetworkPluginNotReady",
  message: "Network plugin returns error: cni plugin not initialized",
};

const nobodyWatches: ConnectionWatcher = { onStep: () => true, onFault: () => {} };

/** The deadline of most calls. */
const usualLimitMs = 120_000;
/** Duration of a hanging call without a deadline. */
const noLimitMs = 10_000;
/** A runtime that uses the deadline as grace period kills this long before it. */
const killedBeforeLimitMs = 2_000;

/** Usage of every simulated container. */
const usedMemoryBytes = 1n << 20n;

/** The connection of one incarnation of the node to the runtime. Calls take time, and fail according to the faults. */
export class SimConnection {
  readonly cri: Cri;
  readonly #world: RuntimeWorld;
  readonly #clock: Clock;
  readonly #random: SimRandom;
  readonly #watcher: ConnectionWatcher;
  /** Ends hanging calls without a deadline. */
  readonly #hanging = new Set<() => void>();
  #faults: CriFaults;
  #alive = true;

  constructor(
    world: RuntimeWorld,
    clock: Clock,
    random: SimRandom,
    faults: CriFaults,
    watcher: ConnectionWatcher = nobodyWatches,
  ) {
    this.#world = world;
    this.#clock = clock;
    this.#random = random;
    this.#faults = faults;
    this.#watcher = watcher;
    this.cri = { runtime: this.#runtimeService(), images: this.#imageService() };
  }

  /** Sets the faults. When hanging is over, calls without a deadline end. */
  setFaults(faults: CriFaults): void {
    this.#faults = faults;
    if (faults.hang > 0) return;
    for (const letGo of this.#hanging) letGo();
    this.#hanging.clear();
  }

  /** The node was killed: pending calls never settle, and have no further effect. */
  kill(): void {
    this.#alive = false;
  }

  async #call<T>(
    method: string,
    options: RpcCallOptions | undefined,
    work: (gone: () => boolean, isUnheard: boolean) => T | Promise<T>,
    durationMs = this.#durationMs(method),
  ): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const unavailable = (problem: string): void => reject(new CriError("Unavailable", method, `${method}: ${problem}`));
    const fate = this.#drawFate(method);
    const hangs = fate === "hangBefore" || fate === "hangAfter";
    if (hangs && options?.timeoutMs === undefined) this.#hanging.add(() => unavailable("connection reset"));
    let gone = false;
    let begun = false;
    // After a caller gives up, the runtime may or may not complete the call.
    const goesOn = this.#random.chance(0.5);
    const act = async (): Promise<void> => {
      begun = true;
      if (!this.#alive || (gone && !goesOn) || !this.#watcher.onStep()) return;
      if (fate === "failBefore") return reject(this.#failure(method));
      if (fate === "hangBefore") return;
      try {
        const value = await work(() => gone || !this.#alive, fate === "hangAfter");
        if (!this.#alive || !this.#watcher.onStep() || fate === "hangAfter") return;
        if (fate === "failAfter") reject(this.#failure(method));
        else this.#answer(method, durationMs, () => resolve(value));
      } catch (error) {
        if (this.#alive) reject(error);
      }
    };
    if (this.#world.down) {
      this.#clock.timer(method, refusedAfterMs, () => unavailable("connection refused"));
      return await promise;
    }
    // A hanging call ends at its own deadline, just after its caller's timer.
    using _limit =
      hangs && options?.timeoutMs !== undefined ? this.#expire(method, options.timeoutMs, reject) : undefined;
    using _timer = this.#clock.timer(method, durationMs, () => void act());
    using _down = this.#world.onDown(() => {
      gone = true;
      this.#clock.timer(method, 0, () => unavailable("connection reset"));
    });
    using _abort = onAbort(options?.signal, () => {
      gone = true;
      if (goesOn && !begun) this.#clock.timer(method, durationMs / 2, () => void act());
      reject(new CriError("Canceled", method, `${method}: canceled`));
    });
    return await promise;
  }

  /** The response of a slow query takes as long again: it shows the state at the time of the query. */
  #answer(method: string, durationMs: number, tell: () => void): void {
    if (this.#faults.lookSlowness === 1 || !isLook(method)) return tell();
    this.#clock.timer(`the answer of ${method}`, durationMs, tell);
  }

  #expire(method: string, timeoutMs: number, reject: (error: CriError) => void): Disposable {
    const error = new CriError("DeadlineExceeded", method, `${method}: deadline exceeded`);
    return this.#clock.timer(`the deadline of ${method}`, timeoutMs + 1, () => reject(error));
  }

  #durationMs(method: string): number {
    const [from, to] = callDurationMs(method);
    return (from + this.#random.uniform() * (to - from)) * slownessOf(method, this.#faults);
  }

  #drawFate(method: string): Fate {
    const { failAfter, stopFails, hang, slowness, lookSlowness } = this.#faults;
    const failBefore = Math.max(this.#faults.failBefore, stops.has(method) ? stopFails : 0);
    if (Math.max(slowness, lookSlowness) > 1) this.#watcher.onFault("call slow");
    let fate: Fate = "fine";
    const draw = this.#random.uniform();
    if (draw < failBefore) fate = "failBefore";
    else if (draw < failBefore + failAfter) fate = "failAfter";
    else if (draw < failBefore + failAfter + hang) fate = this.#random.chance(0.5) ? "hangBefore" : "hangAfter";
    if (fate !== "fine") this.#watcher.onFault(fateNames[fate]);
    return fate;
  }

  #failure(method: string): CriError {
    const code = this.#random.pick(codes);
    return new CriError(code, method, `${method}: a simulated ${code}`);
  }

  #runtimeService(): CriRuntimeService {
    const { ways } = this.#world;
    const version = { version: "0.1.0", runtimeName: ways.name, runtimeVersion: "1", runtimeApiVersion: "v1" };
    return {
      ...unimplemented<CriRuntimeService>(pb.RuntimeService),
      ...this.#sandboxCalls(),
      ...this.#containerCalls(),
      updateContainerResources: (request, options) => this.#updateResources(request, options),
      version: (_request, options) => this.#call("version", options, () => create(pb.VersionResponseSchema, version)),
      status: (_request, options) =>
        this.#call("status", options, () => {
          const network = this.#faults.noNetwork ? withoutNetwork : { status: true };
          const conditions = [
            { type: "RuntimeReady", status: true },
            { type: "NetworkReady", ...network },
          ];
          return create(pb.StatusResponseSchema, { status: { conditions }, runtimeHandlers: this.#handlers() });
        }),
      getContainerEvents: (_request, options) => {
        const { noEvents } = this.#faults;
        if (noEvents) return refuseStream("getContainerEvents");
        if (ways.endsEventStream) return emptyStream();
        const { onFault } = this.#watcher;
        const settings = { alive: () => this.#alive, faults: () => this.#faults, onFault };
        return eventStream(this.#world, this.#clock, this.#random, settings, options?.signal);
      },
    };
  }

  #sandboxCalls(): Pick<
    CriRuntimeService,
    "runPodSandbox" | "stopPodSandbox" | "removePodSandbox" | "podSandboxStatus" | "listPodSandbox"
  > {
    const world = this.#world;
    return {
      runPodSandbox: (request, options) =>
        this.#call("runPodSandbox", options, () => {
          if (this.#faults.noNetwork && !isOnHostNetwork(request.config)) {
            throw new CriError("Unknown", "runPodSandbox", withoutNetwork.message);
          }
          const hasAddress = !this.#random.chance(this.#faults.noAddress);
          if (!hasAddress) this.#watcher.onFault("sandbox without address");
          const podSandboxId = world.runSandbox(create(pb.PodSandboxConfigSchema, request.config), hasAddress);
          return create(pb.RunPodSandboxResponseSchema, { podSandboxId });
        }),
      stopPodSandbox: (request, options) =>
        this.#call("stopPodSandbox", options, async () => {
          const id = request.podSandboxId ?? "";
          const { timeoutMs = usualLimitMs } = options ?? {};
          if (world.holdsUnstarted(id)) await this.#clock.sleep(`${id} to stop`, timeoutMs - killedBeforeLimitMs);
          world.releaseSandbox(id);
          return create(pb.StopPodSandboxResponseSchema);
        }),
      removePodSandbox: (request, options) =>
        this.#call("removePodSandbox", options, () => {
          world.removeSandbox(request.podSandboxId ?? "");
          return create(pb.RemovePodSandboxResponseSchema);
        }),
      podSandboxStatus: (request, options) =>
        this.#call("podSandboxStatus", options, () => {
          const sandbox = world.sandboxes.get(request.podSandboxId ?? "");
          if (sandbox === undefined) throw new CriError("NotFound", "podSandboxStatus", "sandbox not found");
          return create(pb.PodSandboxStatusResponseSchema, { status: sandboxStatus(sandbox) });
        }),
      listPodSandbox: (request, options) =>
        this.#call("listPodSandbox", options, () => {
          const matches = matcher(request.filter?.labelSelector);
          const listed = [...world.sandboxes.values()].filter(({ config }) => matches(config.labels));
          return create(pb.ListPodSandboxResponseSchema, { items: listed.map(sandboxItem) });
        }),
    };
  }

  #containerCalls(): Pick<
    CriRuntimeService,
    | "createContainer"
    | "startContainer"
    | "stopContainer"
    | "removeContainer"
    | "listContainers"
    | "containerStatus"
    | "execSync"
    | "reopenContainerLog"
    | "containerStats"
  > {
    const world = this.#world;
    return {
      createContainer: (request, options) =>
        this.#call("createContainer", options, (gone, isUnheard) => {
          const config = create(pb.ContainerConfigSchema, request.config);
          const containerId = world.createContainer(request.podSandboxId ?? "", config, isUnheard || gone());
          return create(pb.CreateContainerResponseSchema, { containerId });
        }),
      startContainer: (request, options) =>
        this.#call("startContainer", options, () => {
          world.startContainer(request.containerId ?? "");
          return create(pb.StartContainerResponseSchema);
        }),
      stopContainer: (request, options) =>
        this.#call("stopContainer", options, async (gone) => {
          const timeoutMs = Number(request.timeout ?? 0n) * 1000;
          const { promise, resolve } = Promise.withResolvers<void>();
          world.stopContainer(request.containerId ?? "", timeoutMs, () => !gone(), resolve);
          await promise;
          return create(pb.StopContainerResponseSchema);
        }),
      removeContainer: (request, options) =>
        this.#call("removeContainer", options, async () => {
          await this.#remove(request.containerId ?? "", options?.timeoutMs ?? noLimitMs);
          return create(pb.RemoveContainerResponseSchema);
        }),
      execSync: (request, options) =>
        this.#call("execSync", options, async () => {
          const { promise, resolve } = Promise.withResolvers<number>();
          const kill = world.exec(request.containerId ?? "", request.cmd ?? [], resolve);
          // A caller that gives up kills the command, as with containerd.
          using _abort = onAbort(options?.signal, kill);
          return create(pb.ExecSyncResponseSchema, { exitCode: await promise });
        }),
      reopenContainerLog: (request, options) =>
        this.#call("reopenContainerLog", options, () => {
          world.reopenLog(request.containerId ?? "");
          return create(pb.ReopenContainerLogResponseSchema);
        }),
      containerStats: (_request, options) =>
        this.#call("containerStats", options, () => {
          const memory = { usageBytes: { value: usedMemoryBytes } };
          return create(pb.ContainerStatsResponseSchema, { stats: { memory } });
        }),
      listContainers: (request, options) =>
        this.#call("listContainers", options, () => {
          const matches = matcher(request.filter?.labelSelector);
          const listed = [...world.containers.values()].filter(({ config }) => matches(config.labels));
          return create(pb.ListContainersResponseSchema, { containers: listed.map(containerItem) });
        }),
      containerStatus: (request, options) =>
        this.#call("containerStatus", options, () => {
          const container = world.containers.get(request.containerId ?? "");
          if (container === undefined) throw new CriError("NotFound", "containerStatus", "container not found");
          return containerStatusAnswer(container, world.ways, request.verbose ?? false);
        }),
    };
  }

  async #remove(id: string, limitMs: number): Promise<void> {
    if (this.#world.holdsUnstarted(id)) await this.#clock.sleep(`${id} to end`, limitMs - killedBeforeLimitMs);
    this.#world.removeContainer(id);
  }

  #handlers(): MessageInitShape<typeof pb.RuntimeHandlerSchema>[] {
    const { handlers, ways } = this.#world;
    const listed = ways.shufflesHandlers ? shuffled(handlers, this.#random) : handlers;
    return listed.map(({ name, ...features }) => ({ name, features }));
  }

  #updateResources(
    request: MessageInitShape<typeof pb.UpdateContainerResourcesRequestSchema>,
    options?: RpcCallOptions,
  ) {
    return this.#call("updateContainerResources", options, () => {
      const resources = create(pb.LinuxContainerResourcesSchema, request.linux);
      this.#world.updateResources(request.containerId ?? "", resources);
      return create(pb.UpdateContainerResourcesResponseSchema);
    });
  }

  #imageService(): CriImageService {
    const { images } = this.#world;
    const { onFault } = this.#watcher;
    const call = this.#call.bind(this);
    return imageService({ images, random: this.#random, faults: () => this.#faults, onFault, call });
  }
}

function shuffled<T>(items: readonly T[], random: SimRandom): T[] {
  return items
    .map((item) => ({ item, place: random.uniform() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}

const fateNames = {
  failBefore: "call fails",
  failAfter: "call done but reported failed",
  hangBefore: "call hangs before its effect",
  hangAfter: "call hangs after its effect",
} as const satisfies Record<Exclude<Fate, "fine">, string>;

function isOnHostNetwork(config: MessageInitShape<typeof pb.PodSandboxConfigSchema> | undefined): boolean {
  return config?.linux?.securityContext?.namespaceOptions?.network === pb.NamespaceMode.NODE;
}
