import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import { eachOf } from "../base/side-by-side.ts";
import type { PodCache } from "../pleg/pod-cache.ts";
import type { Pleg } from "../pleg/pleg.ts";
import { keptSpec } from "../runtime/layout/kept-spec.ts";
import { Annotation } from "../runtime/config/labels.ts";
import type { CheckpointDependencies } from "./pod-checkpoint.ts";
import type { PodEndings } from "./pod-endings.ts";
import type { PodWorkers } from "./pod-workers.ts";

export interface UnclaimedPodsDependencies {
  /** Where pod checkpoints are stored. */
  readonly checkpoint: CheckpointDependencies;
  readonly endings: Pick<PodEndings, "has">;
  readonly pleg: Pick<Pleg, "isListed">;
  readonly cache: Pick<PodCache, "get">;
  readonly workers: Pick<PodWorkers, "has">;
}

const readAtOnce = 8;

/**
 * The API server's pods from their checkpoints. Static pods are admitted before the server has delivered its list: what
 * running API pods hold must not count as free, or a restart of podwright would take it from them.
 */
export class UnclaimedPods {
  readonly #deps: UnclaimedPodsDependencies;
  readonly #pods = new Map<PodUid, Pod>();
  #loading: Promise<void> | undefined;

  constructor(deps: UnclaimedPodsDependencies) {
    this.#deps = deps;
  }

  /** Reads them, once. Never rejects: an unreadable pod holds nothing until the server delivers it. */
  load(): Promise<void> {
    this.#loading ??= this.#read();
    return this.#loading;
  }

  /** Those that run, as far as known, and that no source has delivered yet. */
  holding(): Pod[] {
    return [...this.#pods].flatMap(([uid, pod]) => (this.#isUnclaimed(uid) ? [pod] : []));
  }

  /** Every running pod is known: the checkpoints are no longer needed. */
  clear(): void {
    this.#pods.clear();
  }

  #isUnclaimed(uid: PodUid): boolean {
    const { cache, endings, pleg, workers } = this.#deps;
    if (!pleg.isListed(uid) || workers.has(uid) || endings.has(uid)) return false;
    const { sandboxes } = cache.get(uid).status;
    return sandboxes.length === 0 || sandboxes.some(({ ready }) => ready);
  }

  async #read(): Promise<void> {
    const { files, node, log } = this.#deps.checkpoint;
    try {
      const entries = await files.list(`${node.rootDirectory}/pods`);
      await eachOf(entries, readAtOnce, async ({ name }) => {
        const pod = await keptSpec(files, node, podUid(name));
        if (pod?.metadata.annotations?.[Annotation.configSource] === "api") this.#pods.set(pod.metadata.uid, pod);
      });
    } catch (error) {
      log.warn("cannot read the pods of an earlier run", { error: errorMessage(error) });
    }
  }
}
