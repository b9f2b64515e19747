import { appendFileSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { HandlerContext } from "@connectrpc/connect";
import { systemClock } from "../../src/linux/processes/clock.ts";
import { serveGrpc } from "../../src/grpc/server.ts";
import { Identity, Node, NodeServiceCapability_RPC_Type } from "../../src/ports/gen/csi/v1/csi_pb.js";
import { type RpcCode, RpcError } from "../../src/ports/rpc.ts";
import { listenAt, noLimit, serveRegistration } from "./csi-registrar.ts";
import { CsiVolumes } from "./csi-volumes.ts";

export interface CsiDriverOptions {
  readonly name?: string;
  /** The kubelet's root directory. */
  readonly root: string;
  /** Where the driver keeps its socket, its log of calls and, unless told otherwise, its volumes. */
  readonly directory: string;
  /** The directory of volumes, the same for every node of the driver. */
  readonly volumes?: string;
  readonly capabilities?: readonly (keyof typeof NodeServiceCapability_RPC_Type)[];
  /** Can be changed later. */
  readonly maxVolumes?: bigint;
  readonly topology?: Readonly<Record<string, string>>;
  readonly nodeId?: string;
  readonly versions?: readonly string[];
  /** Of its registration. */
  readonly type?: string;
  /** The registration's socket below `plugins_registry`. */
  readonly socket?: string;
}

/** A call as the driver saw it. */
export interface DriverCall {
  readonly method: string;
  /** As JSON shows it; secrets included, as tests ask for them. */
  readonly request: Readonly<Record<string, unknown>>;
  code: string;
  readonly atMs: number;
  /** What was left to its deadline. */
  readonly limitMs: number | undefined;
  /** When the driver had its answer; undefined: not yet. */
  endedMs: number | undefined;
}

/** What goes wrong with the next calls of a method. */
interface Fault {
  readonly method: string;
  readonly code: RpcCode;
  /** Only those for this volume's handle. */
  readonly volume: string | undefined;
  /** The driver has done it before it answers so. */
  readonly afterwards: boolean;
  left: number;
}

export interface FaultOptions extends Partial<Pick<Fault, "afterwards" | "volume">> {
  readonly times?: number;
}

/** Where a call is stopped: before or after the driver has done it, or right after its answer. */
export type CallMoment = "before" | "after" | "answered";

/** A call that has stopped. */
export interface StoppedCall {
  readonly reached: Promise<void>;
  readonly release: () => void;
  /** It does nothing more. */
  readonly end: () => void;
}

interface Stop {
  readonly method: string;
  readonly moment: CallMoment;
  readonly reached: PromiseWithResolvers<void>;
  readonly released: PromiseWithResolvers<void>;
}

const all: readonly (keyof typeof NodeServiceCapability_RPC_Type)[] = [
  "STAGE_UNSTAGE_VOLUME",
  "GET_VOLUME_STATS",
  "EXPAND_VOLUME",
  "VOLUME_CONDITION",
  "SINGLE_NODE_MULTI_WRITER",
];

type Request = Readonly<Record<string, unknown>>;

/**
 * A CSI driver on real sockets: it stages and publishes directories by bind mounts, and devices by loop devices. What the
 * specification forbids its caller it writes down ({@link violations}); it fails, hangs and vanishes by command.
 */
export class CsiDriver implements AsyncDisposable {
  readonly name: string;
  readonly volumes: CsiVolumes;
  /** Append-only, over restarts of the driver. */
  readonly calls: DriverCall[] = [];
  readonly violations: string[] = [];
  /** The kubelet's registration notifications. */
  readonly notified: { readonly registered: boolean; readonly error: string }[] = [];
  /** As many of its volumes have a place on the node; 0: any number. */
  maxVolumes: bigint;
  readonly #options: CsiDriverOptions;
  readonly #faults: Fault[] = [];
  #stops: Stop[] = [];
  readonly #hanging = new Map<string, PromiseWithResolvers<void>>();
  #server: AsyncDisposable | undefined;
  #registrar: AsyncDisposable | undefined;

  constructor(options: CsiDriverOptions) {
    this.name = options.name ?? "test.csi.example.org";
    this.maxVolumes = options.maxVolumes ?? 0n;
    this.#options = options;
    mkdirSync(options.directory, { recursive: true });
    this.volumes = new CsiVolumes(options.volumes ?? join(options.directory, "volumes"), this.violations);
  }

  get endpoint(): string {
    return join(this.#options.directory, "csi.sock");
  }

  get registrationSocket(): string {
    return join(this.#options.root, "plugins_registry", this.#options.socket ?? `${this.name}-reg.sock`);
  }

  /** Serves the driver, and makes it known to the kubelet. */
  async start(): Promise<this> {
    await this.serve();
    await this.register();
    return this;
  }

  async serve(): Promise<void> {
    this.#server = await serveGrpc(
      (router) => {
        router.service(Node, this.#node());
        router.service(Identity, {
          getPluginInfo: () => ({ name: this.name, vendorVersion: "1" }),
          probe: () => ({ ready: true }),
        });
      },
      { clock: systemClock, limit: noLimit },
      (server) => listenAt(server, this.endpoint),
    );
  }

  async register(): Promise<void> {
    const { versions = ["1.0.0"], type = "CSIPlugin" } = this.#options;
    this.#registrar = await serveRegistration(
      this.registrationSocket,
      async () => {
        await this.#hanging.get("GetInfo")?.promise;
        return { type, name: this.name, endpoint: this.endpoint, supportedVersions: [...versions] };
      },
      (registered, error) => this.notified.push({ registered, error }),
    );
  }

  /** Its process dies; what it has mounted stays. */
  async stop(): Promise<void> {
    for (const { resolve } of this.#hanging.values()) resolve();
    await this.#server?.[Symbol.asyncDispose]();
    this.#server = undefined;
  }

  async unregister(): Promise<void> {
    await this.#registrar?.[Symbol.asyncDispose]();
    this.#registrar = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.unregister();
    await this.stop();
    this.volumes.clear();
    rmSync(this.endpoint, { force: true });
  }

  /** The next calls of the method fail. */
  fail(method: string, code: RpcCode, { times = 1, afterwards = false, volume }: FaultOptions = {}): void {
    this.#faults.push({ method, code, volume, afterwards, left: times });
  }

  /** No call fails any more. */
  mend(): void {
    for (const fault of this.#faults) fault.left = 0;
  }

  /** Calls of the method do not end until the result is disposed of. */
  hang(method: string): Disposable {
    const released = Promise.withResolvers<void>();
    this.#hanging.set(method, released);
    return {
      [Symbol.dispose]: () => {
        released.resolve();
        this.#hanging.delete(method);
      },
    };
  }

  /** The next call of a method stops at a moment until it is released, or ends there. */
  stopAt(method: string, moment: CallMoment): StoppedCall {
    const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    // Without a call there, nothing waits for it.
    released.promise.catch(() => {});
    this.#stops.push({ method, moment, reached, released });
    const end = (): void => released.reject(new Error("the driver's process has ended"));
    return { reached: reached.promise, release: released.resolve, end };
  }

  /** Its process ends at a stopped call, and another one starts at once. */
  async restartAt({ end }: StoppedCall): Promise<void> {
    await this.stop();
    end();
    await this.serve();
  }

  async #pass(method: string, moment: CallMoment): Promise<void> {
    const stop = this.#stops.find((each) => each.method === method && each.moment === moment);
    if (stop === undefined) return;
    this.#stops = this.#stops.filter((each) => each !== stop);
    stop.reached.resolve();
    // An answer is not held up by what follows it.
    if (moment !== "answered") await stop.released.promise;
  }

  /** Names of the calls so far, without those that only ask. */
  get effects(): readonly string[] {
    const asks = new Set(["NodeGetInfo", "NodeGetCapabilities", "NodeGetVolumeStats"]);
    return this.calls.filter(({ method }) => !asks.has(method)).map(({ method }) => method);
  }

  callsOf(method: string): readonly DriverCall[] {
    return this.calls.filter((call) => call.method === method);
  }

  #node() {
    const { topology = {}, nodeId = "node1", capabilities = all } = this.#options;
    const { volumes } = this;
    const answer =
      <T extends object>(method: string, work: (request: never) => T) =>
      async (request: Request, context: HandlerContext): Promise<T> =>
        await this.#answer(method, request, context, () => work(request as never));
    return {
      nodeGetInfo: answer("NodeGetInfo", () => ({
        nodeId,
        maxVolumesPerNode: this.maxVolumes,
        accessibleTopology: { segments: { ...topology } },
      })),
      nodeGetCapabilities: answer("NodeGetCapabilities", () => ({
        capabilities: capabilities.map((name) => ({
          type: { case: "rpc" as const, value: { type: NodeServiceCapability_RPC_Type[name] } },
        })),
      })),
      nodeStageVolume: answer("NodeStageVolume", volumes.stage.bind(volumes)),
      nodeUnstageVolume: answer("NodeUnstageVolume", volumes.unstage.bind(volumes)),
      nodePublishVolume: answer("NodePublishVolume", volumes.publish.bind(volumes)),
      nodeUnpublishVolume: answer("NodeUnpublishVolume", volumes.unpublish.bind(volumes)),
      nodeGetVolumeStats: answer("NodeGetVolumeStats", volumes.stats.bind(volumes)),
      nodeExpandVolume: answer("NodeExpandVolume", volumes.expand.bind(volumes)),
    };
  }

  async #answer<T>(method: string, request: Request, context: HandlerContext, work: () => T): Promise<T> {
    const call: DriverCall = {
      method,
      request: shown(request),
      code: "OK",
      atMs: performance.now(),
      limitMs: context.timeoutMs(),
      endedMs: undefined,
    };
    this.calls.push(call);
    appendFileSync(join(this.#options.directory, "calls.log"), `${method} ${JSON.stringify(call.request)}\n`);
    await this.#hanging.get(method)?.promise;
    await this.#pass(method, "before");
    const fault = this.#faults.find(
      (each) => each.method === method && each.left > 0 && [undefined, request["volumeId"]].includes(each.volume),
    );
    try {
      if (fault?.afterwards === true) work();
      if (fault !== undefined) {
        fault.left--;
        throw new RpcError(fault.code, `${method} fails by command`);
      }
      const answer = work();
      await this.#pass(method, "after");
      setImmediate(() => void this.#pass(method, "answered"));
      return answer;
    } catch (error) {
      call.code = error instanceof RpcError ? error.code : "Internal";
      throw error;
    } finally {
      call.endedMs = performance.now();
    }
  }
}

/** Without the marks of its message type. */
function shown(request: Request): Request {
  const text = JSON.stringify(request, (key, value: unknown) => {
    if (key.startsWith("$")) return undefined;
    return typeof value === "bigint" ? String(value) : value;
  });
  return JSON.parse(text) as Request;
}
