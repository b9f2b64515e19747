import { onAbort } from "../base/abort.ts";
import type { Clock } from "../ports/clock.ts";
import {
  type HttpProbeAnswer,
  type HttpProbeRequest,
  type NetworkProbes,
  ProbeTargetError,
} from "../ports/network-probes.ts";
import type { ProbeType } from "../prober/probe-spec.ts";
import type { RuntimeWorld, SimContainer } from "./runtime-world.ts";

/** When a simulated server is sick, counted from its container's start, again and again; and how that shows. */
export interface Sickness {
  readonly afterMs: number;
  readonly untilMs: number;
  readonly cycleMs: number;
  readonly manner: "hangs" | "errs" | "refuses";
}

/** One probe that was sent to a container, and what it was told. */
export interface SimProbe {
  readonly id: string;
  readonly type: ProbeType;
  readonly ok: boolean;
  readonly atMs: number;
  /** The node's life that sent it. */
  readonly life: number;
}

/** The path of a simulated server's health, for an httpGet probe: it says whose it is and when it is sick. */
export function healthPath(uid: string, container: string, type: ProbeType, sickness: Sickness | undefined): string {
  const { afterMs, untilMs, cycleMs, manner } = sickness ?? { afterMs: 0, untilMs: 0, cycleMs: 1, manner: "errs" };
  return `/health/${[uid, container, type, afterMs, untilMs, cycleMs, manner].join("/")}`;
}

const answerMs = 4;

/**
 * The network of one life of the node. Containers with a health path answer on it as it says; nothing else listens
 * anywhere. What was probed is added to the history.
 */
export class SimNetworkProbes implements NetworkProbes {
  readonly #world: RuntimeWorld;
  readonly #clock: Clock;
  readonly #life: number;
  readonly #history: SimProbe[];

  constructor(world: RuntimeWorld, clock: Clock, life: number, history: SimProbe[]) {
    this.#world = world;
    this.#clock = clock;
    this.#life = life;
    this.#history = history;
  }

  async httpGet({ path }: HttpProbeRequest, signal: AbortSignal): Promise<HttpProbeAnswer> {
    const [, word, uid, name, type, afterMs, untilMs, cycleMs, manner] = path.split("/");
    const container = word === "health" ? this.#running(uid ?? "", name ?? "") : undefined;
    if (container === undefined) throw new ProbeTargetError("connection refused");
    const aliveMs = this.#world.clock.wallMs - Number(container.startedAt / 1_000_000n);
    const phaseMs = aliveMs % Number(cycleMs);
    const ok = phaseMs < Number(afterMs) || phaseMs >= Number(untilMs);
    const atMs = this.#world.clock.nowMs;
    this.#history.push({ id: container.id, type: type as ProbeType, ok, atMs, life: this.#life });
    if (!ok && manner === "refuses") throw new ProbeTargetError("connection refused");
    const { promise, resolve, reject } = Promise.withResolvers<HttpProbeAnswer>();
    using _abort = onAbort(signal, () => reject(signal.reason));
    if (!ok && manner === "hangs") return await promise;
    using _answer = this.#clock.timer("a simulated answer", answerMs, () => resolve({ status: ok ? 200 : 500 }));
    return await promise;
  }

  tcpConnect(): Promise<never> {
    return Promise.reject(new ProbeTargetError("connection refused"));
  }

  grpcHealth(): Promise<never> {
    return Promise.reject(new ProbeTargetError("connection refused"));
  }

  #running(uid: string, name: string): SimContainer | undefined {
    for (const container of this.#world.containers.values()) {
      const { labels, metadata } = container.config;
      if (container.state === "running" && metadata?.name === name && labels["io.kubernetes.pod.uid"] === uid) {
        return container;
      }
    }
    return undefined;
  }
}

const refuse = (): Promise<never> => Promise.reject(new ProbeTargetError("connection refused"));

/** A network on which nothing listens. */
export const simNetworkProbes: NetworkProbes = { httpGet: refuse, tcpConnect: refuse, grpcHealth: refuse };
