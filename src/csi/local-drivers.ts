import type { ReflectorHandler } from "../api-client/reflector.ts";
import type { ApiObject } from "../api-client/resource.ts";
import type { CsiDriver } from "../api/csi-node.ts";
import { onAbort } from "../base/abort.ts";
import { Emitter } from "../base/emitter.ts";
import type { Watcher } from "../objects/api-objects.ts";

/** The CSIDriver objects of a node without a cluster, from documents. */
export class LocalDrivers {
  #all: readonly CsiDriver[] = [];
  readonly #changes = new Emitter();

  /** Replaces all objects. */
  set(all: readonly CsiDriver[]): void {
    this.#all = all;
    this.#changes.emit();
  }

  /** Works like a watch of the API server: the handler gets all objects at once, and again after each change. */
  readonly watch: Watcher = async <T extends ApiObject>(
    _target: unknown,
    handler: ReflectorHandler<T>,
    signal: AbortSignal,
  ): Promise<void> => {
    // Only CSIDriver objects are watched here.
    const tell = (): void => handler.replaced(this.#all as unknown as readonly T[], []);
    tell();
    using _changes = this.#changes.on(tell);
    const ended = Promise.withResolvers<void>();
    using _abort = onAbort(signal, ended.resolve);
    await ended.promise;
  };
}
