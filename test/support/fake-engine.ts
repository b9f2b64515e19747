import { ExitCode, PodwrightError } from "../../src/base/errors.ts";
import { podUid } from "../../src/base/ids.ts";
import type { JournalEntry, JournalInput, PodRef } from "../../src/journal/entry.ts";
import type {
  AppliedPod,
  ClaimRemoval,
  ClaimView,
  FreeVolumeView,
  ApplyRequest,
  ContainerView,
  DebugContainer,
  DebugRequest,
  LocalApi,
  EvictionConfirmation,
  EvictionPreview,
  GarbageReport,
  Health,
  Plan,
  PodView,
} from "../../src/server/local-api.ts";
import { noSuchPod } from "../../src/server/pod-selector.ts";
import { containerView, podPlan, podView } from "./pod-views.ts";

/** The behaviour of the fake engine's pods. */
export interface FakeLife {
  /** A pod's state some time after it was applied. */
  readonly becomes: "ready" | "succeeded" | "failed" | "stuck";
  readonly afterMs: number;
  /** How long a pod takes to stop; it is killed at the end of its grace period. */
  readonly stopMs: number;
  readonly graceSeconds: number;
}

const defaultLife: FakeLife = { becomes: "ready", afterMs: 50, stopMs: 50, graceSeconds: 30 };

/** An engine without a runtime: pods behave as the test says, with the real engine's journal entries. */
export class FakeEngine implements LocalApi {
  life: FakeLife;
  readonly views = new Map<string, PodView>();
  readonly applied: ApplyRequest[] = [];
  readonly stops: { readonly uid: string; readonly graceSeconds: number | undefined }[] = [];
  readonly debugs: DebugRequest[] = [];
  readonly retries: string[] = [];
  claimViews: readonly ClaimView[] = [];
  volumeViews: readonly FreeVolumeView[] = [];
  readonly removals: string[] = [];
  garbage: GarbageReport = { items: [], failures: [] };
  readonly journal: JournalEntry[] = [];
  knowsAllPods = true;
  runtimeEndpoint = "unix:///fake.sock";
  /** When and how a pod shows an added debug container. */
  debugged: { readonly afterMs: number; readonly view: Partial<ContainerView> } = { afterMs: 0, view: {} };
  readonly #followers = new Set<() => void>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  #nextUid = 1;

  constructor(life: Partial<FakeLife> = {}) {
    this.life = { ...defaultLife, ...life };
  }

  health(): Health {
    return {
      healthy: true,
      version: "0.0.0",
      pid: process.pid,
      runtime: "fake 1.0",
      runtimeEndpoint: this.runtimeEndpoint,
      startedAt: 0,
      journalSeq: this.journal.length,
      knowsAllPods: this.knowsAllPods,
      checks: [{ name: "relist", ok: true, detail: "0.1 s ago" }],
    };
  }

  async apply(request: ApplyRequest): Promise<readonly AppliedPod[]> {
    this.applied.push(request);
    return request.pods.map((manifest) => {
      const { name = "", namespace = "default" } = manifest.metadata;
      const known = [...this.views.values()].find((view) => view.name === name && view.namespace === namespace);
      const isOver = known?.phase === "Succeeded" || known?.phase === "Failed";
      if (known !== undefined && !(isOver && request.runsAgain === true)) {
        return { namespace, name, uid: known.uid, change: "unchanged" };
      }
      if (known !== undefined) this.views.delete(known.uid);
      const ref: PodRef = { namespace, name, uid: podUid(`uid-${name}-${this.#nextUid++}`) };
      this.#begin(ref);
      return { ...ref, change: known === undefined ? "added" : "replaced" };
    });
  }

  claims(): readonly ClaimView[] {
    return this.claimViews;
  }

  freeVolumes(): readonly FreeVolumeView[] {
    return this.volumeViews;
  }

  async removeClaim(namespace: string, name: string): Promise<ClaimRemoval> {
    this.removals.push(`${namespace}/${name}`);
    return { namespace, name };
  }

  async plan(request: ApplyRequest | undefined): Promise<Plan> {
    const running = this.pods().map(({ namespace, name, uid }) => podPlan({ namespace, name, uid: podUid(uid) }));
    const start = { text: "start container app, attempt 0", because: ["container app has not been started yet"] };
    const added = (request?.pods ?? []).map(({ metadata: { namespace = "default", name = "" } }) => {
      return podPlan({ namespace, name, change: "added", steps: [start] });
    });
    return { pods: [...running, ...added], objects: [] };
  }

  /** Whether evictions were confirmed. */
  confirmed = false;
  /** Why no evictions can be previewed. */
  evictionProblem: PodwrightError | undefined;

  async evictionPreview(signal = "memory.available"): Promise<EvictionPreview> {
    if (this.evictionProblem !== undefined) throw this.evictionProblem;
    const pods = this.pods().map(({ namespace, name, uid }) => ({
      namespace,
      name,
      uid,
      place: "uses 1Mi",
      evictable: true,
    }));
    return { signal, standing: `${signal} is 1Gi of 2Gi`, pods };
  }

  async confirmEvictions(): Promise<EvictionConfirmation> {
    this.confirmed = true;
    return { waited: true };
  }

  pods(): readonly PodView[] {
    return [...this.views.values()];
  }

  pod(selector: string): PodView {
    const found = this.pods().find((view) =>
      [view.uid, view.name, `${view.namespace}/${view.name}`].includes(selector),
    );
    if (found === undefined) {
      throw new PodwrightError(ExitCode.badInput, `pod "${selector}" not found`, { remedy: "see podwright ps" });
    }
    return found;
  }

