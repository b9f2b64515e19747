import { Emitter } from "../base/emitter.ts";
import { Semaphore } from "../base/semaphore.ts";
import type { PodSetUp } from "./pod-set-up.ts";
import type { VolumeMemory } from "./volume-set-up.ts";

/** Exists as long as a pod has volumes. */
export interface PodMemory extends VolumeMemory {
  /** Work on a pod's volumes is serialized, except for the set-up of external ones. */
  readonly turn: Semaphore;
  /** One set-up of a pod's volumes at a time, also of one that is canceled and has not ended. */
  readonly setUps: Semaphore;
  underWay: PodSetUp | undefined;
}

export function newPodMemory(): PodMemory {
  return {
    turn: new Semaphore(1),
    setUps: new Semaphore(1),
    underWay: undefined,
    contents: new Map(),
    specs: new Map(),
    upkeeps: new Map(),
    wanted: new Map(),
    remarks: new Map(),
    retries: new Emitter(),
  };
}
