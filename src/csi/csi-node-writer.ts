import { ApiError, isApiError } from "../api-client/api-error.ts";
import type { ApiClient } from "../api-client/client.ts";
import type { CsiNode } from "../api/csi-node.ts";
import { nodes } from "../node/resources.ts";
import { csiNodeStep, type DriverOnNode, nodePatch, topologyCollision, type WantedDrivers } from "./csi-node-object.ts";
import { csiNodes } from "./resources.ts";

export interface CsiNodeWriterDependencies {
  readonly client: ApiClient;
  readonly nodeName: string;
}

/** The desired CSINode, without the Node that it belongs to. */
export type WantedEntries = Omit<WantedDrivers, "nodeName">;

/** Two writes (delete and create, or remove an entry and add it), and two more because of another client's. */
const maxSteps = 4;
/** Bad Request, Forbidden, Content Too Large, and Unprocessable Content (Invalid). */
const refusingCodes: ReadonlySet<number> = new Set([400, 403, 413, 422]);

/** What the Node or its CSINode cannot have, in upstream's words: others of the node's drivers may be fine. */
export class RefusedError extends Error {
  /** Only another answer of the driver, or another Node, helps. */
  readonly isFinal: boolean;

  constructor(
    object: "Node" | "CSINode",
    why: string,
    { isFinal = false, cause }: ErrorOptions & { isFinal?: boolean } = {},
  ) {
    super(`error updating ${object} object with CSI driver node info: ${why}`, { cause });
    this.isFinal = isFinal;
  }
}

/** Writes the Node and its CSINode. Its methods reject with {@link RefusedError}, or with the error of the request. */
export class CsiNodeWriter {
  readonly #deps: CsiNodeWriterDependencies;

  constructor(deps: CsiNodeWriterDependencies) {
    this.#deps = deps;
  }

  /** The driver's node ID in the Node's annotation, and its topology in the Node's labels. */
  async addToNode(driver: DriverOnNode, signal: AbortSignal): Promise<void> {
    await this.#patchNode({ installed: [driver], removed: new Set() }, signal);
  }

  /** The Node's annotation without the driver. Its labels stay. */
  async removeFromNode(name: string, signal: AbortSignal): Promise<void> {
    await this.#patchNode({ installed: [], removed: new Set([name]) }, signal);
  }

  /** Brings the CSINode to the desired state, whatever it is now. */
  async publish(wanted: WantedEntries, signal: AbortSignal): Promise<void> {
    const { nodeName } = this.#deps;
    for (let steps = 1; steps <= maxSteps; steps++) {
      try {
        const step = csiNodeStep(await this.#find(signal), { ...wanted, nodeName });
        if (step.kind === "keep") return;
        if (step.kind === "delete") await this.#delete(signal);
        else await this.#write(step.kind, step.object, signal);
        if (step.kind !== "delete" && step.isLast) return;
      } catch (error) {
        if (isRefusal(error)) throw new RefusedError("CSINode", error.message, { cause: error });
        // Another writer was faster.
        if (!isApiError(error, "Conflict", "AlreadyExists", "NotFound") || steps === maxSteps) throw error;
      }
    }
    throw new Error(`CSINode ${nodeName} keeps being changed by another client`);
  }

  async #patchNode(change: Pick<WantedDrivers, "installed" | "removed">, signal: AbortSignal): Promise<void> {
    const { client, nodeName: name } = this.#deps;
    try {
      const node = await client.get({ lane: "objects", resource: nodes, place: { name }, signal });
      for (const driver of change.installed) {
        const collision = topologyCollision(node, driver);
        if (collision !== undefined) throw new RefusedError("Node", collision, { isFinal: true });
      }
      const patch = nodePatch(node, change);
      if (patch === undefined) return;
      const place = { name, subresource: "status" };
      await client.patch({ lane: "status", resource: nodes, place, signal }, "strategic", patch);
    } catch (error) {
      throw isRefusal(error) ? new RefusedError("Node", error.message, { cause: error }) : error;
    }
  }

  async #find(signal: AbortSignal): Promise<CsiNode | undefined> {
    const { client, nodeName: name } = this.#deps;
    try {
      return await client.get({ lane: "objects", resource: csiNodes, place: { name }, signal });
    } catch (error) {
      if (isApiError(error, "NotFound")) return undefined;
      throw error;
    }
  }

  async #write(kind: "create" | "replace", object: object, signal: AbortSignal): Promise<void> {
    const { client, nodeName: name } = this.#deps;
    const call = { lane: "objects", resource: csiNodes, signal } as const;
    if (kind === "create") await client.create({ ...call, place: {} }, object);
    else await client.replace({ ...call, place: { name } }, object);
  }

  async #delete(signal: AbortSignal): Promise<void> {
    const { client, nodeName: name } = this.#deps;
    await client.delete({ lane: "objects", resource: csiNodes, place: { name }, signal }, {});
  }
}

/** The API server has looked at the content and does not want it. Other failures are over some time. */
function isRefusal(error: unknown): error is ApiError {
  return error instanceof ApiError && refusingCodes.has(error.code);
}
