import assert from "node:assert/strict";
import type { Pod } from "../../src/api/pod.ts";
import { onAbort } from "../../src/base/abort.ts";
import { Emitter } from "../../src/base/emitter.ts";
import { containerId, podUid } from "../../src/base/ids.ts";
import { AcceptedEvictions } from "../../src/eviction/accepted-evictions.ts";
import type { EvictionTerms } from "../../src/eviction/eviction-terms.ts";
import type { FileSystems } from "../../src/eviction/file-systems.ts";
import { type EvictionConfig, EvictionManager } from "../../src/eviction/manager.ts";
import type { MeasuredKind, PodUsage } from "../../src/eviction/pod-usage.ts";
import type { Observations } from "../../src/eviction/pressure.ts";
import type { Signal } from "../../src/eviction/thresholds.ts";
import type { Cause } from "../../src/journal/entry.ts";
import { evicted } from "../../src/eviction/evicted.ts";
import { type Ending, resumed, unwanted } from "../../src/pods/ending.ts";
import type { WorkerState } from "../../src/pods/worker-state.ts";
import { podRef } from "../../src/runtime/pod-ref.ts";
import type { RemovedContainer } from "../../src/runtime/operations/removed-lately.ts";
import type { PodStatus } from "../../src/runtime/status/pod-status.ts";
import { MemoryFiles } from "../../src/sim/files.ts";
import { observed, thresholdOf } from "./eviction.ts";
import { ManualClock, settle } from "./manual-clock.ts";
import { MemoryRecorder, silentLog } from "./sources.ts";

const mi = 1 << 20;
export const usualEvictions: EvictionConfig = {
  thresholds: [thresholdOf("memory.available", "100Mi")],
  transitionMs: 60_000,
  maxPodGraceSeconds: 40,
  enforcesStorageLimits: true,
  watchesMemory: false,
};

/** The settings of a start. */
export function termsOf(
  config: Partial<EvictionConfig>,
  { countsMemAvailable = false, reservedMemoryBytes = 0 }: Partial<EvictionTerms> = {},
): EvictionTerms {
  return { ...usualEvictions, ...config, countsMemAvailable, reservedMemoryBytes };
}

const running = { sandboxes: [{ ready: true }], containers: [{ state: "running" }] } as unknown as PodStatus;

/** A node with pods that use memory; an evicted pod stays until the test removes it. */
export class EvictionScene {
  readonly clock = new ManualClock();
  readonly journal = new MemoryRecorder();
  readonly manager: EvictionManager;
  readonly states = new Map<string, WorkerState>();
  readonly pods: Pod[] = [];
  /** Names of pods that no source has any more. */
  readonly forgotten = new Set<string>();
  readonly usages = new Map<string, PodUsage>();
  readonly killed: { readonly name: string; readonly ending: Ending }[] = [];
  readonly reclaimed: string[] = [];
  sees: Observations | Error = observed({ "memory.available": 1n << 30n });
  fileSystems: FileSystems | undefined = "one";
  unmeasured: ReadonlyMap<string, string> = new Map();
  knowsAll = true;
  looks = 0;
  /** The machine is being observed. */
  onLook: () => void = () => {};
  /** An observation takes until then. */
  sight: Promise<void> = Promise.resolve();
  /** Storage cannot be measured, or memory and processes. */
  storageFails = false;
  runningFails = false;
  /** Reading storage takes until then, or memory and processes. */
  storage: Promise<void> = Promise.resolve();
  running: Promise<void> = Promise.resolve();
  onReclaim: () => void = () => {};
  /** Each removal takes until then, and so does the question for removed containers' layers. */
  removal: Promise<void> = Promise.resolve();
  layers: Promise<void> = Promise.resolve();
  onKill: (name: string) => void = () => {};
  /** Usage is being read. */
  onRead: () => void = () => {};
  /** The containers that each kind of reclaim removes, and those whose layers are gone. */
  readonly removes: Record<string, readonly string[]> = {};
  readonly freed = new Set<string>();
  /** Containers whose layers were never measured. */
  readonly unseen = new Set<string>();
  /** When each was removed. */
  readonly #removedMs = new Map<string, number>();
  readonly #measured = new Emitter<MeasuredKind>();
  readonly #stop = new AbortController();

