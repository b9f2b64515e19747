import { errorMessage } from "../base/errors.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import type { LastingEnding } from "./ending.ts";
import { type CheckpointDependencies, rememberedEnd } from "./pod-checkpoint.ts";

/**
 * Which pods were over for good in an earlier life, and why. Read before any pod is taken up: one that is over holds
 * nothing of the node and does not run again, though the runtime still has what is left of it and a source wants it.
 */
export class PodEndings {
  readonly #deps: CheckpointDependencies;
  readonly #ends = new Map<PodUid, LastingEnding>();

  constructor(deps: CheckpointDependencies) {
    this.#deps = deps;
  }

  /** Never rejects: a pod whose record can't be read is taken for one that runs on. */
  async load(): Promise<void> {
    const { files, node, log } = this.#deps;
    try {
      const uids = (await files.list(`${node.rootDirectory}/pods`)).map(({ name }) => podUid(name));
      await Promise.all(uids.map(async (uid) => this.#read(uid)));
    } catch (error) {
      log.warn("cannot read which pods had ended before the start", { error: errorMessage(error) });
    }
  }

  has(uid: PodUid): boolean {
    return this.#ends.has(uid);
  }

  /** Why the pod is over; asked once, as whatever comes later under its UID is another life of it. */
  take(uid: PodUid): LastingEnding | undefined {
    const end = this.#ends.get(uid);
    this.#ends.delete(uid);
    return end;
  }

  async #read(uid: PodUid): Promise<void> {
    try {
      const end = await rememberedEnd(this.#deps, uid);
      if (end !== undefined) this.#ends.set(uid, end);
    } catch (error) {
      this.#deps.log.warn("cannot read whether a pod had ended before the start", { uid, error: errorMessage(error) });
    }
  }
}
