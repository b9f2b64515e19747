import { create, type DescService } from "@bufbuild/protobuf";
import { onAbort } from "../base/abort.ts";
import { type Cri, type CriCallOptions, CriError, type CriImageService, type CriRuntimeService } from "../ports/cri.ts";
import * as pb from "../ports/gen/runtime/v1/api_pb.js";
import type { Clock } from "../ports/clock.ts";
import type { SimRandom } from "./random.ts";
import type { RuntimeWorld, SimContainer, SimSandbox, WorldChange } from "./runtime-world.ts";

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

/** The connection of one incarnation of the node with the runtime. */
export interface SimConnection {
  readonly cri: Cri;
  /** Faults from now on. */
  setFaults(faults: CriFaults): void;
  /** The node was killed: calls under way never settle, and none has an effect that it had not had yet. */
  kill(): void;
}

/** Calls as a real runtime answers them: after a while, and with the faults that are set. */
export function connectSim(world: RuntimeWorld, clock: Clock, random: SimRandom, initial: CriFaults): SimConnection {
  let faults = initial;
  let alive = true;
  const subscriptions = new Set<Disposable>();

  const call = async <T>(
    method: string,
    options: CriCallOptions | undefined,
    work: () => T | Promise<T>,
  ): Promise<T> => {
    const [from, to] = durations[method] ?? quick;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const aborted = (): void => reject(new CriError("Canceled", method, `${method}: canceled`));
    const fail = (): void => reject(new CriError("Unavailable", method, `${method}: connection reset`));
    const before = random.chance(faults.failBefore);
    const after = random.chance(faults.failAfter);
    clock.timer(method, from + random.uniform() * (to - from), () => {
      if (!alive) return;
      if (before) return fail();
      // What the runtime has begun it finishes, whether or not the caller still listens.
      void Promise.resolve()
        .then(work)
        .then((value) => (after ? fail() : resolve(value)), reject);
    });
    using _abort = onAbort(options?.signal, aborted);
    return await promise;
  };

  const runtime: CriRuntimeService = {
    ...unimplemented<CriRuntimeService>(pb.RuntimeService),
    version: (_request, options) =>
      call("version", options, () =>
        create(pb.VersionResponseSchema, {
          version: "0.1.0",
          runtimeName: "sim",
          runtimeVersion: "1",
          runtimeApiVersion: "v1",
        }),
      ),
    runPodSandbox: (request, options) =>
      call("runPodSandbox", options, () =>
        create(pb.RunPodSandboxResponseSchema, {
          podSandboxId: world.runSandbox(create(pb.PodSandboxConfigSchema, request.config)),
        }),
      ),
    stopPodSandbox: (request, options) =>
      call("stopPodSandbox", options, () => {
        world.stopSandbox(request.podSandboxId ?? "");
        return create(pb.StopPodSandboxResponseSchema);
      }),
    removePodSandbox: (request, options) =>
      call("removePodSandbox", options, () => {
        world.removeSandbox(request.podSandboxId ?? "");
        return create(pb.RemovePodSandboxResponseSchema);
      }),
    podSandboxStatus: (request, options) =>
      call("podSandboxStatus", options, () => {
        const sandbox = world.sandboxes.get(request.podSandboxId ?? "");
        if (sandbox === undefined) throw new CriError("NotFound", "podSandboxStatus", "sandbox not found");
        return create(pb.PodSandboxStatusResponseSchema, { status: sandboxStatus(sandbox) });
      }),
    listPodSandbox: (request, options) =>
      call("listPodSandbox", options, () => {
        const matches = [...world.sandboxes.values()].filter((sandbox) =>
          labelsMatch(sandbox.config.labels, request.filter?.labelSelector),
        );
        return create(pb.ListPodSandboxResponseSchema, { items: matches.map(sandboxItem) });
      }),
    createContainer: (request, options) =>
      call("createContainer", options, () =>
        create(pb.CreateContainerResponseSchema, {
          containerId: world.createContainer(
            request.podSandboxId ?? "",
            create(pb.ContainerConfigSchema, request.config),
          ),
        }),
      ),
    startContainer: (request, options) =>
      call("startContainer", options, () => {
        world.startContainer(request.containerId ?? "");
        return create(pb.StartContainerResponseSchema);
      }),
    stopContainer: (request, options) =>
      call("stopContainer", options, async () => {
        const { promise, resolve } = Promise.withResolvers<void>();
        world.stopContainer(request.containerId ?? "", Number(request.timeout ?? 0n) * 1000, resolve);
        await promise;
        return create(pb.StopContainerResponseSchema);
      }),
    removeContainer: (request, options) =>
      call("removeContainer", options, () => {
        world.removeContainer(request.containerId ?? "");
        return create(pb.RemoveContainerResponseSchema);
      }),
    listContainers: (request, options) =>
      call("listContainers", options, () => {
        const matches = [...world.containers.values()].filter((container) =>
          labelsMatch(container.config.labels, request.filter?.labelSelector),
        );
        return create(pb.ListContainersResponseSchema, { containers: matches.map(containerItem) });
      }),
    containerStatus: (request, options) =>
      call("containerStatus", options, () => {
        const container = world.containers.get(request.containerId ?? "");
        if (container === undefined) throw new CriError("NotFound", "containerStatus", "container not found");
        return create(pb.ContainerStatusResponseSchema, { status: containerStatus(container) });
      }),
    getContainerEvents: (_request, options) => eventStream(options),
  };

  async function* eventStream(options: CriCallOptions | undefined): AsyncGenerator<pb.ContainerEventResponse> {
    if (faults.noEvents) throw new CriError("Unimplemented", "getContainerEvents", "unknown method GetContainerEvents");
    const queue: WorldChange[] = [];
    let wake: (() => void) | undefined;
    const push = (change: WorldChange): void => {
      if (!alive || random.chance(faults.eventLost)) return;
      const copies = random.chance(faults.eventTwice) ? 2 : 1;
      for (let copy = 0; copy < copies; copy++) {
        clock.timer("runtime event", random.uniform() * faults.eventDelayMaxMs, () => {
          queue.push(change);
          wake?.();
        });
      }
    };
    const subscription = world.onChange(push);
    subscriptions.add(subscription);
    try {
      for (;;) {
        const change = queue.shift();
        if (change !== undefined) {
          yield eventOf(change);
          continue;
        }
        const { promise, resolve, reject } = Promise.withResolvers<void>();
        wake = resolve;
        using _abort = onAbort(options?.signal, () =>
          reject(new CriError("Canceled", "getContainerEvents", "canceled")),
        );
        await promise;
      }
    } finally {
      subscription[Symbol.dispose]();
      subscriptions.delete(subscription);
    }
  }

  const images: CriImageService = {
    ...unimplemented<CriImageService>(pb.ImageService),
    imageStatus: (request, options) =>
      call("imageStatus", options, () => {
        const image = request.image?.image ?? "";
        if (!world.images.has(image)) return create(pb.ImageStatusResponseSchema);
        return create(pb.ImageStatusResponseSchema, { image: { id: `sha256:${image}`, repoTags: [image], size: 1n } });
      }),
    pullImage: (request, options) =>
      call("pullImage", options, () => {
        const image = request.image?.image ?? "";
        if (image.includes("missing"))
          throw new CriError("NotFound", "pullImage", `failed to pull and unpack image "${image}": not found`);
        world.images.add(image);
        return create(pb.PullImageResponseSchema, { imageRef: `sha256:${image}` });
      }),
  };

  return {
    cri: { runtime, images },
    setFaults: (next) => (faults = next),
    kill: () => {
      alive = false;
      for (const subscription of subscriptions) subscription[Symbol.dispose]();
    },
  };
}

