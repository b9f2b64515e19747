import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import type { JournalInput } from "../journal/entry.ts";
import { podStartBounds } from "./buckets.ts";
import type { Registry } from "./registry.ts";

interface Start {
  /** Wall clock ms. */
  readonly seenMs: number;
  /** Pulls in progress, and the start of the first one. */
  pulls: number;
  pullingSinceMs: number;
  pullingMs: number;
  initMs: number;
}

/** Beyond this many, pods that never started are forgotten, the oldest first. */
const maxStarting = 10_000;

/** Start-up durations of pods, from the journal. */
export class PodStartMetrics {
  readonly #deps: { readonly pod: (uid: PodUid) => Pod | undefined; readonly now: () => number };
  readonly #starting = new Map<PodUid, Start>();
  readonly #own;
  readonly #sli;
  readonly #total;
  readonly #first;
  #firstSeen = false;

  constructor(
    registry: Registry,
    deps: { readonly pod: (uid: PodUid) => Pod | undefined; readonly now: () => number },
  ) {
    this.#deps = deps;
    this.#own = registry.histogram(
      "kubelet_pod_start_duration_seconds",
      "Time from the first sight of a pod until it runs",
      [],
      podStartBounds,
    );
    this.#sli = registry.histogram(
      "kubelet_pod_start_sli_duration_seconds",
      "Time from a pod's creation until it runs, without image pulls, init containers and stateful pods",
      [],
      podStartBounds,
    );
    this.#total = registry.histogram(
      "kubelet_pod_start_total_duration_seconds",
      "Time from a pod's creation until it runs",
      [],
      podStartBounds,
    );
    this.#first = registry.gauge(
      "kubelet_first_network_pod_start_sli_duration_seconds",
      "kubelet_pod_start_sli_duration_seconds of the first pod with its own network",
      [],
    );
  }

  recorded(entry: JournalInput): void {
    const { pod, what, kind } = entry;
    if (pod === undefined) return;
    if (what === "PodAdded" && kind === "input") this.#begin(pod.uid);
    const start = this.#starting.get(pod.uid);
    if (start === undefined) return;
    if (what === "PullImage") this.#pull(start, kind);
    else if (what === "ContainerDied") this.#initEnded(start, entry);
    else if (what === "PodPhaseChanged") this.#phase(pod.uid, start, entry.data?.["to"]);
    else if (what === "PodRemoved" || what === "PodTerminating") this.#starting.delete(pod.uid);
  }

  #begin(uid: PodUid): void {
    const oldest = this.#starting.keys().next();
    if (this.#starting.size >= maxStarting && !oldest.done) this.#starting.delete(oldest.value);
    const seenMs = this.#deps.now();
    this.#starting.set(uid, { seenMs, pulls: 0, pullingSinceMs: 0, pullingMs: 0, initMs: 0 });
  }

  /** Pulls of a pod that overlap count once. */
  #pull(start: Start, kind: JournalInput["kind"]): void {
    const nowMs = this.#deps.now();
    if (kind === "action") {
      if (start.pulls === 0) start.pullingSinceMs = nowMs;
      start.pulls++;
    } else if (kind === "outcome" && start.pulls > 0) {
      start.pulls--;
      if (start.pulls === 0) start.pullingMs += nowMs - start.pullingSinceMs;
    }
  }

  #initEnded(start: Start, { pod, container, data }: JournalInput): void {
    const spec = pod && this.#deps.pod(pod.uid)?.spec;
    const isInit = spec?.initContainers?.some(({ name }) => name === container);
    if (isInit === true && typeof data?.["ranMs"] === "number") start.initMs += data["ranMs"];
  }

  #phase(uid: PodUid, start: Start, to: unknown): void {
    if (to !== "Running" && to !== "Succeeded" && to !== "Failed") return;
    this.#starting.delete(uid);
    const pod = this.#deps.pod(uid);
    if (to !== "Running" || pod === undefined) return;
    const nowMs = this.#deps.now();
    this.#own.observe([], (nowMs - start.seenMs) / 1000);
    const createdMs = Date.parse(pod.metadata.creationTimestamp ?? "");
    // A static pod's creation is when the node first saw it.
    const totalMs = Math.max(0, nowMs - (Number.isNaN(createdMs) ? start.seenMs : createdMs));
    this.#total.observe([], totalMs / 1000);
    if (isStateful(pod)) return;
    const sliSeconds = Math.max(0, totalMs - start.pullingMs - start.initMs) / 1000;
    this.#sli.observe([], sliSeconds);
    if (pod.spec.hostNetwork === true || this.#firstSeen) return;
    this.#firstSeen = true;
    this.#first.set([], sliSeconds);
  }
}

const stateless = new Set(["emptyDir", "configMap", "secret", "downwardAPI", "projected"]);

/** With a volume whose content is not the API server's or the node's own. */
function isStateful({ spec }: Pod): boolean {
  return (spec.volumes ?? []).some((volume) => {
    return Object.keys(volume).some((name) => name !== "name" && !stateless.has(name));
  });
}
