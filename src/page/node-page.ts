import type { PodUid } from "../base/ids.ts";
import { onAbort } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { Pod } from "../api/pod.ts";
import type { PodStatus } from "../api/status.ts";
import type { LocalApi } from "../server/local-api.ts";
import { GaugeHistory, gaugePeriodMs, type NodeGauges } from "./gauges.ts";
import { lifeView, unrecordedLife } from "./life.ts";
import { podDetail, type ProbeReports } from "./pod-detail.ts";
import { evictionView, garbageView } from "./previews.ts";
import type {
  ChangeEvent,
  EvictionView,
  GarbageView,
  GaugesEvent,
  HelloEvent,
  LifeView,
  NodeView,
  PodDetail,
} from "./view.ts";

export interface NodePageDependencies {
  readonly clock: Clock;
  readonly log: Logger;
  readonly nodeName: string;
  readonly localApi: Pick<LocalApi, "health" | "pods" | "entries" | "follow" | "evictionPreview" | "previewGarbage">;
  /** The engine's pods, with their specs. */
  readonly known: () => readonly { readonly pod: Pod; readonly status: PodStatus | undefined }[];
  readonly probes: ProbeReports;
}

/** More pages at a time are turned away. */
const maxStreams = 16;
/** Journal entries come in bursts: how long to wait for the rest of one. */
const burstMs = 150;
/** Poll interval of what has no journal entries (probes without changes, the age of a listing). */
const lookMs = 2000;
/** Pods' gauges are collected for so long after the last page was closed. */
const interestMs = 15 * 60_000;
/** From the first reading of pods to the second: there is no rate before. */
const firstRateMs = 2000;

/** What the node page shows, as it changes. */
export class NodePage {
  readonly #deps: NodePageDependencies;
  readonly #history = new GaugeHistory();
  readonly #gaugeWait: WakeableWait;
  /** Called with each new reading. */
  readonly #onGauges = new Set<(event: GaugesEvent) => void>();
  /** Last request of a page, monotonic ms. */
  #lookedAtMs: number | undefined;
  #gauges: NodeGauges | undefined;

  constructor(deps: NodePageDependencies) {
    this.#deps = deps;
    this.#gaugeWait = new WakeableWait(deps.clock, "the next reading of gauges");
  }

  /** True when no more pages can be served. */
  get isFull(): boolean {
    return this.#onGauges.size >= maxStreams;
  }

  /** To be called before {@link run}; without it there are no gauges. */
  measureWith(gauges: NodeGauges): void {
    this.#gauges = gauges;
  }

