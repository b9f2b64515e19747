import type { Pod } from "../../src/api/pod.ts";
import type { ContainerStateTerminated, ContainerStatus, PodStatus } from "../../src/api/status.ts";
import { containerId, podUid, sandboxId } from "../../src/base/ids.ts";
import type {
  ContainerStatus as RuntimeContainerStatus,
  PodStatus as RuntimePodStatus,
  SandboxStatus,
} from "../../src/runtime/status/pod-status.ts";
import type { StatusInputs } from "../../src/status/inputs.ts";

/** A container instance of a runtime; defaults are those of a running container. */
export function runtimeContainer(
  name: string,
  changed: Partial<Omit<RuntimeContainerStatus, "id">> & { readonly id?: string } = {},
): RuntimeContainerStatus {
  const { id = `${name}-0`, ...rest } = changed;
  return {
    id: containerId(id),
    name,
    sandboxId: sandboxId("sandbox"),
    state: "running",
    createdAt: 1n,
    startedAt: 1_000_000_000n,
    finishedAt: 0n,
    exitCode: 0,
    reason: "",
    message: "",
    image: "image",
    imageId: "sha256:image",
    hash: "",
    restartCount: 0,
    logPath: "",
    terminationGracePeriodSeconds: undefined,
    terminationMessagePath: "",
    terminationMessageHostPath: "",
    terminationMessagePolicy: "",
    user: undefined,
    stopSignal: undefined,
    ...rest,
  };
}

export function readySandbox(changed: Partial<SandboxStatus> = {}): SandboxStatus {
  const defaults = { id: sandboxId("sandbox"), attempt: 0, ready: true, createdAt: 1n, hostNetwork: false };
  return { ...defaults, ips: ["10.0.0.1"], ...changed };
}

export function runtimeStatus(
  pod: Pod,
  containers: readonly RuntimeContainerStatus[],
  sandboxes: readonly SandboxStatus[] = [readySandbox()],
): RuntimePodStatus {
  const { name, namespace, uid } = pod.metadata;
  return { uid: podUid(uid), name, namespace, sandboxes, containers };
}

/** Inputs for a pod with only its runtime state known. */
export function statusInputs(pod: Pod, changed: Partial<StatusInputs> = {}): StatusInputs {
  return {
    pod,
    podStatus: runtimeStatus(pod, []),
    waiting: new Map(),
    tried: new Set(),
    restarting: new Set(),
    previous: undefined,
    now: 0,
    hostIPs: [],
    runtimeName: "containerd",
    podIsTerminal: false,
    terminationMessages: new Map(),
    probes: new Map(),
    recursiveReadOnlyMounts: false,
    ...changed,
  };
}

const nanoseconds = (time: string | null): bigint => (time === null ? 0n : BigInt(Date.parse(time)) * 1_000_000n);

/** The runtime state, probe results and start failures behind a recorded status, as far as it shows. */
export function inputsBehind(pod: Pod, recorded: PodStatus, previous: PodStatus | undefined): StatusInputs {
  const statuses = [...(recorded.initContainerStatuses ?? []), ...(recorded.containerStatuses ?? [])];
  const ready = recorded.conditions?.find(({ type }) => type === "PodReadyToStartContainers")?.status === "True";
  const hostNetwork = pod.spec.hostNetwork === true;
  const ips = hostNetwork ? [] : [recorded.podIP ?? "10.244.0.1"];
  const instances = statuses.flatMap((status) => instancesOf(status));
  const times = (recorded.conditions ?? []).map(({ lastTransitionTime }) => Date.parse(lastTransitionTime ?? ""));
  return statusInputs(pod, {
    podStatus: runtimeStatus(
      pod,
      instances.map(({ container }) => container),
      ready ? [readySandbox({ hostNetwork, ips })] : [],
    ),
    waiting: new Map(
      statuses.flatMap(({ name, state: { waiting } }) =>
        waiting?.reason === undefined ? [] : [[name, { reason: waiting.reason, message: waiting.message ?? "" }]],
      ),
    ),
    previous,
    now: Math.max(...times),
    hostIPs: (recorded.hostIPs ?? []).map(({ ip }) => ip),
    terminationMessages: new Map(instances.map(({ container, message }) => [container.id, message])),
    probes: new Map(
      statuses
        .filter(({ state }) => state.running)
        .map(({ name, ready: isReady, started = false }) => [name, { ready: isReady, started }]),
    ),
  });
}

/** Newest first: the current instance, if any, and the previous one. */
function instancesOf(status: ContainerStatus): { container: RuntimeContainerStatus; message: string }[] {
  const { state, lastState } = status;
  const ends = [state.terminated, lastState.terminated].filter((end) => end !== undefined);
  const running = state.running === undefined ? [] : [runningInstance(status, state.running.startedAt)];
  return [
    ...running.map((container) => ({ container, message: "" })),
    ...ends.map((end, index) => ({ container: endedInstance(status, end, index), message: end.message ?? "" })),
  ];
}

function common({ restartCount, image, imageID, user }: ContainerStatus, id: string) {
  const linux = user?.linux;
  return {
    id: id.replace("containerd://", ""),
    restartCount,
    image,
    imageId: imageID,
    user:
      linux === undefined
        ? undefined
        : {
            uid: BigInt(linux.uid),
            gid: BigInt(linux.gid),
            supplementalGroups: (linux.supplementalGroups ?? []).map(BigInt),
          },
  };
}

function runningInstance(status: ContainerStatus, startedAt: string | null): RuntimeContainerStatus {
  return runtimeContainer(status.name, {
    ...common(status, status.containerID ?? ""),
    startedAt: nanoseconds(startedAt),
  });
}

function endedInstance(status: ContainerStatus, end: ContainerStateTerminated, index: number): RuntimeContainerStatus {
  return runtimeContainer(status.name, {
    ...common(status, end.containerID ?? ""),
    state: "exited",
    createdAt: BigInt(-index),
    startedAt: nanoseconds(end.startedAt),
    finishedAt: nanoseconds(end.finishedAt),
    exitCode: end.exitCode,
    reason: end.reason ?? "",
  });
}
