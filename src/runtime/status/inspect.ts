import { onAbort } from "../../base/abort.ts";
import { type ContainerId, containerId, type PodUid, podUid, type SandboxId, sandboxId } from "../../base/ids.ts";
import { isCriError, type Cri } from "../../ports/cri.ts";
import {
  ContainerState as CriContainerState,
  type ContainerStatus as CriContainerStatus,
  type Mount,
  type LinuxContainerResources,
  NamespaceMode,
  PodSandboxState,
  type PodSandboxStatus as CriSandboxStatus,
} from "../../ports/gen/runtime/v1/api_pb.js";
import { quotaToMilliCpu, sharesToMilliCpu } from "../../resources/cpu.ts";
import { Annotation, Label } from "../config/labels.ts";
import { userIdsOf } from "../config/namespaces.ts";
import type { ContainerResources, ContainerState, ContainerStatus, PodStatus, SandboxStatus } from "./pod-status.ts";
import { signalName } from "../config/stop-signal.ts";

/** A pod as in listings: enough to detect a change. */
export interface ListedPod {
  readonly uid: PodUid;
  readonly name: string;
  readonly namespace: string;
  readonly sandboxes: ReadonlyMap<SandboxId, { readonly ready: boolean }>;
  readonly containers: ReadonlyMap<ContainerId, { readonly name: string; readonly state: ContainerState }>;
}

interface MutableListedPod extends ListedPod {
  readonly sandboxes: Map<SandboxId, { readonly ready: boolean }>;
  readonly containers: Map<ContainerId, { readonly name: string; readonly state: ContainerState }>;
}

/** Every pod of the runtime, in two calls. Sandboxes and containers without a kubelet's labels are not pods. */
export async function listPods(cri: Cri, signal: AbortSignal): Promise<Map<PodUid, ListedPod>> {
  const [sandboxes, containers] = await Promise.all([
    cri.runtime.listPodSandbox({}, { signal }),
    cri.runtime.listContainers({}, { signal }),
  ]);
  const pods = new Map<PodUid, MutableListedPod>();
  const podOf = (labels: Readonly<Record<string, string>>): MutableListedPod | undefined => {
    const uid = labels[Label.podUid];
    if (uid === undefined || uid === "") return undefined;
    const known = pods.get(podUid(uid));
    if (known !== undefined) return known;
    const pod: MutableListedPod = {
      uid: podUid(uid),
      name: labels[Label.podName] ?? "",
      namespace: labels[Label.podNamespace] ?? "",
      sandboxes: new Map(),
      containers: new Map(),
    };
    pods.set(pod.uid, pod);
    return pod;
  };
  for (const sandbox of sandboxes.items) {
    const ready = sandbox.state === PodSandboxState.SANDBOX_READY;
    podOf(sandbox.labels)?.sandboxes.set(sandboxId(sandbox.id), { ready });
  }
  for (const container of containers.containers) {
    const name = container.labels[Label.containerName] ?? container.metadata?.name ?? "";
    podOf(container.labels)?.containers.set(containerId(container.id), {
      name,
      state: containerState(container.state),
    });
  }
  return pods;
}

/** Likely runtime IDs of a pod. */
export interface LikelyIds {
  readonly sandboxes: ReadonlySet<string>;
  readonly containers: ReadonlySet<string>;
}

/** One for all: the exception of an abort without a reason takes longer than the rest of it. */
const over = new Error("the inspection is over");

export const noIds: LikelyIds = { sandboxes: new Set(), containers: new Set() };

/**
 * Inspects one pod: its sandboxes and containers, newest first. Whatever disappears meanwhile is left out. A pod that
 * the runtime does not have yields an empty status.
 * @param likely is queried in parallel with the listings, which alone decide what belongs to the pod: with the right
 * IDs an inspection takes one round trip instead of two
 * @throws CriError
 */
export async function inspectPod(cri: Cri, uid: PodUid, likely: LikelyIds, signal: AbortSignal): Promise<PodStatus> {
  const look = new AbortController();
  using _end = onAbort(signal, () => look.abort(signal.reason));
  try {
    return await inspect(cri, uid, likely, look.signal);
  } finally {
    // Queries for IDs that no listing has are not awaited.
    look.abort(over);
  }
}

async function inspect(cri: Cri, uid: PodUid, likely: LikelyIds, signal: AbortSignal): Promise<PodStatus> {
  const labelSelector = { [Label.podUid]: uid };
  const sandboxOf = lookup(likely.sandboxes, (id) => present(inspectSandbox(cri, id, signal)));
  const containerOf = lookup(likely.containers, (id) =>
    present(cri.runtime.containerStatus({ containerId: id }, { signal })),
  );
  const [sandboxList, containerList] = await Promise.all([
    cri.runtime.listPodSandbox({ filter: { labelSelector } }, { signal }),
    cri.runtime.listContainers({ filter: { labelSelector } }, { signal }),
  ]);
  const [sandboxes, containers] = await Promise.all([
    Promise.all(sandboxList.items.map(({ id }) => sandboxOf(id))),
    Promise.all(
      containerList.containers.map(async ({ id, podSandboxId }) => {
        const status = await containerOf(id);
        return status && containerStatus(id, podSandboxId, status.status);
      }),
    ),
  ]);
  const labels = sandboxList.items[0]?.labels ?? containerList.containers[0]?.labels ?? {};
  return {
    uid,
    name: labels[Label.podName] ?? "",
    namespace: labels[Label.podNamespace] ?? "",
    sandboxes: sandboxes.filter((sandbox) => sandbox !== undefined).sort(newestSandboxFirst),
    containers: containers.filter((container) => container !== undefined).sort(newestContainerFirst),
  };
}

