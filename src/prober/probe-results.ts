import { Emitter } from "../base/emitter.ts";
import type { ContainerId } from "../base/ids.ts";
import type { Cause, PodRef } from "../journal/entry.ts";
import type { ProbeResult } from "./probe-judgement.ts";
import type { ProbeType } from "./probe-spec.ts";

/** What a probe says of one container now, and why. */
export interface ProbeFinding {
  readonly result: ProbeResult;
  /** Undefined for what holds before the first verdict. */
  readonly cause: Cause | undefined;
}

/** How the last probe of one kind of one container ended, whatever became of the verdict. */
export interface ProbeSighting {
  readonly kind: "success" | "warning" | "failure" | "error";
  /** One clause for people. */
  readonly text: string;
  /** Wall clock, ms. */
  readonly at: number;
}

export interface ProbeChange {
  readonly pod: PodRef;
  readonly container: string;
  readonly id: ContainerId;
  readonly type: ProbeType;
  readonly result: "success" | "failure";
  readonly cause: Cause;
}

/** The latest verdict of every probe, by instance of a container: an instance that is gone has none. */
export class ProbeResults {
  readonly #findings = new Map<ContainerId, Map<ProbeType, ProbeFinding>>();
  readonly #sightings = new Map<ContainerId, Map<ProbeType, ProbeSighting>>();
  readonly #changes = new Emitter<ProbeChange>();

  /** Undefined when nobody probes this instance for that. */
  get(id: ContainerId, type: ProbeType): ProbeFinding | undefined {
    return this.#findings.get(id)?.get(type);
  }

  /** What holds before the first verdict of this life: no news to anybody. */
  begin(id: ContainerId, type: ProbeType, result: ProbeResult): void {
    put(this.#findings, id, type, { result, cause: undefined });
  }

  /** A verdict; listeners hear of it when it is another one than before. */
  set(change: ProbeChange): void {
    const { id, type, result, cause } = change;
    const before = this.get(id, type)?.result;
    put(this.#findings, id, type, { result, cause });
    if (before === result) return;
    this.#changes.emit(change);
  }

  /** A probe has ended; it decides nothing by itself. */
  saw(id: ContainerId, type: ProbeType, sighting: ProbeSighting): void {
    put(this.#sightings, id, type, sighting);
  }

  /** Undefined before the first probe of this life. */
  last(id: ContainerId, type: ProbeType): ProbeSighting | undefined {
    return this.#sightings.get(id)?.get(type);
  }

  remove(id: ContainerId, type: ProbeType): void {
    for (const known of [this.#findings, this.#sightings]) {
      const ofInstance = known.get(id);
      ofInstance?.delete(type);
      if (ofInstance?.size === 0) known.delete(id);
    }
  }

  /** Calls `listener` with each changed verdict until disposed of. It must not throw. */
  onChange(listener: (change: ProbeChange) => void): Disposable {
    return this.#changes.on(listener);
  }
}

function put<T>(known: Map<ContainerId, Map<ProbeType, T>>, id: ContainerId, type: ProbeType, value: T): void {
  const ofInstance = known.get(id);
  if (ofInstance === undefined) known.set(id, new Map([[type, value]]));
  else ofInstance.set(type, value);
}
