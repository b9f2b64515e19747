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
  readonly #listeners = new Set<(change: ProbeChange) => void>();

  /** Undefined when nobody probes this instance for that. */
  get(id: ContainerId, type: ProbeType): ProbeFinding | undefined {
    return this.#findings.get(id)?.get(type);
  }

  /** What holds before the first verdict of this life: no news to anybody. */
  begin(id: ContainerId, type: ProbeType, result: ProbeResult): void {
    this.#put(id, type, { result, cause: undefined });
  }

  /** A verdict; listeners hear of it when it is another one than before. */
  set(change: ProbeChange): void {
    const { id, type, result, cause } = change;
    const before = this.get(id, type)?.result;
    this.#put(id, type, { result, cause });
    if (before === result) return;
    for (const listener of this.#listeners) listener(change);
  }

  remove(id: ContainerId, type: ProbeType): void {
    const findings = this.#findings.get(id);
    findings?.delete(type);
    if (findings?.size === 0) this.#findings.delete(id);
  }

  /** Calls `listener` with each changed verdict until disposed of. It must not throw. */
  onChange(listener: (change: ProbeChange) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  #put(id: ContainerId, type: ProbeType, finding: ProbeFinding): void {
    const findings = this.#findings.get(id);
    if (findings === undefined) this.#findings.set(id, new Map([[type, finding]]));
    else findings.set(type, finding);
  }
}