/** One sandbox's status. @throws CriError */
export async function inspectSandbox(cri: Cri, id: string, signal: AbortSignal): Promise<SandboxStatus> {
  const { status } = await cri.runtime.podSandboxStatus({ podSandboxId: id }, { signal });
  return sandboxStatus(id, status);
}

/** Queries these IDs immediately, and others on demand. Unused results may fail. */
function lookup<T>(ids: Iterable<string>, look: (id: string) => Promise<T>): (id: string) => Promise<T> {
  const early = new Map<string, Promise<T>>();
  for (const id of ids) {
    const found = look(id);
    found.catch(() => {});
    early.set(id, found);
  }
  return (id) => early.get(id) ?? look(id);
}

/** Undefined when gone: between a listing and its inspection anything may be removed. */
async function present<T>(look: Promise<T>): Promise<T | undefined> {
  try {
    return await look;
  } catch (error) {
    if (isCriError(error, "NotFound")) return undefined;
    throw error;
  }
}

function sandboxStatus(id: string, status: CriSandboxStatus | undefined): SandboxStatus {
  const network = status?.network;
  const ips = [network?.ip ?? "", ...(network?.additionalIps ?? []).map((additional) => additional.ip)];
  const options = status?.linux?.namespaces?.options;
  const source = status?.annotations[Annotation.configSource];
  return {
    id: sandboxId(id),
    attempt: status?.metadata?.attempt ?? 0,
    ready: status?.state === PodSandboxState.SANDBOX_READY,
    createdAt: status?.createdAt ?? 0n,
    hostNetwork: options?.network === NamespaceMode.NODE,
    ips: ips.filter((ip) => ip !== ""),
    userIds: userIdsOf(options),
    ...(source !== undefined && { source }),
  };
}

function containerStatus(id: string, sandbox: string, status: CriContainerStatus | undefined): ContainerStatus {
  const annotations = status?.annotations ?? {};
  const grace = Number.parseInt(annotations[Annotation.terminationGracePeriod] ?? "", 10);
  const attempt = Number.parseInt(annotations[Annotation.restartCount] ?? "", 10);
  const user = status?.user?.linux;
  const messagePath = annotations[Annotation.terminationMessagePath] ?? "";
  // CRI-O dates the start of a container killed before it ran to the year 1754.
  const began = status?.startedAt ?? 0n;
  return {
    id: containerId(id),
    name: status?.labels[Label.containerName] ?? status?.metadata?.name ?? "",
    sandboxId: sandbox === "" ? undefined : sandboxId(sandbox),
    state: began < 0n ? "created" : containerState(status?.state),
    createdAt: status?.createdAt ?? 0n,
    startedAt: began > 0n ? began : 0n,
    finishedAt: status?.finishedAt ?? 0n,
    exitCode: status?.exitCode ?? 0,
    reason: status?.reason ?? "",
    message: status?.message ?? "",
    image: status?.image?.image ?? "",
    imageId: status?.imageRef ?? "",
    hash: annotations[Annotation.hash] ?? "",
    restartCount: Number.isNaN(attempt) ? (status?.metadata?.attempt ?? 0) : attempt,
    logPath: status?.logPath ?? "",
    terminationGracePeriodSeconds: Number.isNaN(grace) ? undefined : grace,
    terminationMessagePath: messagePath,
    terminationMessageHostPath: mountedAt(status?.mounts ?? [], messagePath),
    terminationMessagePolicy: annotations[Annotation.terminationMessagePolicy] ?? "",
    user:
      user === undefined ? undefined : { uid: user.uid, gid: user.gid, supplementalGroups: user.supplementalGroups },
    stopSignal: signalName(status?.stopSignal),
    resources: containerResources(status?.resources?.linux),
  };
}

/** Zero: unlimited, or not reported. */
export function containerResources(linux: LinuxContainerResources | undefined): ContainerResources | undefined {
  if (linux === undefined) return undefined;
  const positive = (amount: bigint): bigint | undefined => (amount > 0n ? amount : undefined);
  return {
    cpuRequest: positive(sharesToMilliCpu(linux.cpuShares)),
    cpuLimit: positive(quotaToMilliCpu(linux.cpuQuota, linux.cpuPeriod)),
    memoryLimit: positive(linux.memoryLimitInBytes),
  };
}

/** The host path that a container sees at a path. Of two mounts at one path the later covers the earlier. */
function mountedAt(mounts: readonly Mount[], path: string): string {
  if (path === "") return "";
  const containerPath = path.startsWith("/") ? path : `/${path}`;
  return mounts.findLast((mount) => mount.containerPath === containerPath)?.hostPath ?? "";
}

function containerState(state: CriContainerState | undefined): ContainerState {
  switch (state) {
    case CriContainerState.CONTAINER_CREATED:
      return "created";
    case CriContainerState.CONTAINER_RUNNING:
      return "running";
    case CriContainerState.CONTAINER_EXITED:
      return "exited";
    default:
      return "unknown";
  }
}

function newestSandboxFirst(a: SandboxStatus, b: SandboxStatus): number {
  return b.attempt - a.attempt || Number(b.createdAt - a.createdAt);
}

/** By restart count, then by time: a clock that jumped back must not make an old instance the newest. */
function newestContainerFirst(a: ContainerStatus, b: ContainerStatus): number {
  return b.restartCount - a.restartCount || Number(b.createdAt - a.createdAt);
}
