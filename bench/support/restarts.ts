import { setTimeout as sleep } from "node:timers/promises";
import type { Cri } from "../../src/ports/cri.ts";
import { ContainerState } from "../../src/ports/gen/runtime/v1/api_pb.js";
import { type Floor, type FloorPod, watchExits } from "./floor.ts";

/** How long a restart may take before the bench gives up. */
export const limitMs = 30_000;

export interface Container {
  readonly id: string;
  /** Wall clock, milliseconds. */
  readonly startedAt: number;
  readonly running: boolean;
}

export async function look(cri: Cri, containerId: string): Promise<Container> {
  const { status } = await cri.runtime.containerStatus({ containerId });
  return {
    id: containerId,
    startedAt: Number((status?.startedAt ?? 0n) / 1_000n) / 1_000,
    running: status?.state === ContainerState.CONTAINER_RUNNING,
  };
}

/** Kills the container's first process and returns the wall clock of that moment, milliseconds. */
export async function killContainer(cri: Cri, containerId: string): Promise<number> {
  const { info } = await cri.runtime.containerStatus({ containerId, verbose: true });
  const { pid } = JSON.parse(info["info"] ?? "{}") as { readonly pid?: number };
  if (pid === undefined || pid <= 1) throw new Error(`the runtime does not tell the process of ${containerId}`);
  const at = performance.timeOrigin + performance.now();
  process.kill(pid, "SIGKILL");
  return at;
}

/** Runs the work with a bare client that restarts exited containers. */
export async function withRestarter<T>(cri: Cri, floor: Floor, work: (by: Restarter) => Promise<T>): Promise<T> {
  const done = new AbortController();
  const restarter = new Restarter(cri, floor);
  const watching = watchExits(cri, done.signal, (id) => restarter.exited(id));
  const working = work(restarter).finally(() => done.abort());
  // If watching fails, the work soon times out; both end before the clean-up.
  const [watched, worked] = await Promise.allSettled([watching, working]);
  if (watched.status === "rejected") throw watched.reason;
  if (worked.status === "rejected") throw worked.reason;
  return worked.value;
}

/** The bare client: for each awaited container, what to do after its exit. */
export class Restarter {
  readonly #cri: Cri;
  readonly #floor: Floor;
  readonly #waits = new Map<string, () => void>();

  constructor(cri: Cri, floor: Floor) {
    this.#cri = cri;
    this.#floor = floor;
  }

  exited(containerId: string): void {
    this.#waits.get(containerId)?.();
  }

  async restart(pod: FloorPod): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waits.set(pod.containerId, resolve);
    const killedAt = await killContainer(this.#cri, pod.containerId);
    const timeout = sleep(limitMs, "no exit event", { ref: false });
    if ((await Promise.race([promise, timeout])) !== undefined) throw new Error(`no exit event within ${limitMs} ms`);
    await this.#floor.startContainer(pod, 1);
    return (await look(this.#cri, pod.containerId)).startedAt - killedAt;
  }
}