/** Every method of the service, answering as a runtime that does not know it. */
function unimplemented<T>(service: DescService): T {
  const methods = service.methods.map((method) => {
    const error = new CriError("Unimplemented", method.localName, `unknown method ${method.name}`);
    const answer =
      method.methodKind === "unary"
        ? () => Promise.reject(error)
        : // oxlint-disable-next-line require-yield -- it refuses before it could give anything
          async function* (): AsyncGenerator<never> {
            throw error;
          };
    return [method.localName, answer] as const;
  });
  return Object.fromEntries(methods) as T;
}

type Labels = Readonly<Record<string, string>>;

function labelsMatch(labels: Labels | undefined, selector: Labels | undefined): boolean {
  return Object.entries(selector ?? {}).every(([key, value]) => labels?.[key] === value);
}

function sandboxState(sandbox: SimSandbox): pb.PodSandboxState {
  return sandbox.ready ? pb.PodSandboxState.SANDBOX_READY : pb.PodSandboxState.SANDBOX_NOTREADY;
}

function sandboxItem(sandbox: SimSandbox): pb.PodSandbox {
  const { metadata, labels, annotations } = sandbox.config;
  const { id, createdAt } = sandbox;
  return create(pb.PodSandboxSchema, {
    id,
    createdAt,
    state: sandboxState(sandbox),
    labels,
    annotations,
    ...(metadata && { metadata }),
  });
}

function sandboxStatus(sandbox: SimSandbox): pb.PodSandboxStatus {
  const { metadata, labels, annotations, linux } = sandbox.config;
  const options = linux?.securityContext?.namespaceOptions;
  const network = options?.network === pb.NamespaceMode.NODE || !sandbox.ready ? { ip: "" } : { ip: sandbox.ip };
  return create(pb.PodSandboxStatusSchema, {
    id: sandbox.id,
    createdAt: sandbox.createdAt,
    state: sandboxState(sandbox),
    labels,
    annotations,
    network,
    ...(metadata && { metadata }),
    ...(options && { linux: { namespaces: { options } } }),
  });
}

const states = {
  created: pb.ContainerState.CONTAINER_CREATED,
  running: pb.ContainerState.CONTAINER_RUNNING,
  exited: pb.ContainerState.CONTAINER_EXITED,
} as const;

function containerItem(container: SimContainer): pb.Container {
  const { metadata, labels, annotations } = container.config;
  const { id, createdAt, sandboxId } = container;
  const state = states[container.state];
  return create(pb.ContainerSchema, {
    id,
    createdAt,
    podSandboxId: sandboxId,
    state,
    labels,
    annotations,
    ...(metadata && { metadata }),
  });
}

function containerStatus(container: SimContainer): pb.ContainerStatus {
  const { metadata, labels, annotations, image } = container.config;
  const { id, createdAt, startedAt, finishedAt, exitCode, reason } = container;
  return create(pb.ContainerStatusSchema, {
    id,
    createdAt,
    startedAt,
    finishedAt,
    exitCode,
    reason,
    state: states[container.state],
    labels,
    annotations,
    ...(metadata && { metadata }),
    ...(image && { image }),
  });
}

function eventOf(change: WorldChange): pb.ContainerEventResponse {
  return create(pb.ContainerEventResponseSchema, {
    containerId: change.container?.id ?? change.sandbox?.id ?? "",
    ...(change.sandbox && { podSandboxStatus: sandboxStatus(change.sandbox) }),
  });
}
