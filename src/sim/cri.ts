import { create, type DescService } from "@bufbuild/protobuf";
import { onAbort } from "../base/abort.ts";
import { type Cri, type CriCallOptions, CriError, type CriImageService, type CriRuntimeService } from "../ports/cri.ts";
import * as pb from "../ports/gen/runtime/v1/api_pb.js";
import type { Clock } from "../ports/clock.ts";
import { containerItem, containerStatus, labelsMatch, sandboxItem, sandboxStatus } from "./cri-messages.ts";
import { eventStream } from "./event-stream.ts";
import type { SimRandom } from "./random.ts";
import type { RuntimeWorld } from "./runtime-world.ts";

/** What goes wrong between the node and the runtime, as probabilities for each call or event. */
export interface CriFaults {
  /** The call fails and nothing happened. */
  readonly failBefore: number;
  /** It happened, but the caller is told that it failed. */
  readonly failAfter: number;
  readonly eventLost: number;
  readonly eventTwice: number;
  readonly eventDelayMaxMs: number;
  /** The runtime has no event stream at all. */
  readonly noEvents: boolean;
}

export const noFaults: CriFaults = {
  failBefore: 0,
  failAfter: 0,
  eventLost: 0,
  eventTwice: 0,
  eventDelayMaxMs: 30,
  noEvents: false,
};

/** Typical durations of a real containerd, ms: from, to. */
const durations: Readonly<Record<string, readonly [number, number]>> = {
  runPodSandbox: [100, 300],
  stopPodSandbox: [50, 300],
  removePodSandbox: [10, 60],
  createContainer: [10, 60],
  startContainer: [40, 120],
  removeContainer: [5, 30],
  pullImage: [100, 5000],
};
const quick: readonly [number, number] = [0.3, 2];

/** The connection of one incarnation of the node with the runtime: calls take their time, and may fail as is set. */
export class SimConnection {
  readonly cri: Cri;
  readonly #world: RuntimeWorld;
  readonly #clock: Clock;
  readonly #random: SimRandom;
  #faults: CriFaults;
  #alive = true;

