import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { NodeReclaim } from "../eviction/node-reclaim.ts";
import type { ImageCollector } from "../images/image-collector.ts";
import type { KnownImage } from "../images/image-garbage.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import type { Kubelet } from "../kubelet/kubelet.ts";
import type { Cri } from "../ports/cri.ts";
import type { GarbageItem, GarbageReport } from "../server/local-api.ts";

export interface NodeCollectionDependencies {
  readonly cri: Pick<Cri, "runtime">;
  readonly garbage: Kubelet["garbage"];
  /** Undefined: this node collects no images. */
  readonly images: ImageCollector | undefined;
  readonly journal: Recorder;
}

/** What is gone of containers and sandboxes. */
interface Removed {
  readonly containers: readonly GarbageItem[];
  readonly failures: readonly string[];
}

const timeoutMs = 10_000;
const noImages = "this node removes no images: the runtime belongs to another program";

/** The garbage of a node: lists and removes it on a user's request. */
export class NodeCollection {
  readonly #deps: NodeCollectionDependencies;

  constructor(deps: NodeCollectionDependencies) {
    this.#deps = deps;
  }

  async preview(signal: AbortSignal): Promise<GarbageReport> {
    this.#requireKnown();
    const { images } = this.#deps;
    const containers = await this.#containers(signal);
    if (images === undefined) return { items: containers, imagesStay: noImages, failures: [] };
    const { overdue, unused, held } = await images.preview(signal);
    const items = [
      ...[...overdue, ...unused].map((image) => imageItem(image)),
      ...held.map(({ image, hold }) => imageItem(image, hold.text)),
    ];
    return { items: [...items, ...containers], failures: [] };
  }

  async collect(signal: AbortSignal): Promise<GarbageReport> {
    this.#requireKnown();
    const { garbage, images, journal } = this.#deps;
    const message = "a user requested garbage collection";
    const entry = journal.record({ kind: "input", what: "GarbageRequested", message });
    const cause: Cause = { code: "GarbageRequested", message, entry };
    const listed = await this.#containers(signal);
    const removeContainers = async (): Promise<Removed> => {
      const parts = await garbage.removeUnused(cause, signal);
      const gone = new Set<string>([...parts.containers, ...parts.sandboxes]);
      return { containers: listed.filter(({ id }) => gone.has(id)), failures: parts.failures };
    };
    if (images === undefined) {
      const { containers, failures } = await removeContainers();
      return { items: containers, imagesStay: noImages, failures };
    }
    const { result, freedBytes } = await images.measure(
      // Containers first: an image that only dead ones kept goes with them.
      async () => ({ parts: await removeContainers(), freed: await images.removeUnused(cause, signal) }),
      ({ parts }) => parts.containers.reduce((sum, { bytes = 0 }) => sum + bytes, 0),
      signal,
    );
    const { parts, freed } = result;
    const items = [
      ...freed.removed.map((image) => imageItem(image)),
      ...freed.held.map(({ image, hold }) => imageItem(image, hold.text)),
    ];
    return { items: [...items, ...parts.containers], freedBytes, failures: [...parts.failures, ...freed.failures] };
  }

  #requireKnown(): void {
    if (this.#deps.garbage.isReady) return;
    throw new PodwrightError(ExitCode.failed, "not all pods of this node are known yet; nothing is collected", {
      remedy: "try again in a moment; 'podwright doctor' shows what podwright is waiting for",
    });
  }

  async #containers(signal: AbortSignal): Promise<GarbageItem[]> {
    const bytes = await this.#layers(signal);
    return this.#deps.garbage.unused().flatMap(({ status, parts }) => {
      const pod = `${status.namespace}/${status.name}`;
      const item = (container: (typeof parts.containers)[number], stays?: string): GarbageItem => {
        const { id, name, restartCount } = container;
        return { kind: "container", id, name: `${name} #${restartCount}`, pod, bytes: bytes.get(id), stays };
      };
      return [
        ...parts.containers.map((container) => item(container)),
        ...parts.sandboxes.map(({ id, attempt }): GarbageItem => ({
          kind: "sandbox",
          id,
          name: `sandbox #${attempt}`,
          pod,
        })),
        ...parts.stays.map(({ container, why }) => item(container, why)),
      ];
    });
  }

  /** Bytes of writable layers by container; unreported ones are missing. */
  async #layers(signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
    const response = await this.#deps.cri.runtime.listContainerStats({}, { signal, timeoutMs }).catch(() => undefined);
    signal.throwIfAborted();
    return new Map(
      (response?.stats ?? []).flatMap(({ attributes, writableLayer }) => {
        const used = writableLayer?.usedBytes?.value;
        return attributes === undefined || used === undefined ? [] : [[attributes.id, Number(used)] as const];
      }),
    );
  }
}

function imageItem({ id, names, sizeBytes }: KnownImage, stays?: string): GarbageItem {
  return { kind: "image", id, name: names[0] ?? id, bytes: sizeBytes, stays };
}

/** What the node reclaims before it evicts pods. @param images undefined: it removes none */
export function reclaimOf({ garbage }: Pick<Kubelet, "garbage">, images: ImageCollector | undefined): NodeReclaim {
  return {
    removeEvicted: async (cause, signal) => await garbage.removeEvicted(cause, signal),
    removeUnusedContainers: async (cause, signal) => {
      await garbage.removeUnused(cause, signal);
      return garbage.removedLately;
    },
    removeUnusedImages: async (cause, signal) => {
      // A pod that is not known yet may need any of them.
      if (garbage.isReady) await images?.removeUnused(cause, signal);
    },
  };
}
