import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import { eachOf } from "../base/side-by-side.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import { keptSpec } from "../runtime/layout/kept-spec.ts";
import { Annotation } from "../runtime/config/labels.ts";
import type { NodeContext } from "../runtime/node-context.ts";

interface UnclaimedPodsDependencies {
  readonly files: Files;
  readonly node: Pick<NodeContext, "rootDirectory">;
  readonly log: Pick<Logger, "warn">;
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

  /** @param isUnclaimed whether a pod may run and no source has delivered it yet */
  holding(isUnclaimed: (uid: PodUid) => boolean): Pod[] {
    return [...this.#pods].flatMap(([uid, pod]) => (isUnclaimed(uid) ? [pod] : []));
  }

  /** Every running pod is known: the checkpoints are no longer needed. */
  clear(): void {
    this.#pods.clear();
  }

  async #read(): Promise<void> {
    const { files, node, log } = this.#deps;
    try {
      const entries = await files.list(`${node.rootDirectory}/pods`);
      await eachOf(entries, readAtOnce, async ({ name }) => {
        const pod = await keptSpec(files, node, name);
        if (pod?.metadata.annotations?.[Annotation.configSource] === "api") this.#pods.set(podUid(name), pod);
      });
    } catch (error) {
      log.warn("cannot read which pods an earlier run had", { error: errorMessage(error) });
    }
  }
}