  async stop(selector: string, graceSeconds: number | undefined): Promise<PodView> {
    const view = this.pod(selector);
    this.stops.push({ uid: view.uid, graceSeconds });
    const graceMs = (graceSeconds ?? this.life.graceSeconds) * 1000;
    const stopping: PodView = { ...view, state: "terminating", ready: false, killAt: Date.now() + graceMs };
    this.views.set(view.uid, stopping);
    this.#after(view.uid, Math.min(this.life.stopMs, graceMs), () => this.views.delete(view.uid));
    return stopping;
  }

  retry(selector: string): PodView {
    const view = this.pod(selector);
    this.retries.push(view.uid);
    return view;
  }

  async previewGarbage(): Promise<GarbageReport> {
    return this.garbage;
  }

  async collectGarbage(): Promise<GarbageReport> {
    return { ...this.garbage, freedBytes: 1024 };
  }

  async debug(selector: string, request: DebugRequest): Promise<DebugContainer> {
    this.debugs.push(request);
    const { image } = request;
    const { namespace, name, uid, ephemeralContainers } = this.pod(selector);
    const container = `debugger-${ephemeralContainers.length}`;
    const added = containerView({ name: container, ...(image && { image }), ...this.debugged.view });
    this.#after(`${uid} ${container}`, this.debugged.afterMs, () => {
      this.change(uid, { ephemeralContainers: [...ephemeralContainers, added] });
    });
    return { pod: { namespace, name, uid: podUid(uid) }, container };
  }

  podRefs(selector: string): readonly PodRef[] {
    const known = [...this.pods(), ...this.journal.flatMap(({ pod }) => pod ?? [])];
    const refs = new Map(known.map(({ namespace, name, uid }) => [uid, { namespace, name, uid: podUid(uid) }]));
    const found = [...refs.values()].filter(({ namespace, name, uid }) => {
      return [uid, name, `${namespace}/${name}`].includes(selector);
    });
    if (found.length === 0) throw noSuchPod(selector, [...refs.values()]);
    return found;
  }

  entries(filter: { readonly uid?: string; readonly sinceSeq?: number }): readonly JournalEntry[] {
    return this.journal.filter((entry) => {
      return entry.seq >= (filter.sinceSeq ?? 0) && (filter.uid === undefined || entry.pod?.uid === filter.uid);
    });
  }

  async *follow(
    filter: { readonly uid?: string; readonly sinceSeq?: number },
    signal: AbortSignal,
  ): AsyncGenerator<JournalEntry> {
    let next = filter.sinceSeq ?? 0;
    while (!signal.aborted) {
      const entries = this.entries({ ...filter, sinceSeq: next });
      next = (entries.at(-1)?.seq ?? next - 1) + 1;
      yield* entries;
      if (entries.length > 0) continue;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#followers.add(resolve);
      signal.addEventListener("abort", () => resolve(), { once: true });
      await promise;
      this.#followers.delete(resolve);
    }
  }

  async shutdown(): Promise<void> {
    this.end();
  }

  record(entry: JournalInput): number {
    const seq = this.journal.length + 1;
    this.journal.push({ ...entry, seq, time: Date.now() });
    for (const wake of this.#followers) wake();
    return seq;
  }

  /** Overrides a part of a pod's view. */
  change(uid: string, change: Partial<PodView>): void {
    const view = this.views.get(uid);
    if (view !== undefined) this.views.set(uid, { ...view, ...change });
  }

  /** Cancels pending changes. */
  end(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  #begin(pod: PodRef): void {
    const waiting = containerView({
      state: "waiting",
      reason: "ContainerCreating",
      ready: false,
      startedAt: undefined,
    });
    const view = podView({
      ...pod,
      phase: "Pending",
      ready: false,
      ips: [],
      createdAt: Date.now(),
      containers: [waiting],
    });
    this.views.set(pod.uid, view);
    this.record({ kind: "input", what: "PodAdded", message: `pod ${pod.name} was added`, pod });
    const cause = { code: "PodAdded", message: `pod ${pod.name} was added` } as const;
    const of = this.record({
      kind: "action",
      what: "StartContainer",
      message: "start container app",
      pod,
      container: "app",
      cause,
    });
    this.#after(pod.uid, this.life.afterMs, () => this.#become(pod, of));
  }

  #become(pod: PodRef, of: number): void {
    const outcome = { kind: "outcome", what: "StartContainer", pod, container: "app", of, durationMs: 12 } as const;
    const image = containerView({}).image;
    switch (this.life.becomes) {
      case "ready":
        this.record({ ...outcome, message: "start container app: done", result: "done" });
        this.change(pod.uid, { phase: "Running", ready: true, ips: ["10.88.0.2"], containers: [containerView({})] });
        break;
      case "stuck": {
        this.record({ ...outcome, message: `image ${image} is not there`, result: "failed" });
        const waiting = {
          state: "waiting",
          reason: "ErrImageNeverPull",
          message: `image ${image} is not there`,
        } as const;
        this.change(pod.uid, { containers: [containerView({ ...waiting, ready: false })] });
        break;
      }
      case "succeeded":
      case "failed": {
        const well = this.life.becomes === "succeeded";
        this.record({ ...outcome, message: "start container app: done", result: "done" });
        const reason = well ? "Completed" : "Error";
        const ended = containerView({ state: "terminated", reason, exitCode: well ? 0 : 3, ready: false });
        this.change(pod.uid, {
          state: "terminated",
          phase: well ? "Succeeded" : "Failed",
          ready: false,
          containers: [ended],
        });
        break;
      }
    }
  }

  #after(uid: string, delayMs: number, work: () => void): void {
    clearTimeout(this.#timers.get(uid));
    this.#timers.set(uid, setTimeout(work, delayMs));
  }
}
