import type { MessageInitShape } from "@bufbuild/protobuf";
import { orAborted } from "../base/abort.ts";
import { TransientList } from "../base/transient-list.ts";
import type { StorageOperationName } from "../journal/observer.ts";
import type { Clock } from "../ports/clock.ts";
import type {
  Node,
  NodeExpandVolumeRequestSchema,
  NodeGetVolumeStatsRequestSchema,
  NodeGetVolumeStatsResponse,
  NodePublishVolumeRequestSchema,
  NodeStageVolumeRequestSchema,
} from "../ports/gen/csi/v1/csi_pb.js";
import { RpcError, type RpcCallOptions, type RpcService } from "../ports/rpc.ts";
import { measuredOperation, type OperationObserver, pluginLabel } from "../volumes/volume-operations.ts";
import { CsiCallError } from "./call-error.ts";
import { csiDirectoryName } from "./names.ts";
import type { AccessModes } from "./requests.ts";
import type { DriverOnNode } from "./csi-node-object.ts";
import type { VolumeTurns } from "./volume-turns.ts";

/** Upstream's, for each call. */
export const callLimitMs = 120_000;

/** Optional features of a driver's node service (NodeServiceCapability.RPC.Type, by number). */
export const capability = {
  stageUnstage: 1,
  volumeStats: 2,
  expand: 3,
  volumeCondition: 4,
  singleNodeMultiWriter: 5,
  volumeMountGroup: 6,
} as const;

/** A call in progress. */
export interface OutstandingCsiCall {
  readonly driver: string;
  readonly method: string;
  /** The volume's handle; may be empty. */
  readonly volume: string;
  readonly sinceMonotonicMs: number;
}

export interface CsiClientParts {
  readonly clock: Clock;
  readonly name: string;
  readonly calls: RpcService<typeof Node> & Disposable;
  /** Of all drivers and their registrations. */
  readonly turns: VolumeTurns;
  readonly accessModes: AccessModes;
  /** Aborts when podwright stops. */
  readonly stopping: AbortSignal;
  /** Called after each call. @param code of gRPC, including `OK` */
  readonly called: (driver: string, method: string, code: string, durationMs: number, migrated: boolean) => void;
  readonly observer?: OperationObserver;
}

export interface CsiCallOptions {
  /** Of a call that changes something: keeps it from being made, and does not cancel it. */
  readonly signal: AbortSignal;
  /** The volume was migrated from an in-tree plugin. */
  readonly migrated?: boolean | undefined;
}

/** A call that undoes a volume's mounts, or its devices. */
export interface CsiRemovalOptions extends CsiCallOptions {
  readonly mode: "Filesystem" | "Block";
}

/**
 * One registration of a CSI driver: its calls, with deadlines and durations, and one at a time of those that change a
 * volume. Every call that was made rejects with {@link CsiCallError} only.
 */
export class CsiClient implements Disposable {
  readonly name: string;
  readonly accessModes: AccessModes;
  readonly #parts: CsiClientParts;
  readonly #outstanding = new TransientList<OutstandingCsiCall>();
  readonly #closed = new AbortController();
  /** Calls that change something, and those that wait to be made. */
  #changes = 0;
  /** Called once it has closed after its last call; undefined: it is registered. */
  #retired: (() => void) | undefined;
  /** Of the driver's process that answers at present; undefined: not known. */
  #capabilities: ReadonlySet<number> | undefined;
  /** One request is shared by all callers. */
  #asking: Promise<ReadonlySet<number>> | undefined;

  constructor(parts: CsiClientParts) {
    this.name = parts.name;
    this.accessModes = parts.accessModes;
    this.#parts = parts;
  }

