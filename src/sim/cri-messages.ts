import { create } from "@bufbuild/protobuf";
import * as pb from "../ports/gen/runtime/v1/api_pb.js";
import type { RuntimeWays } from "./runtime-ways.ts";
import type { SimContainer, SimSandbox, WorldChange } from "./world-model.ts";

/** CRI-O's annotation with a container's stop signal. */
const stopSignalAnnotation = "org.opencontainers.image.stopSignal";

type Labels = Readonly<Record<string, string>>;

/** A predicate for labels that match a selector. */
export function matcher(selector: Labels | undefined): (labels: Labels | undefined) => boolean {
  const wanted = Object.entries(selector ?? {});
  return (labels) => wanted.every(([key, value]) => labels?.[key] === value);
}

/** Caches messages until they are outdated; callers do not modify them. */
function kept<Thing extends object, Message>(
  make: (thing: Thing) => Message,
  isTrue: (message: Message, thing: Thing) => boolean,
): (thing: Thing) => Message {
  const made = new WeakMap<Thing, Message>();
  return (thing) => {
    const known = made.get(thing);
    if (known !== undefined && isTrue(known, thing)) return known;
    const message = make(thing);
    made.set(thing, message);
    return message;
  };
}

function sandboxState(sandbox: SimSandbox): pb.PodSandboxState {
  return sandbox.ready ? pb.PodSandboxState.SANDBOX_READY : pb.PodSandboxState.SANDBOX_NOTREADY;
}

function isStateOf({ state }: { readonly state: pb.PodSandboxState }, sandbox: SimSandbox): boolean {
  return state === sandboxState(sandbox);
}

export const sandboxItem = kept((sandbox: SimSandbox): pb.PodSandbox => {
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
}, isStateOf);

export const sandboxStatus = kept((sandbox: SimSandbox): pb.PodSandboxStatus => {
  const { metadata, labels, annotations, linux } = sandbox.config;
  const options = linux?.securityContext?.namespaceOptions;
  const own = options?.network !== pb.NamespaceMode.NODE && sandbox.ready;
  const network = { ip: own ? sandbox.ip : "" };
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
}, isStateOf);

const states = {
  created: pb.ContainerState.CONTAINER_CREATED,
  running: pb.ContainerState.CONTAINER_RUNNING,
  exited: pb.ContainerState.CONTAINER_EXITED,
  unknown: pb.ContainerState.CONTAINER_UNKNOWN,
} as const;

export const containerItem = kept(
  (container: SimContainer): pb.Container => {
    const { metadata, labels, annotations, image } = container.config;
    const { id, createdAt, sandboxId } = container;
    const state = states[container.state];
    return create(pb.ContainerSchema, {
      id,
      createdAt,
      podSandboxId: sandboxId,
      state,
      labels,
      annotations,
      imageRef: image?.image ?? "",
      ...(metadata && { metadata }),
      ...(image && { image }),
    });
  },
  ({ state }, container) => state === states[container.state],
);

const containerStatus = kept(
  (container: SimContainer): pb.ContainerStatus => {
    const { metadata, labels, annotations, image, mounts, stopSignal } = container.config;
    const { id, createdAt, startedAt, finishedAt, exitCode, reason, logPath } = container;
    return create(pb.ContainerStatusSchema, {
      id,
      createdAt,
      startedAt,
      finishedAt,
      exitCode,
      reason,
      logPath,
      mounts,
      imageRef: image?.image ?? "",
      state: states[container.state],
      labels,
      annotations,
      ...(metadata && { metadata }),
      ...(image && { image }),
      stopSignal,
      ...(container.reportedResources && { resources: { linux: container.reportedResources } }),
    });
  },
  ({ state, resources }, { state: now, reportedResources }) =>
    state === states[now] && resources?.linux === reportedResources,
);

/** ContainerStatus of a runtime with those ways. */
export function containerStatusAnswer(
  container: SimContainer,
  { hidesStopSignal, neverBegan }: RuntimeWays,
  verbose: boolean,
): pb.ContainerStatusResponse {
  const { startedAt, ...rest } = containerStatus(container);
  const wasKilled = container.state === "exited" && container.reason !== "StartError";
  const status = { ...rest, startedAt: wasKilled && startedAt === 0n ? neverBegan : startedAt };
  if (!hidesStopSignal) return create(pb.ContainerStatusResponseSchema, { status });
  const { stopSignal } = status;
  const signal = stopSignal === pb.Signal.RUNTIME_DEFAULT ? {} : { [stopSignalAnnotation]: pb.Signal[stopSignal] };
  const info = { sandboxID: container.sandboxId, pid: 1, runtimeSpec: { annotations: signal }, privileged: false };
  return create(pb.ContainerStatusResponseSchema, {
    status: { ...status, stopSignal: pb.Signal.RUNTIME_DEFAULT },
    ...(verbose && { info: { info: JSON.stringify(info) } }),
  });
}

function eventType(type: WorldChange["type"]): pb.ContainerEventType {
  switch (type) {
    case "created":
      return pb.ContainerEventType.CONTAINER_CREATED_EVENT;
    case "exited":
    case "sandboxStopped":
      return pb.ContainerEventType.CONTAINER_STOPPED_EVENT;
    case "removed":
    case "sandboxRemoved":
      return pb.ContainerEventType.CONTAINER_DELETED_EVENT;
    default:
      return pb.ContainerEventType.CONTAINER_STARTED_EVENT;
  }
}

export function eventOf(change: WorldChange): pb.ContainerEventResponse {
  return create(pb.ContainerEventResponseSchema, {
    containerId: change.container?.id ?? change.sandbox?.id ?? "",
    containerEventType: eventType(change.type),
    ...(change.sandbox && { podSandboxStatus: sandboxStatus(change.sandbox) }),
  });
}
