import type { Pod } from "../api/pod.ts";
import type { Recorder } from "../journal/entry.ts";
import { podRef } from "../runtime/pod-ref.ts";
import type { MountProgress } from "./mount-progress.ts";

/** A pod whose volumes are set up. */
export interface RemarkedPod {
  readonly pod: Pod;
  readonly progress: MountProgress;
  readonly memory: {
    /** The last reported reason of each volume's wait, by its name in the pod. */
    readonly remarks: Map<string, string>;
  };
}

const unprocessed = "Unable to attach or mount volumes: ";

/** Reports in the journal why volumes of pods wait, and when these waits are over. */
export class VolumeRemarks {
  readonly #journal: Recorder;

  constructor(journal: Recorder) {
    this.#journal = journal;
  }

  /** Its claim cannot be used. */
  unprocessed(of: RemarkedPod, volume: string, problem: string): void {
    const message = `${unprocessed}${of.progress.text(problem)}`;
    this.#waits(of, volume, "VolumeUnprocessed", message);
  }

  unattached(of: Omit<RemarkedPod, "progress">, volume: string, why: string): void {
    const message = `volume ${volume} is not attached yet: ${why}`;
    // Each attempt may find the same.
    if (of.memory.remarks.get(volume) !== message) this.#waits(of, volume, "VolumeUnattached", message);
  }

  /** Repeats what is still true: each wait for the set-up of a pod's volumes has reports of its own. */
  again(of: RemarkedPod): void {
    for (const [volume, remark] of of.memory.remarks) {
      const problem = of.progress.whyUnprocessed(volume);
      if (problem === undefined) this.#waits(of, volume, "VolumeUnattached", remark);
      else this.unprocessed(of, volume, problem);
    }
  }

  /** Its claim can be used: whether the volume is attached is still open. */
  processed(of: Omit<RemarkedPod, "progress">, volume: string): void {
    if (of.memory.remarks.get(volume)?.startsWith(unprocessed) === true) this.goesOn(of, volume);
  }

  goesOn({ pod, memory: { remarks } }: Omit<RemarkedPod, "progress">, volume: string): void {
    const before = remarks.get(volume);
    if (before === undefined) return;
    remarks.delete(volume);
    this.#over(pod, before);
  }

  #waits(
    { pod, memory: { remarks } }: Omit<RemarkedPod, "progress">,
    volume: string,
    what: "VolumeUnprocessed" | "VolumeUnattached",
    message: string,
  ): void {
    const before = remarks.get(volume);
    if (before !== undefined && before !== message) this.#over(pod, before);
    remarks.set(volume, message);
    this.#journal.record({ kind: "observation", what, message, pod: podRef(pod) });
  }

  #over(pod: Pod, message: string): void {
    this.#journal.record({ kind: "observation", what: "VolumeWaitOver", message, pod: podRef(pod) });
  }
}
