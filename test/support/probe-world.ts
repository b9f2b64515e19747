import type { Container } from "../../src/api/container.ts";
import type { PodSpec } from "../../src/api/pod.ts";
import type { PodStatus } from "../../src/api/status.ts";
import { containerId } from "../../src/base/ids.ts";
import type { JournalInput } from "../../src/journal/entry.ts";
import { CriError } from "../../src/ports/cri.ts";
import { type HttpProbeAnswer, type NetworkProbes, ProbeTargetError } from "../../src/ports/network-probes.ts";
import { ProbeManager } from "../../src/prober/probe-manager.ts";
import type { ContainerStatus } from "../../src/runtime/status/pod-status.ts";
import { MemoryFiles } from "../../src/sim/files.ts";
import { silentLog } from "../../src/sim/machine.ts";
import { ManualClock } from "./manual-clock.ts";
import { testContainer, testPod, testSandbox, testStatus } from "./observed.ts";

/** Wall clock at the start of {@link ProbeWorld}s, in milliseconds. */
export const wallStart = Date.UTC(2026, 10, 20, 14, 0, 0);
/** What a probe of that TCP port is. */
export const port = (number: number): { readonly tcpSocket: { readonly port: number } } => ({
  tcpSocket: { port: number },
});

/** TCP probes by port, with their current results. Each probe is recorded as `port at ms`. */
class FakeNetwork implements NetworkProbes {
  readonly probes: string[] = [];
  readonly down = new Set<number>();
  readonly hanging = new Set<number>();
  readonly #clock: ManualClock;
  readonly #startMs: number;

  constructor(clock: ManualClock) {
    this.#clock = clock;
    this.#startMs = clock.monotonic();
  }

  tcpConnect(_host: string, number: number, signal: AbortSignal): Promise<void> {
    this.probes.push(`${number} at ${this.#clock.monotonic() - this.#startMs}`);
    if (this.hanging.has(number)) {
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("canceled"))));
    }
    return this.down.has(number) ? Promise.reject(new ProbeTargetError("connection refused")) : Promise.resolve();
  }

  httpGet = (): Promise<HttpProbeAnswer> => Promise.reject(new Error("not used here"));
  grpcHealth = (): Promise<never> => Promise.reject(new Error("not used here"));
}

/** A prober on its own, with a network, a disk and a clock that the test controls. */
export class ProbeWorld {
  readonly clock = new ManualClock(wallStart);
  readonly network = new FakeNetwork(this.clock);
  readonly entries: JournalInput[] = [];
  readonly changes: string[] = [];
  readonly files: MemoryFiles;
  readonly manager: ProbeManager;
  /** The pod's status at the API server. */
  said: PodStatus | undefined;

  /** @param files of an earlier run */
  constructor(files?: MemoryFiles, hostIPs: readonly string[] = ["192.0.2.1"]) {
    this.files = files ?? new MemoryFiles(this.clock);
    void this.files.makeDirectory("/var/lib/kubelet/podwright", 0o700);
    this.manager = new ProbeManager({
      clock: this.clock,
      random: { uniform: () => 0.5, bytes: () => new Uint8Array() },
      files: this.files,
      commands: { execSync: () => Promise.reject(new CriError("Internal", "ExecSync", "not used here")) },
      networkProbes: this.network,
      journal: { record: (entry) => this.entries.push(entry) },
      log: silentLog,
      node: { hostIPs, rootDirectory: "/var/lib/kubelet" },
      objects: { secret: () => undefined },
      said: () => this.said,
    });
    this.manager.results.onChange(({ container, type, result }) => this.changes.push(`${container} ${type} ${result}`));
  }

  /** The worker's observation of a pod with this one container, which started `agoMs` ago. */
  see(container: Partial<Container>, change: Partial<ContainerStatus> = {}, options: SeeOptions = {}): void {
    const { agoMs = 0, ending = false, spec = {} } = options;
    const startedAt = BigInt(this.clock.now() - agoMs) * 1_000_000n;
    const pod = testPod({ containers: [{ name: "c", image: "busybox", ...container }], ...spec });
    const instance = testContainer({ id: containerId("c-0"), startedAt, ...change });
    this.manager.observe(pod, testStatus([testSandbox()], [instance]), ending);
  }

  /** `ready`, `started` and the failure of the instance, if any. */
  state(
    container: Partial<Container>,
    id = "c-0",
  ): {
    readonly ready: boolean | undefined;
    readonly started: boolean | undefined;
    readonly unhealthy: ReturnType<ProbeManager["unhealthy"]>;
  } {
    const full: Container = { name: "c", image: "busybox", ...container };
    const instance = testContainer({ id: containerId(id) });
    const status = testStatus([testSandbox()], [instance]);
    const { ready, started } = this.manager.states(testPod({ containers: [full] }), status).get("c") ?? {};
    return { ready, started, unhealthy: this.manager.unhealthy(full, instance) };
  }
}

interface SeeOptions {
  readonly agoMs?: number;
  readonly ending?: boolean;
  readonly spec?: Partial<PodSpec>;
}
