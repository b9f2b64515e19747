import type { PodUid } from "../base/ids.ts";
import type { Container, ContainerPort } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import { isDeleted } from "../api/pod-kind.ts";
import type { ContainerState, ContainerStatus, PodStatus } from "../api/status.ts";
import type { KnownPod } from "../kubelet/known-pods.ts";
import { isByNode } from "../pods/ending.ts";
import type { ResizeView } from "../pods/pod-resize.ts";
import type { WorkerState } from "../pods/worker-state.ts";
import type { PodRef } from "../journal/entry.ts";
import { Annotation } from "../runtime/config/labels.ts";
import { containerLogPath, podLogDirectory } from "../runtime/layout/log-paths.ts";
import type { PodStatus as RuntimePodStatus } from "../runtime/status/pod-status.ts";
import type { Contest } from "../sources/mux.ts";
import { defaultContainerAnnotation } from "../server/default-container.ts";
import { claimReference } from "../volumes/claims.ts";
import type { ContainerView, PodView, ResizeState } from "../server/local-api.ts";

export interface PodViewContext {
  readonly nodeName: string;
  readonly podLogsRoot: string;
  /** Wall clock minus monotonic clock at present, ms. */
  readonly wallOffsetMs: number;
  /** The running pods that the pod serves as a CSI driver. */
  readonly served: (pod: Pod) => readonly PodRef[];
  /** The volumes that a pod waits for which has stopped. */
  readonly holdout: (uid: PodUid) => Pick<PodView, "holdout" | "awayDrivers"> | undefined;
  /** Manifests of the same name that are ignored, by the pod's UID. */
  readonly ignored: ReadonlyMap<string, readonly Contest[]>;
}

/** The row of `podwright ps` of a pod; undefined for one that only the runtime knows. Pure. */
export function podView({ view, status }: KnownPod, context: PodViewContext): PodView | undefined {
  const { pod, state } = view;
  if (pod === undefined || state.kind === "finished") return undefined;
  const { namespace, name, uid, annotations, finalizers = [] } = pod.metadata;
  const ready = status?.conditions?.find(({ type, status: value }) => type === "Ready" && value === "True");
  const logDirectory = podLogDirectory(context.podLogsRoot, pod.metadata);
  const served = context.served(pod);
  const logs = { directory: logDirectory, observed: view.status.containers };
  return {
    namespace,
    name,
    uid,
    source: annotations?.[Annotation.configSource] ?? "api",
    state: state.kind,
    phase: status?.phase ?? "Pending",
    ...wordsOf(state, status),
    ready: ready !== undefined,
    readySince: millis(ready?.lastTransitionTime),
    ips: status?.podIPs?.map(({ ip }) => ip) ?? [],
    hostNetwork: pod.spec.hostNetwork === true,
    hostPorts: hostPorts(pod),
    node: context.nodeName,
    createdAt:
      view.startedAt ??
      Math.min(firstSandboxMs(view.status), millis(annotations?.[Annotation.configSeen]) ?? Number.POSITIVE_INFINITY),
    containers: pod.spec.containers.map((container) => {
      return containerView(container, logs, named(status?.containerStatuses, container.name));
    }),
    initContainers: (pod.spec.initContainers ?? []).map((container) => {
      const own = named(status?.initContainerStatuses, container.name);
      const sidecar = container.restartPolicy === "Always";
      const done = sidecar ? own?.started === true : own?.state.terminated?.exitCode === 0;
      return { ...containerView(container, logs, own), sidecar, done };
    }),
    ephemeralContainers: (pod.spec.ephemeralContainers ?? []).map((container) => {
      return containerView(container, logs, named(status?.ephemeralContainerStatuses, container.name));
    }),
    defaultContainer: annotations?.[defaultContainerAnnotation],
    finalizers: isDeleted(pod) ? finalizers : undefined,
    logDirectory,
    claims: claimsOf(pod),
    ...(state.kind === "terminated" && !state.released && context.holdout(uid)),
    serves: served.length > 0 ? served : undefined,
    ignoredManifests: (context.ignored.get(uid) ?? []).map((contest) => contest.ignored),
    resize: resizeState(view.resize),
    killAt: state.kind === "terminating" ? Math.round(state.killAtMs + context.wallOffsetMs) : undefined,
  };
}

