import { create } from "@bufbuild/protobuf";
import * as pb from "../ports/gen/runtime/v1/api_pb.js";
import type { SimContainer, SimSandbox, WorldChange } from "./world-model.ts";

type Labels = Readonly<Record<string, string>>;

export function labelsMatch(labels: Labels | undefined, selector: Labels | undefined): boolean {
  return Object.entries(selector ?? {}).every(([key, value]) => labels?.[key] === value);
}

function sandboxState(sandbox: SimSandbox): pb.PodSandboxState {
  return sandbox.ready ? pb.PodSandboxState.SANDBOX_READY : pb.PodSandboxState.SANDBOX_NOTREADY;
}

export function sandboxItem(sandbox: SimSandbox): pb.PodSandbox {
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

export function sandboxStatus(sandbox: SimSandbox): pb.PodSandboxStatus {
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
}

const states = {
  created: pb.ContainerState.CONTAINER_CREATED,
  running: pb.ContainerState.CONTAINER_RUNNING,
  exited: pb.ContainerState.CONTAINER_EXITED,
  unknown: pb.ContainerState.CONTAINER_UNKNOWN,
} as const;

export function containerItem(container: SimContainer): pb.Container {
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

export function containerStatus(container: SimContainer): pb.ContainerStatus {
  const { metadata, labels, annotations, image, mounts } = container.config;
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
    ...(container.resources && { resources: { linux: container.resources } }),
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
