import type { ServiceImpl } from "@connectrpc/connect";
import { Code, ConnectError } from "@connectrpc/connect";
import type { DescService } from "@bufbuild/protobuf";
import { isCriError } from "../../src/ports/cri.ts";
import type { RpcCallOptions } from "../../src/ports/rpc.ts";
import { ImageService, RuntimeService } from "../../src/ports/gen/runtime/v1/api_pb.js";
import { isUnary } from "../../src/ports/rpc-methods.ts";
import { SimClock } from "../../src/sim/clock.ts";
import { SimConnection } from "../../src/sim/cri.ts";
import { type CriFaults, noFaults } from "../../src/sim/cri-faults.ts";
import { SimRandom } from "../../src/sim/random.ts";
import { RuntimeWorld } from "../../src/sim/runtime-world.ts";
import type { RuntimeWays } from "../../src/sim/runtime-ways.ts";
import { CriServer } from "./cri-server.ts";

/** The simulated time advances with the real one, in steps of this size in ms. */
const stepMs = 2;

type AnyCall = (request: object, options: RpcCallOptions) => Promise<object> | AsyncIterable<object>;

/** The simulated runtime behind a real socket, with its runtime-specific behaviour. It runs in real time. */
export class RuntimeServer implements AsyncDisposable {
  readonly clock = new SimClock(Date.now());
  readonly world: RuntimeWorld;
  readonly wire: CriServer;
  readonly #connection: SimConnection;
  readonly #startedMs = performance.now();
  readonly #timer: NodeJS.Timeout;
  #passing = false;

  constructor(ways: RuntimeWays) {
    this.world = new RuntimeWorld(this.clock, undefined, ways);
    this.world.images.add("busybox:latest");
    this.#connection = new SimConnection(this.world, this.clock.incarnation(), new SimRandom(1), noFaults);
    const { runtime, images } = this.#connection.cri;
    const handlers = { runtime: served(RuntimeService, runtime), images: served(ImageService, images) };
    this.wire = new CriServer(handlers, ways);
    this.#timer = setInterval(() => void this.#pass(), stepMs);
  }

  setFaults(faults: Partial<CriFaults>): void {
    this.#connection.setFaults({ ...noFaults, ...faults });
  }

  /** Restarts it; containers keep running. */
  async restart(): Promise<void> {
    this.world.goDown();
    await this.wire.kill();
    this.world.comeUp(() => false);
    await this.wire.start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await this.wire[Symbol.asyncDispose]();
  }

  async #pass(): Promise<void> {
    if (this.#passing) return;
    this.#passing = true;
    await this.clock.run(performance.now() - this.#startedMs);
    this.#passing = false;
  }
}

/** A simulated runtime with this behaviour on its own socket. */
export async function startRuntimeServer(ways: RuntimeWays): Promise<RuntimeServer> {
  const server = new RuntimeServer(ways);
  await server.wire.start();
  return server;
}

/** Converts a port's service to handlers of a server. */
function served<Service extends DescService>(service: Service, calls: object): Partial<ServiceImpl<Service>> {
  const handlers = service.methods.map((method) => {
    const call = (calls as Record<string, AnyCall>)[method.localName];
    const unary = async (request: object, context: HandlerLimits): Promise<object> => {
      try {
        return (await call?.(request, limits(context.signal, context.timeoutMs()))) ?? {};
      } catch (error) {
        throw coded(error);
      }
    };
    const streaming = (request: object, { signal }: HandlerLimits): AsyncIterable<object> =>
      codedStream(call?.(request, { signal }) as AsyncIterable<object>);
    return [method.localName, isUnary(method) ? unary : streaming];
  });
  // The type is computed from this very descriptor; TypeScript can't follow the loop.
  return Object.fromEntries(handlers) as Partial<ServiceImpl<Service>>;
}

async function* codedStream(messages: AsyncIterable<object>): AsyncGenerator<object> {
  try {
    yield* messages;
  } catch (error) {
    throw coded(error);
  }
}

interface HandlerLimits {
  readonly signal: AbortSignal;
  timeoutMs(): number | undefined;
}

function limits(signal: AbortSignal, timeoutMs: number | undefined): RpcCallOptions {
  return timeoutMs === undefined ? { signal } : { signal, timeoutMs };
}

function coded(error: unknown): unknown {
  return isCriError(error) ? new ConnectError(error.message, Code[error.code]) : error;
}
