import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import { eitherSignal, onAbort } from "../base/abort.ts";
import type { Semaphore } from "../base/semaphore.ts";
import { SharedTurn } from "../base/shared-turn.ts";
import type { Cause } from "../journal/entry.ts";
import type { MountedVolume, MountedVolumes } from "../runtime/config/mounted-volumes.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import { AttachLimitError } from "./attachments.ts";
import { setUpProblem } from "./volume-operation-error.ts";
import { isExternal, type MountingPod, type VolumeSetUp } from "./volume-set-up.ts";
import { inlineSpec } from "./volume-spec.ts";

/** Nothing has failed: its outcome is unknown. */
export class SetUpCanceled extends Error {
  constructor(why: string) {
    super(why);
    this.name = "AbortError";
  }
}

/**
 * The set-up of a pod's volumes. As in upstream it goes on when the wait for it ends, and the next wait joins it: work that
 * takes longer than a wait would otherwise be restarted by each.
 */
export class PodSetUp {
  readonly mounting: MountingPod;
  readonly #controller = new AbortController();
  /** The signals of the waits for it. */
  readonly #waits = new Set<AbortSignal>();
  readonly #ended: Promise<MountedVolumes>;

  constructor(mounting: MountingPod, work: (mounting: MountingPod, signal: AbortSignal) => Promise<MountedVolumes>) {
    this.mounting = mounting;
    this.#ended = work(mounting, this.#controller.signal);
    // Nobody may be waiting then.
    this.#ended.catch(() => {});
  }

  get isCanceled(): boolean {
    return this.#controller.signal.aborted;
  }

  get isAwaited(): boolean {
    return this.#waits.size > 0;
  }

  isOf(volumes: readonly Volume[]): boolean {
    const { used } = this.mounting;
    return used.length === volumes.length && used.every(({ name }, at) => volumes[at]?.name === name);
  }

  /** Its next attempts are for the pod as it is now. */
  isFor(pod: Pod, cause: Cause): void {
    this.mounting.pod = pod;
    this.mounting.cause = cause;
  }

  /**
   * Waits for it.
   * @param signal cancels it when it aborts, unless something else waits for it
   * @param limited aborts with `signal`, or at the end of the wait
   */
  async wait(signal: AbortSignal, limited: AbortSignal): Promise<MountedVolumes> {
    this.#waits.add(limited);
    using _leaving = onAbort(limited, () => {
      this.#waits.delete(limited);
      if (signal.aborted && !this.isAwaited) this.cancel(signal.reason);
    });
    try {
      return await this.#ended;
    } finally {
      this.#waits.delete(limited);
    }
  }

  cancel(reason: unknown): void {
    this.#controller.abort(reason);
  }
}

/**
 * Sets up the volumes that a pod uses, all at once.
 * @param turn the pod's volume lock, held by each round of attempts at its local volumes: not while they wait for the next,
 * so that other work on the pod's volumes goes on. External volumes, whose set-up may take long, do without.
 * @throws VolumeError, or the signal's reason
 */
export async function setUpAll(
  setUp: Pick<VolumeSetUp, "setUp">,
  mounting: MountingPod,
  turn: Semaphore,
  signal: AbortSignal,
): Promise<MountedVolumes> {
  const { used, progress } = mounting;
  const mounted = new Map<string, MountedVolume>();
  let limit: AttachLimitError | undefined;
  const rest = new AbortController();
  using either = eitherSignal(signal, rest.signal);
  const local = new SharedTurn(turn);
  const mountOne = async (volume: Volume): Promise<void> => {
    try {
      const lock = isExternal(volume) ? undefined : local;
      mounted.set(volume.name, await setUp.setUp(mounting, volume, lock, either.signal));
    } catch (error) {
      if (error instanceof AttachLimitError) {
        limit ??= error;
        rest.abort(error);
      }
      progress.failed(volume.name, setUpProblem(inlineSpec(volume), error).message);
    }
  };
  await Promise.all(used.map(mountOne));
  signal.throwIfAborted();
  if (limit !== undefined) throw new AttachLimitError(progress.text(limit.message), { cause: limit });
  if (progress.problems.length > 0) throw new VolumeError(progress.problems.join("; "));
  return mounted;
}