  /** Calls in progress, the oldest first. */
  get outstanding(): readonly OutstandingCsiCall[] {
    return [...this.#outstanding];
  }

  /** Cancels calls in progress. */
  [Symbol.dispose](): void {
    this.#closed.abort(new Error(`CSI driver ${this.name} is deregistered`));
    this.#parts.calls[Symbol.dispose]();
  }

  /** Its registration has ended: closes once its calls have ended, also those that wait: all of them have a limit. */
  retire(closed: () => void): void {
    this.#retired = closed;
    this.#closeIdle();
  }

  /** Its process may have been replaced, perhaps by one of another version, while its registrar's socket stays. */
  connectionLost(): void {
    this.#capabilities = undefined;
  }

  #closeIdle(): void {
    if (this.#retired === undefined || this.#outstanding.size + this.#changes > 0) return;
    this[Symbol.dispose]();
    this.#retired();
  }

  async supports(which: keyof typeof capability, options: CsiCallOptions): Promise<boolean> {
    options.signal.throwIfAborted();
    const known = this.#capabilities ?? (await this.#asked(options));
    return known.has(capability[which]);
  }

  async nodeInfo(signal: AbortSignal): Promise<DriverOnNode> {
    const { calls } = this.#parts;
    const info = await this.#call("NodeGetInfo", "", { signal }, (options) => calls.nodeGetInfo({}, options));
    const { nodeId, maxVolumesPerNode: maxVolumes, accessibleTopology } = info;
    return { name: this.name, nodeId, maxVolumes, topology: accessibleTopology?.segments ?? {} };
  }

  async stage(request: MessageInitShape<typeof NodeStageVolumeRequestSchema>, options: CsiCallOptions): Promise<void> {
    const call = (limits: RpcCallOptions) => this.#parts.calls.nodeStageVolume(request, limits);
    await this.#change("NodeStageVolume", request.volumeId, options, call);
  }

  async unstage(volumeId: string, stagingTargetPath: string, options: CsiRemovalOptions): Promise<void> {
    const call = (limits: RpcCallOptions) =>
      this.#parts.calls.nodeUnstageVolume({ volumeId, stagingTargetPath }, limits);
    const operation = options.mode === "Block" ? "unmap_device" : "unmount_device";
    await this.#change("NodeUnstageVolume", volumeId, options, call, operation);
  }

  async publish(
    request: MessageInitShape<typeof NodePublishVolumeRequestSchema>,
    options: CsiCallOptions,
  ): Promise<void> {
    const call = (limits: RpcCallOptions) => this.#parts.calls.nodePublishVolume(request, limits);
    await this.#change("NodePublishVolume", request.volumeId, options, call);
  }

  async unpublish(volumeId: string, targetPath: string, options: CsiRemovalOptions): Promise<void> {
    const call = (limits: RpcCallOptions) => this.#parts.calls.nodeUnpublishVolume({ volumeId, targetPath }, limits);
    const operation = options.mode === "Block" ? "unmap_volume" : "volume_unmount";
    await this.#change("NodeUnpublishVolume", volumeId, options, call, operation);
  }

  async stats(
    request: MessageInitShape<typeof NodeGetVolumeStatsRequestSchema>,
    options: CsiCallOptions,
  ): Promise<NodeGetVolumeStatsResponse> {
    const call = (limits: RpcCallOptions) => this.#parts.calls.nodeGetVolumeStats(request, limits);
    return await this.#call("NodeGetVolumeStats", request.volumeId, options, call);
  }

  async expand(
    request: MessageInitShape<typeof NodeExpandVolumeRequestSchema>,
    options: CsiCallOptions,
  ): Promise<void> {
    const call = (limits: RpcCallOptions) => this.#parts.calls.nodeExpandVolume(request, limits);
    await this.#change("NodeExpandVolume", request.volumeId, options, call);
  }

  async #asked(options: CsiCallOptions): Promise<ReadonlySet<number>> {
    const asking = (this.#asking ??= this.#askCapabilities({ ...options, signal: this.#closed.signal }).finally(() => {
      this.#asking = undefined;
    }));
    const ended = asking.then(
      () => {},
      () => {},
    );
    await orAborted(ended, options.signal);
    options.signal.throwIfAborted();
    return await asking;
  }

  async #askCapabilities(options: CsiCallOptions): Promise<ReadonlySet<number>> {
    const { calls } = this.#parts;
    const answer = await this.#call("NodeGetCapabilities", "", options, (limits) => {
      return calls.nodeGetCapabilities({}, limits);
    });
    const known = answer.capabilities.flatMap(({ type }) => (type.case === "rpc" ? [type.value.type] : []));
    this.#capabilities = new Set<number>(known);
    return this.#capabilities;
  }

  /** An operation of the kubelet that is hardly more than one call. */
  async #measured(
    operation: StorageOperationName,
    { migrated, signal }: CsiCallOptions,
    call: () => Promise<unknown>,
  ): Promise<void> {
    const label = { plugin: pluginLabel(csiDirectoryName, this.name), migrated };
    await measuredOperation(this.#parts, operation, label, call, signal);
  }

  /**
   * A call that changes something. Its driver may be in the middle of a mount, and needs no locks: the specification has a
   * volume's next call follow the end of this one. So it waits for its turn, and after that only its deadline and the end of
   * podwright cancel it. Rejects with the signal's reason if that aborts before: nothing was called.
   * @param operation measured, without the wait
   */
  async #change<T>(
    method: string,
    volume = "",
    options: CsiCallOptions,
    call: (options: RpcCallOptions) => Promise<T>,
    operation?: StorageOperationName,
  ): Promise<void> {
    const { stopping, turns } = this.#parts;
    const { signal, migrated } = options;
    const change = (): Promise<T> =>
      this.#call(method, volume, { signal: signal.aborted ? signal : stopping, migrated }, call);
    this.#changes++;
    try {
      using _turn = await turns.take(this.name, volume, method, signal);
      await (operation === undefined ? change() : this.#measured(operation, options, change));
    } finally {
      this.#changes--;
      this.#closeIdle();
    }
  }

  async #call<T>(
    method: string,
    volume: string | undefined,
    { signal, migrated = false }: CsiCallOptions,
    call: (options: RpcCallOptions) => Promise<T>,
  ): Promise<T> {
    const { clock, called } = this.#parts;
    const entry = { driver: this.name, method, volume: volume ?? "", sinceMonotonicMs: clock.monotonic() };
    const outstanding = this.#outstanding.add(entry);
    let code = "OK";
    try {
      return await call({ signal, timeoutMs: callLimitMs });
    } catch (error) {
      const failure = new CsiCallError(error instanceof RpcError ? error : new RpcError("Internal", String(error)));
      ({ code } = failure);
      if (code === "Unavailable") this.connectionLost();
      throw failure;
    } finally {
      outstanding[Symbol.dispose]();
      called(this.name, `/csi.v1.Node/${method}`, code, clock.monotonic() - entry.sinceMonotonicMs, migrated);
      this.#closeIdle();
    }
  }
}
