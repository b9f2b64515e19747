import { onAbort } from "../base/abort.ts";
import type { Clock } from "../ports/clock.ts";
import {
  type GrpcHealthAnswer,
  type HttpProbeAnswer,
  type HttpProbeRequest,
  type NetworkProbes,
  ProbeTargetError,
} from "../ports/network-probes.ts";
import { type Health, parseHealth } from "./health.ts";
import type { RuntimeWorld } from "./runtime-world.ts";

const answerMs = 4;
/** The address of the simulated node. */
const nodeAddress = "10.0.0.1";

/**
 * The network in one run of the node. Containers respond to HTTP on their health path, to gRPC for a service of that
 * name, and to TCP on their ports; nothing else listens.
 */
export class SimNetworkProbes implements NetworkProbes {
  readonly #world: RuntimeWorld;
  readonly #clock: Clock;

  constructor(world: RuntimeWorld, clock: Clock) {
    this.#world = world;
    this.#clock = clock;
  }

  async httpGet({ path }: HttpProbeRequest, signal: AbortSignal): Promise<HttpProbeAnswer> {
    const ok = await this.#ask(parseHealth(path), signal);
    return { status: ok ? 200 : 500 };
  }

  async grpcHealth(_host: string, _port: number, service: string, signal: AbortSignal): Promise<GrpcHealthAnswer> {
    const ok = await this.#ask(parseHealth(service), signal);
    return { code: 0, status: ok ? "SERVING" : "NOT_SERVING" };
  }

  async tcpConnect(host: string, _port: number, signal: AbortSignal): Promise<void> {
    // Pods in the host network respond on the node's own address.
    const isUp =
      host === nodeAddress ||
      [...this.#world.sandboxes.values()].some(({ id, ip, ready }) => {
        return (
          ready &&
          ip === host &&
          [...this.#world.containers.values()].some((container) => {
            return container.sandboxId === id && container.state === "running";
          })
        );
      });
    if (!isUp) throw new ProbeTargetError("connection refused");
    await this.#clock.sleep("a simulated connection", answerMs, signal);
  }

  async #ask(health: Health | undefined, signal: AbortSignal): Promise<boolean> {
    const container = health && this.#world.running(health.uid, health.container);
    if (health === undefined || container === undefined) throw new ProbeTargetError("connection refused");
    const ok = this.#world.probe(container, health);
    if (!ok && health.manner === "refuses") throw new ProbeTargetError("connection refused");
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    using _abort = onAbort(signal, () => reject(signal.reason));
    if (!ok && health.manner === "hangs") return await promise;
    using _answer = this.#clock.timer("a simulated answer", answerMs, () => resolve(ok));
    return await promise;
  }
}

const refuse = (): Promise<never> => Promise.reject(new ProbeTargetError("connection refused"));

/** A network on which nothing listens. */
export const simNetworkProbes: NetworkProbes = { httpGet: refuse, tcpConnect: refuse, grpcHealth: refuse };
