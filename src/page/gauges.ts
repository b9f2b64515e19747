import type { CapacityView, GaugesEvent, HistoryView, NodeReading, PodReading } from "./view.ts";

/** Amounts at one moment; what can't be read is left out. */
export interface GaugeSample {
  readonly capacity: CapacityView;
  /** Processor time that the machine has used so far, in seconds. */
  readonly cpuSeconds?: number;
  /** The machine's working set. */
  readonly memoryBytes?: number;
  /** Used of the file system that holds the pods. */
  readonly diskBytes?: number;
  /** By UID. */
  readonly pods: ReadonlyMap<string, { readonly cpuSeconds?: number; readonly memoryBytes?: number }>;
}

/** Where gauges come from. */
export interface NodeGauges {
  /** @param withPods whether pods' amounts are wanted too: those cost a few files of each pod */
  sample(withPods: boolean): Promise<GaugeSample>;
}

export const gaugePeriodMs = 10_000;
/** An hour. */
const keptReadings = 360;
/** Pods' lines are small and there are many of them: fewer points suffice. */
const toldPodReadings = 90;

interface CpuMark {
  readonly cpuSeconds: number;
  readonly atMs: number;
}

/** An hour of readings in memory: of the node, and of existing pods. Bounded. */
export class GaugeHistory {
  #capacity: CapacityView = {};
  #node: NodeReading[] = [];
  readonly #pods = new Map<string, PodReading[]>();
  #nodeMark: CpuMark | undefined;
  #podMarks = new Map<string, CpuMark>();

  /**
   * Takes a sample and returns what it says.
   * @param nowMs monotonic, for rates
   * @param podUids the pods that are there: others are forgotten
   */
  add(sample: GaugeSample, time: number, nowMs: number, podUids: readonly string[]): GaugesEvent {
    this.#capacity = sample.capacity;
    const node: NodeReading = {
      time,
      cpuCores: coresSince(this.#nodeMark, sample.cpuSeconds, nowMs),
      memoryBytes: sample.memoryBytes ?? null,
      diskBytes: sample.diskBytes ?? null,
      pods: podUids.length,
    };
    this.#nodeMark = markOf(sample.cpuSeconds, nowMs);
    this.#node = [...this.#node, node].slice(-keptReadings);
    const pods = this.#addPods(sample, nowMs, podUids);
    return { now: time, capacity: sample.capacity, node, pods };
  }

  #addPods({ pods }: GaugeSample, nowMs: number, podUids: readonly string[]): Record<string, PodReading> {
    const marks = new Map<string, CpuMark>();
    const readings: Record<string, PodReading> = {};
    for (const uid of this.#pods.keys()) if (!podUids.includes(uid)) this.#pods.delete(uid);
    for (const uid of podUids) {
      const { cpuSeconds, memoryBytes } = pods.get(uid) ?? {};
      const mark = markOf(cpuSeconds, nowMs);
      if (mark !== undefined) marks.set(uid, mark);
      const reading: PodReading = [coresSince(this.#podMarks.get(uid), cpuSeconds, nowMs), memoryBytes ?? null];
      readings[uid] = reading;
      this.#pods.set(uid, [...(this.#pods.get(uid) ?? []), reading].slice(-keptReadings));
    }
    this.#podMarks = marks;
    return readings;
  }

  view(): HistoryView {
    const pods = [...this.#pods].map(([uid, readings]) => [uid, thinned(readings)] as const);
    return { capacity: this.#capacity, node: this.#node, pods: Object.fromEntries(pods) };
  }
}

function markOf(cpuSeconds: number | undefined, atMs: number): CpuMark | undefined {
  return cpuSeconds === undefined ? undefined : { cpuSeconds, atMs };
}

/** Null without a previous amount, or after a counter reset (a container was restarted). */
function coresSince(mark: CpuMark | undefined, cpuSeconds: number | undefined, nowMs: number): number | null {
  if (mark === undefined || cpuSeconds === undefined || nowMs <= mark.atMs || cpuSeconds < mark.cpuSeconds) return null;
  const cores = ((cpuSeconds - mark.cpuSeconds) * 1000) / (nowMs - mark.atMs);
  return Math.round(cores * 10_000) / 10_000;
}

/** Every n-th reading, the newest among them. */
function thinned(readings: readonly PodReading[]): PodReading[] {
  const step = Math.ceil(readings.length / toldPodReadings);
  return readings.filter((_, index) => (readings.length - 1 - index) % step === 0);
}
