import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import type { JournalInput } from "../../src/journal/entry.ts";
import { StartUp } from "../../src/base/start-up.ts";
import { runEvented } from "../../src/pleg/evented.ts";
import { Pleg } from "../../src/pleg/pleg.ts";
import { PodCache } from "../../src/pleg/pod-cache.ts";
import type { Cri } from "../../src/ports/cri.ts";
import * as pb from "../../src/ports/gen/runtime/v1/api_pb.js";
import { behaviourCommand } from "../../src/sim/behaviour.ts";
import { SimClock } from "../../src/sim/clock.ts";
import { SimConnection } from "../../src/sim/cri.ts";
import { noFaults } from "../../src/sim/cri-faults.ts";
import { silentLog } from "../../src/sim/machine.ts";
import { SimRandom } from "../../src/sim/random.ts";
import { RuntimeWorld } from "../../src/sim/runtime-world.ts";
import { usualWays } from "../../src/sim/runtime-ways.ts";
import type { SimContainer } from "../../src/sim/world-model.ts";

const labels = (uid: string): Record<string, string> => ({
  "io.kubernetes.pod.uid": uid,
  "io.kubernetes.pod.name": `pod-${uid}`,
  "io.kubernetes.pod.namespace": "default",
});

/** PLEG over a simulated runtime. */
export class PlegBench {
  readonly clock = new SimClock(1_000_000);
  readonly node = this.clock.incarnation();
  readonly world: RuntimeWorld;
  readonly connection: SimConnection;
  readonly cache = new PodCache(this.node);
  readonly journal: JournalInput[] = [];
  readonly end = new AbortController();
  readonly pleg: Pleg;
  cri: Cri;

  /** Log lines about events. */
  readonly said: string[] = [];
  /** Log lines about relists. */
  readonly saidOfListings: string[] = [];

  constructor({ faults = noFaults, capacity = 1000, wrap = (cri: Cri): Cri => cri, ways = usualWays } = {}) {
    this.world = new RuntimeWorld(this.clock, undefined, ways);
    this.connection = new SimConnection(this.world, this.node, new SimRandom(1), faults);
    this.cri = wrap(this.connection.cri);
    const sayOfListings = (line: string): void => void this.saidOfListings.push(line);
    this.pleg = new Pleg(
      {
        clock: this.node,
        cri: this.cri,
        cache: this.cache,
        startUp: new StartUp(),
        journal: { record: (entry) => this.journal.push(entry) },
        log: { ...silentLog, info: sayOfListings, warn: sayOfListings },
      },
      { relistPeriodMs: 1000, eventedRelistPeriodMs: 10_000, channelCapacity: capacity, inspections: 4 },
    );
  }

  pod(uid: string): SimContainer {
    const sandbox = this.world.runSandbox(
      create(pb.PodSandboxConfigSchema, {
        metadata: { name: `pod-${uid}`, namespace: "default", uid },
        labels: labels(uid),
      }),
    );
    const config = create(pb.ContainerConfigSchema, {
      metadata: { name: "c" },
      labels: { ...labels(uid), "io.kubernetes.container.name": "c" },
      command: behaviourCommand({ exitAfterMs: undefined, exitCode: 0, deaf: false, unstartable: false }),
    });
    const id = this.world.createContainer(sandbox, config);
    this.world.startContainer(id);
    const container = this.world.containers.get(id);
    assert.ok(container);
    return container;
  }

  start(evented = false): void {
    void this.pleg.run(this.end.signal);
    const log = { ...silentLog, info: (line: string) => void this.said.push(line) };
    if (evented) void runEvented(this.cri, this.pleg, this.node, log, this.end.signal);
  }

  /** Advances time and returns the events delivered meanwhile, as `<type> <uid>`. */
  async pass(ms: number): Promise<string[]> {
    await this.clock.run(this.clock.nowMs + ms);
    if (this.pleg.events.length === 0) return [];
    return (await this.pleg.events.take(this.end.signal)).map((event) => `${event.type} ${event.uid}`);
  }
}
