import { Emitter } from "../base/emitter.ts";
import type { ContainerId } from "../base/ids.ts";
import type { Cause, PodRef } from "../journal/entry.ts";
import type { ProbeResult } from "./probe-judgement.ts";
import type { ProbeType } from "./probe-spec.ts";

/** A probe's current verdict on one container, and its cause. */
export interface ProbeFinding {
  readonly result: ProbeResult;
  /** Undefined before the first verdict. */
  readonly cause: Cause | undefined;
}

/** The last outcome of one probe, whatever the verdict. */
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

/** The latest verdict of every probe, by container instance: removed instances have none. */
export class ProbeResults {
  readonly #findings = new Map<ContainerId, Map<ProbeType, ProbeFinding>>();
  readonly #sightings = new Map<ContainerId, Map<ProbeType, ProbeSighting>>();
  readonly #changes = new Emitter<ProbeChange>();

  /** Undefined when this instance has no such probe. */
  get(id: ContainerId, type: ProbeType): ProbeFinding | undefined {
    return this.#findings.get(id)?.get(type);
  }

  /** The initial verdict of this run: not reported as a change. */
  begin(id: ContainerId, type: ProbeType, result: ProbeResult): void {
    put(this.#findings, id, type, { result, cause: undefined });
  }

  /** Sets a verdict; listeners are called if it changed. */
  set(change: ProbeChange): void {
    const { id, type, result, cause } = change;
    const before = this.get(id, type)?.result;
    put(this.#findings, id, type, { result, cause });
    if (before === result) return;
    this.#changes.emit(change);
  }

  /** A probe has ended; by itself it decides nothing. */
  saw(id: ContainerId, type: ProbeType, sighting: ProbeSighting): void {
    put(this.#sightings, id, type, sighting);
  }

  /** Undefined before the first probe of this run. */
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