  constructor(config: Partial<EvictionConfig> = {}, accepted?: AcceptedEvictions) {
    const { clock, journal } = this;
    const whole = { ...usualEvictions, ...config };
    const files = new MemoryFiles(clock);
    const reclaim = (what: string) => async (cause: Cause) => {
      this.reclaimed.push(`${what} for ${cause.message}`);
      this.onReclaim();
      await this.removal;
      return this.#removed(what);
    };
    this.manager = new EvictionManager(
      {
        ...{ clock, journal, log: silentLog },
        look: async () => {
          this.looks++;
          this.onLook();
          await this.sight;
          if (this.sees instanceof Error) throw this.sees;
          return { observations: this.sees, fileSystems: this.fileSystems, unmeasured: this.unmeasured };
        },
        usage: {
          readRunning: async (_pods, signal) => {
            if (this.runningFails) throw new Error("timed out");
            await unlessAborted(this.running, signal);
            return this.#read();
          },
          readStorage: async (_pods, _how, signal) => {
            if (this.storageFails) throw new Error("timed out");
            await unlessAborted(this.storage, signal);
            return this.#read();
          },
          onMeasured: (listener) => this.#measured.on((kind) => listener(kind, () => this.usages)),
          layersLeft: async (containers) => {
            await this.layers;
            const left = containers.filter((id) => !this.freed.has(id));
            return {
              there: left.filter((id) => !this.unseen.has(id)),
              unknown: left.filter((id) => this.unseen.has(id)),
            };
          },
        },
        accepted: accepted ?? new AcceptedEvictions({ files, log: silentLog, directory: "/d" }, termsOf(whole), false),
      },
      whole,
    );
    this.manager.connect({
      pods: {
        list: () =>
          this.pods.map((pod) => {
            const { name } = pod.metadata;
            const state = this.states.get(name) ?? { kind: "syncing" };
            return { view: { ref: podRef(pod), pod, state, status: running }, forgotten: this.forgotten.has(name) };
          }),
      },
      killer: {
        kill: async (pod, ending) => {
          this.killed.push({ name: pod.metadata.name, ending });
          const killAtMs = clock.monotonic() + Math.max(1, ending.graceSeconds) * 1000;
          this.states.set(pod.metadata.name, { kind: "terminating", ending, killAtMs });
          this.onKill(pod.metadata.name);
          return true;
        },
      },
      startUp: { has: () => this.knowsAll },
    });
    this.manager.reclaimWith({
      removeEvicted: reclaim("evicted"),
      removeUnusedContainers: reclaim("containers"),
      removeUnusedImages: async (cause) => void (await reclaim("images")(cause)),
    });
  }

  #removed(what: string): RemovedContainer[] {
    const nowMs = this.clock.monotonic();
    return (this.removes[what] ?? []).map((id) => {
      const atMs = this.#removedMs.get(id) ?? nowMs;
      this.#removedMs.set(id, atMs);
      return { id: containerId(id), uid: podUid("uid-gone"), atMs };
    });
  }

  #read(): ReadonlyMap<string, PodUsage> {
    this.onRead();
    return this.usages;
  }

  add(pod: Pod, mebibytes: number): void {
    this.pods.push(pod);
    this.usages.set(pod.metadata.uid, { memoryBytes: mebibytes * mi, containers: [], volumes: [] });
  }

  /** Others measure all pods. */
  measure(kind: MeasuredKind): void {
    this.#measured.emit(kind);
  }

  short(signal: Signal = "memory.available"): void {
    this.sees = observed({ [signal]: 50n << 20n });
  }

  gone(name: string): void {
    const { ending } = this.killed.find((each) => each.name === name) ?? {};
    assert.ok(ending);
    this.states.set(name, { kind: "terminated", ending, killAtMs: 0, released: true, recorded: true });
  }

  /** It is being stopped, because it is deleted or for another ending. */
  stops(name: string, graceSeconds: number, ending?: Omit<Ending, "graceSeconds">): void {
    const deleted = unwanted({ code: "PodDeleted", message: "the pod is being deleted" }, graceSeconds);
    const killAtMs = this.clock.monotonic() + graceSeconds * 1000;
    this.states.set(name, { kind: "terminating", ending: { ...deleted, ...ending }, killAtMs });
  }

  /** It is being stopped because an earlier run evicted it, with its own grace period. */
  evictedBefore(name: string, graceSeconds: number): void {
    const end = evicted("the node was low on memory", { code: "EvictionThresholdMet", message: "" }, 1, true);
    const ending = resumed(end, { code: "PodAdded", message: "" }, graceSeconds);
    this.killed.push({ name, ending });
    this.states.set(name, { kind: "terminating", ending, killAtMs: this.clock.monotonic() + graceSeconds * 1000 });
  }

  get victims(): string[] {
    return this.killed.map(({ name }) => name);
  }

  async play(work: () => Promise<void>): Promise<void> {
    await this.manager.load();
    const ended = this.manager.run(this.#stop.signal);
    await settle();
    await work();
    this.#stop.abort(new Error("the test is over"));
    await ended;
    assert.deepEqual(this.clock.waits, []);
  }
}

async function unlessAborted(reading: Promise<void>, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<never>();
  using _signal = onAbort(signal, () => aborted.reject(signal.reason));
  await Promise.race([reading, aborted.promise]);
}