  constructor(world: RuntimeWorld, clock: Clock, random: SimRandom, faults: CriFaults) {
    this.#world = world;
    this.#clock = clock;
    this.#random = random;
    this.#faults = faults;
    this.cri = { runtime: this.#runtimeService(), images: this.#imageService() };
  }

  /** Faults from now on. */
  setFaults(faults: CriFaults): void {
    this.#faults = faults;
  }

  /** The node was killed: calls under way never settle, and none has an effect that it had not had yet. */
  kill(): void {
    this.#alive = false;
  }

  async #call<T>(method: string, options: CriCallOptions | undefined, work: () => T | Promise<T>): Promise<T> {
    const [from, to] = durations[method] ?? quick;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const fail = (): void => reject(new CriError("Unavailable", method, `${method}: connection reset`));
    const before = this.#random.chance(this.#faults.failBefore);
    const after = this.#random.chance(this.#faults.failAfter);
    this.#clock.timer(method, from + this.#random.uniform() * (to - from), () => {
      if (!this.#alive) return;
      if (before) {
        fail();
        return;
      }
      // What the runtime has begun it finishes, whether or not the caller still listens.
      void Promise.resolve()
        .then(work)
        .then((value) => (after ? fail() : resolve(value)), reject);
    });
    using _abort = onAbort(options?.signal, () => reject(new CriError("Canceled", method, `${method}: canceled`)));
    return await promise;
  }

  #runtimeService(): CriRuntimeService {
    const version = { version: "0.1.0", runtimeName: "sim", runtimeVersion: "1", runtimeApiVersion: "v1" };
    return {
      ...unimplemented<CriRuntimeService>(pb.RuntimeService),
      ...this.#sandboxCalls(),
      ...this.#containerCalls(),
      version: (_request, options) => this.#call("version", options, () => create(pb.VersionResponseSchema, version)),
      getContainerEvents: (_request, options) => {
        const { noEvents } = this.#faults;
        if (noEvents) return refuseStream("getContainerEvents");
        const settings = { alive: () => this.#alive, faults: () => this.#faults };
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
          const podSandboxId = world.runSandbox(create(pb.PodSandboxConfigSchema, request.config));
          return create(pb.RunPodSandboxResponseSchema, { podSandboxId });
        }),
      stopPodSandbox: (request, options) =>
        this.#call("stopPodSandbox", options, () => {
          world.stopSandbox(request.podSandboxId ?? "");
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
          const selector = request.filter?.labelSelector;
          const matches = [...world.sandboxes.values()].filter(({ config }) => labelsMatch(config.labels, selector));
          return create(pb.ListPodSandboxResponseSchema, { items: matches.map(sandboxItem) });
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
  > {
    const world = this.#world;
    return {
      createContainer: (request, options) =>
        this.#call("createContainer", options, () => {
          const config = create(pb.ContainerConfigSchema, request.config);
          const containerId = world.createContainer(request.podSandboxId ?? "", config);
          return create(pb.CreateContainerResponseSchema, { containerId });
        }),
      startContainer: (request, options) =>
        this.#call("startContainer", options, () => {
          world.startContainer(request.containerId ?? "");
          return create(pb.StartContainerResponseSchema);
        }),
      stopContainer: (request, options) =>
        this.#call("stopContainer", options, async () => {
          const { promise, resolve } = Promise.withResolvers<void>();
          world.stopContainer(request.containerId ?? "", Number(request.timeout ?? 0n) * 1000, resolve);
          await promise;
          return create(pb.StopContainerResponseSchema);
        }),
      removeContainer: (request, options) =>
        this.#call("removeContainer", options, () => {
          world.removeContainer(request.containerId ?? "");
          return create(pb.RemoveContainerResponseSchema);
        }),
      execSync: (request, options) =>
        this.#call("execSync", options, async () => {
          const { promise, resolve } = Promise.withResolvers<number>();
          const kill = world.exec(request.containerId ?? "", request.cmd ?? [], resolve);
          // Who waits no longer has the command killed, as containerd does.
          using _abort = onAbort(options?.signal, kill);
          return create(pb.ExecSyncResponseSchema, { exitCode: await promise });
        }),
      listContainers: (request, options) =>
        this.#call("listContainers", options, () => {
          const selector = request.filter?.labelSelector;
          const matches = [...world.containers.values()].filter(({ config }) => labelsMatch(config.labels, selector));
          return create(pb.ListContainersResponseSchema, { containers: matches.map(containerItem) });
        }),
      containerStatus: (request, options) =>
        this.#call("containerStatus", options, () => {
          const container = world.containers.get(request.containerId ?? "");
          if (container === undefined) throw new CriError("NotFound", "containerStatus", "container not found");
          return create(pb.ContainerStatusResponseSchema, { status: containerStatus(container) });
        }),
    };
  }

  #imageService(): CriImageService {
    const world = this.#world;
    return {
      ...unimplemented<CriImageService>(pb.ImageService),
      imageStatus: (request, options) =>
        this.#call("imageStatus", options, () => {
          const image = request.image?.image ?? "";
          if (!world.images.has(image)) return create(pb.ImageStatusResponseSchema);
          const found = { id: `sha256:${image}`, repoTags: [image], size: 1n };
          return create(pb.ImageStatusResponseSchema, { image: found });
        }),
      pullImage: (request, options) =>
        this.#call("pullImage", options, () => {
          const image = request.image?.image ?? "";
          if (image.includes("missing")) {
            throw new CriError("NotFound", "pullImage", `failed to pull and unpack image "${image}": not found`);
          }
          world.images.add(image);
          return create(pb.PullImageResponseSchema, { imageRef: `sha256:${image}` });
        }),
    };
  }
}

/** Every method of the service, answering as a runtime that does not know it. */
function unimplemented<T>(service: DescService): T {
  const methods = service.methods.map((method) => {
    const refuse = (): unknown =>
      method.methodKind === "unary" ? Promise.reject(unknownMethod(method.localName)) : refuseStream(method.localName);
    return [method.localName, refuse] as const;
  });
  return Object.fromEntries(methods) as T;
}

function unknownMethod(method: string): CriError {
  return new CriError("Unimplemented", method, `unknown method ${method}`);
}

// oxlint-disable-next-line require-yield -- it refuses before it could give anything
async function* refuseStream(method: string): AsyncGenerator<never> {
  throw unknownMethod(method);
}
