import * as z from "zod";
import { errorMessage } from "../base/errors.ts";
import { FileError, type Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { StaleResources } from "./extended-resources.ts";

const maxBytes = 64 << 20;

/** The Go kubelet's device manager checkpoint, limited to the names of resources. */
const Checkpoint = z.looseObject({
  Data: z.looseObject({
    RegisteredDevices: z.record(z.string(), z.unknown()).nullish(),
    PodDeviceEntries: z.array(z.looseObject({ ResourceName: z.string() })).nullish(),
  }),
});

/**
 * The root directory's record of the machine as a node. A machine that was reinstalled under an existing name finds a
 * Node with devices that it may lack.
 */
export class NodeMemory {
  readonly #files: Pick<Files, "list" | "read" | "makeDirectory" | "writeAtomic">;
  readonly #log: Logger;
  readonly #directory: string;
  readonly #devices: string;

  constructor(
    files: Pick<Files, "list" | "read" | "makeDirectory" | "writeAtomic">,
    log: Logger,
    rootDirectory: string,
  ) {
    this.#files = files;
    this.#log = log;
    this.#directory = `${rootDirectory}/podwright`;
    this.#devices = `${rootDirectory}/device-plugins`;
  }

  /** Extended resources of the Node that an earlier run left. Never rejects. */
  async staleResources(): Promise<StaleResources> {
    try {
      const devices = await this.#files.list(this.#devices);
      if (devices.length === 0) return (await this.#wasRegistered()) ? [] : "all";
    } catch (error) {
      // As upstream: if it is unknown, no resource is taken away.
      this.#log.warn("cannot read the node state of earlier runs", { error: errorMessage(error) });
      return [];
    }
    return await this.#ofDevicePlugins();
  }

  /** Records for the next run that the node was registered. Never rejects. */
  async registered(): Promise<void> {
    try {
      await this.#files.makeDirectory(this.#directory, 0o700);
      await this.#files.writeAtomic(`${this.#directory}/${fileName}`, "", 0o600);
    } catch (error) {
      this.#log.warn("cannot record that the node is registered", { error: errorMessage(error) });
    }
  }

  async #wasRegistered(): Promise<boolean> {
    return (await this.#files.list(this.#directory)).some(({ name }) => name === fileName);
  }

  /** No pod can get them here, since podwright does not support device plugins. */
  async #ofDevicePlugins(): Promise<readonly string[]> {
    const path = `${this.#devices}/kubelet_internal_checkpoint`;
    try {
      const { Data } = Checkpoint.parse(JSON.parse(new TextDecoder().decode(await this.#files.read(path, maxBytes))));
      const given = (Data.PodDeviceEntries ?? []).map(({ ResourceName }) => ResourceName);
      return [...new Set([...Object.keys(Data.RegisteredDevices ?? {}), ...given])];
    } catch (error) {
      if (error instanceof FileError && error.code === "ENOENT") return [];
      this.#log.warn("cannot read device checkpoints of an earlier kubelet", { path, error: errorMessage(error) });
      return [];
    }
  }
}

const fileName = "registered";