  /** Collects gauges until the signal aborts: the node's always, which is cheap, pods' while a page is open. */
  async run(signal: AbortSignal): Promise<void> {
    const { log, clock } = this.#deps;
    const gauges = this.#gauges;
    if (gauges === undefined) return;
    let failing = false;
    let hadPods = false;
    while (!signal.aborted) {
      const withPods = this.#isLookedAt();
      try {
        const sample = await gauges.sample(withPods);
        const uids = this.#deps.localApi.pods().map(({ uid }) => uid);
        const event = this.#history.add(sample, clock.now(), clock.monotonic(), uids);
        for (const tell of this.#onGauges) tell(event);
        failing = false;
      } catch (error) {
        if (!failing) log.warn("cannot read gauges", { error: errorMessage(error) });
        failing = true;
      }
      await this.#gaugeWait.for(withPods && !hadPods ? firstRateMs : gaugePeriodMs, signal);
      hadPods = withPods;
    }
  }

  #isLookedAt(): boolean {
    const now = this.#deps.clock.monotonic();
    if (this.#onGauges.size > 0) this.#lookedAtMs = now;
    return this.#lookedAtMs !== undefined && now - this.#lookedAtMs < interestMs;
  }

  /** A pod's life; undefined when neither the journal nor the node has such a pod. */
  life(uid: PodUid): LifeView | undefined {
    const { localApi, clock } = this.#deps;
    const recorded = lifeView(localApi.entries({ uid }), uid, clock.now());
    if (recorded !== undefined) return recorded;
    return localApi.pods().some((pod) => pod.uid === uid) ? unrecordedLife(uid) : undefined;
  }

  /**
   * In what order pods would be evicted now.
   * @param signal undefined: the signal that is most urgent
   * @throws PodwrightError (bad input) for a node that evicts no pods, or a signal that does not exist
   */
  async evictions(signal: string | undefined): Promise<EvictionView> {
    return evictionView(await this.#deps.localApi.evictionPreview(signal));
  }

  /** What garbage collection would remove now. */
  async garbage(signal: AbortSignal): Promise<GarbageView> {
    return garbageView(await this.#deps.localApi.previewGarbage(signal));
  }

  /**
   * Server-sent events until the signal aborts: `hello` with everything, then `change` and `gauges`. A reader that is
   * slow gets fewer changes, each up to date. Even with nothing new there is one every 2 s, so that silence means a dead
   * connection.
   */
  async *events(signal: AbortSignal): AsyncGenerator<string> {
    const { clock } = this.#deps;
    const wait = new WakeableWait(clock, "updates for the node page");
    let readings: GaugesEvent[] = [];
    const onGauges = (event: GaugesEvent): void => {
      // A slow reader skips readings: only the newest ones are kept.
      readings = [...readings, event].slice(-2);
      wait.wake();
    };
    const wasLookedAt = this.#isLookedAt();
    this.#onGauges.add(onGauges);
    if (!wasLookedAt) this.#gaugeWait.wake();
    using ended = abortable(signal);
    try {
      const sent = new SentState();
      const entryCounts = new Map<string, number>();
      void this.#countEntries(entryCounts, wait, ended.signal);
      yield message("hello", this.#hello(sent));
      while (!signal.aborted) {
        await wait.for(lookMs, signal);
        if (signal.aborted) return;
        const due = readings;
        readings = [];
        for (const reading of due) yield message("gauges", reading);
        if (due.length === 0) await clock.sleep("a burst of journal entries to end", burstMs, signal).catch(() => {});
        yield message("change", { now: clock.now(), ...sent.changes(this.#node(), this.#pods(entryCounts)) });
      }
    } finally {
      this.#onGauges.delete(onGauges);
      this.#lookedAtMs = clock.monotonic();
    }
  }

  async #countEntries(counts: Map<string, number>, wait: WakeableWait, signal: AbortSignal): Promise<void> {
    for await (const { pod } of this.#deps.localApi.follow({}, signal)) {
      if (pod !== undefined) counts.set(pod.uid, (counts.get(pod.uid) ?? 0) + 1);
      wait.wake();
    }
  }

  #hello(sent: SentState): HelloEvent {
    const node = this.#node();
    const pods = this.#pods(new Map());
    sent.changes(node, pods);
    return { now: this.#deps.clock.now(), node, pods, history: this.#history.view() };
  }

  #node(): NodeView {
    const { version, runtime, startedAt, healthy, checks } = this.#deps.localApi.health();
    return { name: this.#deps.nodeName, version, runtime, startedAt, healthy, checks };
  }

  #pods(entryCounts: ReadonlyMap<string, number>): PodDetail[] {
    const { localApi, known, probes } = this.#deps;
    const byUid = new Map(known().map((each) => [each.pod.metadata.uid, each]));
    return localApi.pods().flatMap((view) => {
      const own = byUid.get(view.uid);
      if (own === undefined) return [];
      return [podDetail({ view, ...own, entries: entryCounts.get(view.uid) ?? 0 }, probes)];
    });
  }
}

/** The state sent to one page, to send only changes. */
class SentState {
  #node = "";
  #pods = new Map<string, string>();

  changes(node: NodeView, pods: readonly PodDetail[]): Omit<ChangeEvent, "now"> {
    const nodeText = JSON.stringify(node);
    const nodeChanged = nodeText !== this.#node;
    this.#node = nodeText;
    const texts = new Map(pods.map((pod) => [pod.uid, JSON.stringify(pod)]));
    const changed = pods.filter(({ uid }) => texts.get(uid) !== this.#pods.get(uid));
    const gone = [...this.#pods.keys()].filter((uid) => !texts.has(uid));
    this.#pods = texts;
    return {
      ...(nodeChanged && { node }),
      ...(changed.length > 0 && { pods: changed }),
      ...(gone.length > 0 && { gone }),
    };
  }
}

function message(event: "hello" | "change" | "gauges", data: HelloEvent | ChangeEvent | GaugesEvent): string {
  // JSON has no line feeds of its own.
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** A signal that aborts with the given one, or when it is disposed of. */
function abortable(signal: AbortSignal): { readonly signal: AbortSignal } & Disposable {
  const controller = new AbortController();
  const listening = onAbort(signal, () => controller.abort(signal.reason));
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      listening[Symbol.dispose]();
      controller.abort(new Error("the page disconnected"));
    },
  };
}
