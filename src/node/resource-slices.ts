import { ApiError, askedPauseMs } from "../api-client/api-error.ts";
import type { ApiClient } from "../api-client/client.ts";
import { orAborted } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import { perform } from "../journal/perform.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { Random } from "../ports/random.ts";

export interface ResourceSlicesDependencies {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly nodeName: string;
}

const [firstRetryMs, longestRetryMs] = [1000, 300_000];
const jitter = 0.2;

const resource = { base: "/apis/resource.k8s.io/v1", plural: "resourceslices" };
const cause: Cause = { code: "NodeRegistered", message: "no driver of devices has registered on the node yet" };

/**
 * Deletes the node's ResourceSlices, once at each start (upstream's DRAPluginManager): the scheduler must give no pod a
 * device that an earlier kubelet's driver advertised while no driver is registered here. A driver that is running
 * publishes its own again.
 */
export class ResourceSlices {
  readonly #deps: ResourceSlicesDependencies;
  readonly #registered = Promise.withResolvers<void>();

  constructor(deps: ResourceSlicesDependencies) {
    this.#deps = deps;
  }

  /** Call after the Node was registered or found: before, its credentials may not be valid. */
  registered(): void {
    this.#registered.resolve();
  }

  /** Ends when nothing is left to delete, or the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await orAborted(this.#registered.promise, signal);
    for (let failures = 0; !signal.aborted; failures++) {
      const error = await this.#delete(signal);
      if (error === undefined || signal.aborted) return;
      await this.#pause(error, failures, signal);
    }
  }

  /** The error; undefined: they are gone. */
  async #delete(signal: AbortSignal): Promise<unknown> {
    const { client, clock, journal, nodeName } = this.#deps;
    const query = { fieldSelector: `spec.nodeName=${nodeName}` };
    const message = "delete the node's ResourceSlices";
    try {
      await perform(journal, clock, { what: "DeleteResourceSlices", message, cause }, async () => {
        await client.delete({ lane: "objects", resource, place: {}, query, signal }, {}).catch(unlessMissing);
      });
      return undefined;
    } catch (error) {
      return error;
    }
  }

  async #pause(problem: unknown, failures: number, signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#deps;
    const delayMs = Math.min(firstRetryMs * 2 ** failures, longestRetryMs) * (1 + jitter * random.uniform());
    const retryMs = Math.round(Math.max(delayMs, askedPauseMs(problem)));
    const fields = { error: errorMessage(problem), retryMs };
    // Once: where a node may not delete them, this goes on.
    if (failures === 2) log.warn("cannot delete the node's ResourceSlices", fields);
    else log.debug("cannot delete the node's ResourceSlices yet", fields);
    await clock.sleep("the next try to delete the node's ResourceSlices", retryMs, signal).catch(() => {});
  }
}

/** An API server without this version of the group has none: it says so without a Status. */
function unlessMissing(error: unknown): void {
  if (!(error instanceof ApiError) || error.code !== 404) throw error;
}