function claimsOf(pod: Pod): Readonly<Record<string, string>> | undefined {
  const claims = (pod.spec.volumes ?? []).flatMap((volume) => {
    const reference = claimReference(pod, volume);
    return reference === undefined ? [] : [[volume.name, reference.claimName] as const];
  });
  return claims.length === 0 ? undefined : Object.fromEntries(claims);
}

/** The status of a pod that has succeeded although the node ended it does not say why it has ended. */
function wordsOf(state: WorkerState, status: PodStatus | undefined): Pick<PodView, "reason" | "message"> {
  const ending = "ending" in state ? state.ending : undefined;
  if (status?.phase === "Succeeded" && ending !== undefined && isByNode(ending)) {
    return { reason: ending.cause.code, message: ending.cause.message };
  }
  return { reason: status?.reason ?? "", message: status?.message ?? "" };
}

function resizeState(resize: ResizeView | undefined): ResizeState | undefined {
  const { pending, inProgress } = resize ?? {};
  if (pending !== undefined) return { state: pending.reason, message: pending.message };
  if (inProgress === undefined) return undefined;
  const { error } = inProgress;
  return { state: error === undefined ? "InProgress" : "Error", message: error ?? "" };
}

/** The start time of a pod from an earlier run that its worker has not observed yet: that of its first sandbox. */
function firstSandboxMs({ sandboxes }: RuntimePodStatus): number {
  const oldest = sandboxes.at(-1);
  return oldest === undefined ? Number.POSITIVE_INFINITY : Number(oldest.createdAt / 1_000_000n);
}

function named(statuses: readonly ContainerStatus[] | undefined, name: string): ContainerStatus | undefined {
  return statuses?.find((container) => container.name === name);
}

interface LogPlaces {
  readonly directory: string;
  readonly observed: readonly { readonly id: string; readonly logPath: string }[];
}

function containerView(
  { name, image = "" }: Container,
  { directory, observed }: LogPlaces,
  status: ContainerStatus | undefined,
): ContainerView {
  const current = status?.state ?? {};
  const restartCount = status?.restartCount ?? 0;
  // A waiting container ran before when it has a last state: that instance's log is the newest there is.
  const times = current.terminated ?? current.running ?? status?.lastState.terminated;
  const previous = current.waiting === undefined && restartCount > 0 ? restartCount - 1 : undefined;
  const id = status?.containerID?.replace(/^.*:\/\//u, "") ?? "";
  // One that an earlier run started may log elsewhere.
  const logPath = observed.find((container) => container.id === id)?.logPath;
  return {
    name,
    id,
    image,
    state: stateName(current),
    reason: current.waiting?.reason ?? current.terminated?.reason ?? "",
    message: current.waiting?.message ?? current.terminated?.message ?? "",
    exitCode: (current.terminated ?? status?.lastState.terminated)?.exitCode,
    ready: status?.ready ?? false,
    restartCount,
    startedAt: millis(times?.startedAt),
    finishedAt: millis((current.terminated ?? status?.lastState.terminated)?.finishedAt),
    logPath: logPath || `${directory}/${containerLogPath(name, restartCount)}`,
    previousLogPath: previous === undefined ? undefined : `${directory}/${containerLogPath(name, previous)}`,
  };
}

function stateName(state: ContainerState): ContainerView["state"] {
  if (state.running !== undefined) return "running";
  return state.terminated === undefined ? "waiting" : "terminated";
}

function hostPorts(pod: Pod): PodView["hostPorts"] {
  return pod.spec.containers
    .flatMap((container): readonly ContainerPort[] => container.ports ?? [])
    .flatMap(({ hostIP = "", hostPort = 0, containerPort, protocol = "TCP" }) => {
      return hostPort > 0 ? [{ hostIP, hostPort, containerPort, protocol }] : [];
    });
}

function millis(time: string | null | undefined): number | undefined {
  const parsed = Date.parse(time ?? "");
  return Number.isNaN(parsed) ? undefined : parsed;
}
