import type { Pod } from "../../src/api/pod.ts";
import type { PodStatus } from "../../src/api/status.ts";
import { podUid } from "../../src/base/ids.ts";
import { SimClock } from "../../src/sim/clock.ts";
import { SimNode } from "../../src/sim/life/node.ts";
import { shutdownRoom } from "../../src/sim/life/sim-node-rooms.ts";
import type { SimLoginManager } from "../../src/sim/login-manager.ts";
import { SimRandom } from "../../src/sim/random.ts";
import { RuntimeWorld } from "../../src/sim/runtime-world.ts";
import type { ShutdownPeriod } from "../../src/shutdown/periods.ts";
import type { ShutdownTimes } from "../../src/shutdown/shutdown-record.ts";

/** A machine that is shut down and started again, with a node that may delay the shutdown. */
export class ShutdownScene {
  readonly clock = new SimClock(1_700_000_000_000);
  readonly world = new RuntimeWorld(this.clock);
  readonly node: SimNode;
  readonly login: SimLoginManager;
  readonly times: ShutdownTimes[] = [];
  /** When the machine powered off, in simulated ms, and the last lock that its login manager waited for. */
  readonly powerOffs: { readonly atMs: number; readonly why: string }[] = [];
  readonly starts: { readonly atMs: number; readonly uid: string }[] = [];

  constructor(periods: readonly ShutdownPeriod[], seed = 1) {
    this.world.images.add("busybox:latest");
    const { clock, world } = this;
    this.node = new SimNode({
      ...{ clock, world, random: new SimRandom(seed) },
      makeRooms: (parts) => [shutdownRoom(this.node, parts, periods, (times) => void this.times.push(times))],
    });
    const { power } = this.node;
    this.login = power.login;
    power.onOff((why) => void this.powerOffs.push({ atMs: clock.nowMs, why }));
    world.onChange(({ type, podUid: uid }) => {
      if (type === "started" || type === "sandboxStarted") this.starts.push({ atMs: clock.nowMs, uid });
    });
  }

  async boot(): Promise<void> {
    await this.node.power.boot();
  }

  async pass(ms: number): Promise<void> {
    await this.clock.run(this.clock.nowMs + ms);
  }

  /** A pod of the API server, or with `file` a static one. */
  add(uid: string, spec: Pod["spec"], source: "api" | "file" = "api"): void {
    const annotations = { "kubernetes.io/config.source": source };
    this.node.add({ metadata: { namespace: "default", name: uid, uid: podUid(uid), annotations }, spec });
  }

  status(uid: string): PodStatus | undefined {
    return this.node.pods().find(({ view }) => view.ref.uid === uid)?.status;
  }

  /** With all of their containers. */
  loseSandboxes(...uids: readonly string[]): void {
    for (const { id, config } of this.world.sandboxes.values()) {
      if (uids.includes(config.metadata?.uid ?? "")) this.world.stopSandbox(id);
    }
  }

  /** Phase and reason. */
  told(uid: string): readonly (string | undefined)[] {
    const { phase, reason } = this.status(uid) ?? {};
    return [phase, reason];
  }

  runs(uid: string): boolean {
    return [...this.world.containers.values()].some(
      ({ state, config }) => state === "running" && config.labels["io.kubernetes.pod.uid"] === uid,
    );
  }

  /** When podwright began to end each pod for the shutdown, in simulated ms since the first. */
  terminated(): Record<string, number> {
    const entries = this.node.entries.filter(({ what }) => what === "Terminated");
    return Object.fromEntries(entries.map(({ pod, atMs }) => [pod?.uid, atMs - (entries[0]?.atMs ?? 0)]));
  }
}
