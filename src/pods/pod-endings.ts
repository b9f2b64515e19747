import { errorMessage } from "../base/errors.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import type { LastingEnding } from "./ending.ts";
import { type CheckpointDependencies, rememberedEnd } from "./pod-checkpoint.ts";

/**
 * Which pods ended for good in an earlier run, and why. Read before any pod is admitted: an ended pod holds no
 * resources and does not run again, although the runtime still has remains of it and a source has it.
 */
export class PodEndings {
  readonly #deps: CheckpointDependencies;
  readonly #ends = new Map<PodUid, LastingEnding>();

  constructor(deps: CheckpointDependencies) {
    this.#deps = deps;
  }

  /** Never rejects: a pod with an unreadable checkpoint counts as running. */
  async load(): Promise<void> {
    const { files, node, log } = this.#deps;
    try {
      const uids = (await files.list(`${node.rootDirectory}/pods`)).map(({ name }) => podUid(name));
      await Promise.all(uids.map(async (uid) => this.#read(uid)));
    } catch (error) {
      log.warn("cannot read which pods ended in an earlier run", { error: errorMessage(error) });
    }
  }

  has(uid: PodUid): boolean {
    return this.#ends.has(uid);
  }

  /** The pod's ending; returned once, since a later pod with its UID is another instance. */
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
      this.#deps.log.warn("cannot read how a pod ended in an earlier run", { uid, error: errorMessage(error) });
    }
  }
}
