import { allContainers, containersOf } from "../api/all-containers.ts";
import type { Container, ContainerPort } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import type { PodStatus } from "../api/status.ts";
import { type ContainerId, containerId } from "../base/ids.ts";
import { printable } from "../journal/text.ts";
import { describeProbe } from "../prober/probe-action.ts";
import type { ProbeFinding, ProbeSighting } from "../prober/probe-results.ts";
import { probeOf, probeTimes, probeTypes, type ProbeType } from "../prober/probe-spec.ts";
import { qosClass } from "../resources/qos.ts";
import type { ContainerView, PodView } from "../server/local-api.ts";
import { lastingContainers, podMood, podStatusWord } from "../server/pod-words.ts";
import type { ConditionView, ContainerDetail, PodDetail, ProbeView } from "./view.ts";

/** What probes have found, by instance of a container. */
export interface ProbeReports {
  get(id: ContainerId, type: ProbeType): ProbeFinding | undefined;
  last(id: ContainerId, type: ProbeType): ProbeSighting | undefined;
}

/** A pod as the node knows it. */
export interface PagePod {
  readonly view: PodView;
  readonly pod: Pod;
  /** Undefined before the first observation of the pod. */
  readonly status: PodStatus | undefined;
  /** Journal entries about it so far, counted from any moment on. */
  readonly entries: number;
}

/** Longer texts of a pod's own are cut: they are a termination message or an error, and the timeline has them whole. */
const longestText = 600;

/**
 * What the page shows of a pod, field by field: what is not named here does not get out. Every text that a pod or its
 * manifest chose is made printable, so that it can't reorder what stands beside it.
 */
export function podDetail({ view, pod, status, entries }: PagePod, probes: ProbeReports): PodDetail {
  const { spec } = pod;
  const lasting = lastingContainers(view);
  const counted = containersOf(view);
  const priority = spec.priorityClassName ?? (spec.priority === undefined ? undefined : String(spec.priority));
  const serviceAccount = spec.serviceAccountName;
  return {
    uid: view.uid,
    namespace: text(view.namespace),
    name: text(view.name),
    source: text(view.source),
    word: text(podStatusWord(view)),
    mood: podMood(view),
    phase: view.phase,
    reason: text(view.reason),
    message: text(view.message),
    readyContainers: lasting.filter(({ ready }) => ready).length,
    lastingContainers: lasting.length,
    restarts: counted.reduce((sum, { restartCount }) => sum + restartCount, 0),
    createdAt: view.createdAt,
    ips: view.ips.map(text),
    hostNetwork: view.hostNetwork,
    qos: status?.qosClass ?? qosClass(pod),
    ...(priority !== undefined && { priority: text(priority) }),
    ...(serviceAccount !== undefined && { serviceAccount: text(serviceAccount) }),
    ...(view.resize !== undefined && { resize: text(`${view.resize.state}: ${view.resize.message}`) }),
    ...(view.killAt !== undefined && { killAt: view.killAt }),
    conditions: conditions(status),
    containers: containers(view, pod, probes),
    entries,
  };
}

function text(value: string): string {
  const clean = printable(value);
  return clean.length <= longestText ? clean : `${clean.slice(0, longestText)}…`;
}

function conditions(status: PodStatus | undefined): ConditionView[] {
  return (status?.conditions ?? []).map(({ type, status: value, reason = "", message = "", lastTransitionTime }) => {
    const since = Date.parse(lastTransitionTime ?? "");
    return {
      type: text(type),
      status: text(value),
      reason: text(reason),
      message: text(message),
      ...(!Number.isNaN(since) && { since }),
    };
  });
}

function containers(view: PodView, { spec }: Pod, probes: ProbeReports): ContainerDetail[] {
  const specs: readonly Container[] = allContainers(spec);
  const detail = (own: ContainerView, kind: ContainerDetail["kind"]): ContainerDetail => {
    const { id, name, image, state, reason, message, ready, restartCount, startedAt, finishedAt, exitCode } = own;
    const container = specs.find((candidate) => candidate.name === name);
    return {
      name: text(name),
      kind,
      image: text(image),
      state,
      reason: text(reason),
      message: text(message),
      ready,
      restarts: restartCount,
      ...(startedAt !== undefined && { startedAt }),
      ...(finishedAt !== undefined && { finishedAt }),
      ...(exitCode !== undefined && { exitCode }),
      ports: (container?.ports ?? []).map(portText),
      resources: container === undefined ? [] : resourceTexts(container),
      probes: container === undefined ? [] : probeViews(container, id, probes),
    };
  };
  return [
    ...view.initContainers.map((own) => detail(own, own.sidecar ? "sidecar" : "init")),
    ...view.containers.map((own) => detail(own, "container")),
    ...view.ephemeralContainers.map((own) => detail(own, "ephemeral")),
  ];
}

function portText({ name, containerPort, hostPort = 0, protocol = "TCP" }: ContainerPort): string {
  const place = hostPort > 0 ? `${hostPort}→${containerPort}` : String(containerPort);
  return text(`${place}/${protocol}${name === undefined ? "" : ` ${name}`}`);
}

/** Requests and limits by resource, in one line each. */
function resourceTexts({ resources = {} }: Container): string[] {
  const { requests = {}, limits = {} } = resources;
  const names = [...new Set([...Object.keys(requests), ...Object.keys(limits)])].toSorted();
  return names.map((name) => {
    const [request, limit] = [requests[name], limits[name]];
    if (limit === undefined) return text(`${name} ${request}`);
    return text(request === undefined || request === limit ? `${name} ≤ ${limit}` : `${name} ${request} ≤ ${limit}`);
  });
}

function probeViews(container: Container, ownId: string, probes: ProbeReports): ProbeView[] {
  const id = containerId(ownId);
  return probeTypes.flatMap((type) => {
    const probe = probeOf(container, type);
    if (probe === undefined) return [];
    const last = probes.last(id, type);
    return [
      {
        type,
        what: text(describeProbe(probe)),
        periodSeconds: probeTimes(probe).periodMs / 1000,
        result: probes.get(id, type)?.result ?? "unknown",
        ...(last !== undefined && { last: { ...last, text: text(last.text) } }),
      },
    ];
  });
}
