import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { podUid } from "../base/ids.ts";
import type { JournalInput } from "../journal/entry.ts";
import type { Cri } from "../ports/cri.ts";
import * as pb from "../ports/gen/runtime/v1/api_pb.js";
import { behaviourCommand } from "../sim/behaviour.ts";
import { SimClock } from "../sim/clock.ts";
import { SimConnection } from "../sim/cri.ts";
import { type CriFaults, noFaults } from "../sim/cri-faults.ts";
import { silentLog } from "../sim/machine.ts";
import { SimRandom } from "../sim/random.ts";
import { RuntimeWorld } from "../sim/runtime-world.ts";
import type { SimContainer } from "../sim/world-model.ts";
import { crioWays, usualWays } from "../sim/runtime-ways.ts";
import { runEvented } from "./evented.ts";
import { PodCache } from "./pod-cache.ts";
import { Pleg } from "./pleg.ts";

const labels = (uid: string): Record<string, string> => ({
  "io.kubernetes.pod.uid": uid,
  "io.kubernetes.pod.name": `pod-${uid}`,
  "io.kubernetes.pod.namespace": "default",
});

class Bench {
  readonly clock = new SimClock(1_000_000);
  readonly node = this.clock.incarnation();
  readonly world: RuntimeWorld;
  readonly connection: SimConnection;
  readonly cache = new PodCache(this.node);
  readonly journal: JournalInput[] = [];
  readonly end = new AbortController();
  readonly pleg: Pleg;
  cri: Cri;

  /** Lines of the log. */
  readonly said: string[] = [];

  constructor({ faults = noFaults, capacity = 1000, wrap = (cri: Cri): Cri => cri, ways = usualWays } = {}) {
    this.world = new RuntimeWorld(this.clock, undefined, ways);
    this.connection = new SimConnection(this.world, this.node, new SimRandom(1), faults);
    this.cri = wrap(this.connection.cri);
    this.pleg = new Pleg(
      {
        clock: this.node,
        cri: this.cri,
        cache: this.cache,
        journal: { record: (entry) => this.journal.push(entry) },
        log: silentLog,
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

  /** Lets time pass and gives what was delivered meanwhile, as `<type> <uid>`. */
  async pass(ms: number): Promise<string[]> {
    await this.clock.run(this.clock.nowMs + ms);
    if (this.pleg.events.length === 0) return [];
    return (await this.pleg.events.take(this.end.signal)).map((event) => `${event.type} ${event.uid}`);
  }
}

/** A runtime that says nothing of containers for as long as `looks.fail`. */
function failing(cri: Cri, looks: { readonly fail: boolean }): Cri {
  const { runtime } = cri;
  const containerStatus: typeof runtime.containerStatus = (request, options) =>
    looks.fail ? Promise.reject(new Error("no answer")) : runtime.containerStatus(request, options);
  return { ...cri, runtime: { ...runtime, containerStatus } };
}

/** A runtime that never says which containers some pods have. */
function hanging(cri: Cri, isStuck: (uid: string) => boolean): Cri {
  const { runtime } = cri;
  const listContainers: typeof runtime.listContainers = (request, options) =>
    isStuck(request.filter?.labelSelector?.["io.kubernetes.pod.uid"] ?? "")
      ? new Promise(() => {})
      : runtime.listContainers(request, options);
  return { ...cri, runtime: { ...runtime, listContainers } };
}

describe("PLEG without runtime events", () => {
  test("finds what runs when it starts, and an exit within the relist period", async () => {
    const bench = new Bench();
    const container = bench.pod("a");
    bench.start();
    assert.deepEqual(await bench.pass(500), ["ContainerStarted a", "ContainerStarted a"]);
    bench.world.exit(container, 3, "Error");
    assert.deepEqual(await bench.pass(1100), ["ContainerDied a"]);
    assert.equal(bench.cache.get(podUid("a")).status.containers[0]?.exitCode, 3);
    assert.ok(bench.journal.some((entry) => entry.message === "container c exited with code 3 (Error)"));
  });

  test("a requested look gives an event even when nothing changed, and a fresh cache", async () => {
    const bench = new Bench();
    bench.pod("a");
    bench.start();
    await bench.pass(500);
    const before = bench.pleg.now();
    bench.pleg.requestInspect(podUid("a"));
    const fresh = bench.cache.getNewerThan(podUid("a"), before, 5000);
    assert.deepEqual(await bench.pass(100), ["PodSync a"]);
    assert.equal((await fresh).containers.length, 1);
  });

  test("a look that is wanted soon is taken a moment later, or with one that is wanted at once", async () => {
    const bench = new Bench();
    bench.pod("a");
    bench.start();
    await bench.pass(500);
    const before = bench.pleg.now();
    bench.pleg.requestInspectSoon(podUid("a"));
    const fresh = bench.cache.getNewerThan(podUid("a"), before, 5000);
    assert.deepEqual(await bench.pass(149), []);
    assert.deepEqual(await bench.pass(50), ["PodSync a"]);
    assert.equal((await fresh).containers.length, 1);
    bench.pleg.requestInspectSoon(podUid("a"));
    bench.pleg.requestInspect(podUid("a"));
    assert.deepEqual(await bench.pass(500), ["PodSync a"]);
  });

  test("a pod that is gone is told once and reads as empty", async () => {
    const bench = new Bench();
    const container = bench.pod("a");
    bench.start();
    await bench.pass(500);
    bench.world.removeSandbox(container.sandboxId);
    const events = await bench.pass(1100);
    assert.deepEqual(new Set(events), new Set(["ContainerDied a", "ContainerRemoved a"]));
    assert.deepEqual(bench.cache.get(podUid("a")).status.sandboxes, []);
    assert.deepEqual(await bench.pass(3000), []);
  });

  test("a full channel discards nothing for good: the pod stays dirty and its events are offered again", async () => {
    const bench = new Bench({ capacity: 2 });
    for (const uid of ["a", "b", "c"]) bench.pod(uid);
    bench.start();
    const all: string[] = [];
    for (let round = 0; round < 6; round++) all.push(...(await bench.pass(1100)));
    assert.deepEqual(new Set(all), new Set(["ContainerStarted a", "ContainerStarted b", "ContainerStarted c"]));
    assert.equal(all.length, 6);
    assert.ok(bench.pleg.discarded > 0);
    assert.ok(bench.journal.some((entry) => entry.what === "EventDiscarded"));
  });

  test("a pod whose inspection hangs delays no other pod and no listing", async () => {
    const bench = new Bench({ wrap: (cri) => hanging(cri, (uid) => uid === "a") });
    bench.pod("a");
    const other = bench.pod("b");
    bench.start();
    assert.deepEqual(await bench.pass(500), ["ContainerStarted b", "ContainerStarted b"]);
    bench.world.exit(other, 1, "Error");
    assert.deepEqual(await bench.pass(1100), ["ContainerDied b"]);
    assert.ok(bench.node.monotonic() - (bench.pleg.lastRelistMs ?? 0) <= 1000);
  });

  test("more pods whose inspections hang than are inspected at a time delay others by seconds, and once", async () => {
    const bench = new Bench({ wrap: (cri) => hanging(cri, (uid) => uid.startsWith("stuck")) });
    for (let index = 0; index < 12; index++) bench.pod(`stuck${index}`);
    const other = bench.pod("works");
    bench.start();
    assert.deepEqual(await bench.pass(6500), ["ContainerStarted works", "ContainerStarted works"]);
    bench.world.exit(other, 1, "Error");
    assert.deepEqual(await bench.pass(1600), ["ContainerDied works"]);
  });

  test("an inspection that fails is told to whoever waits, and the next listing mends it", async () => {
    const looks = { fail: true };
    const bench = new Bench({ wrap: (cri) => failing(cri, looks) });
    bench.pod("a");
    bench.start();
    assert.deepEqual(await bench.pass(500), []);
    assert.match(bench.cache.get(podUid("a")).error?.message ?? "", /no answer/);
    looks.fail = false;
    assert.deepEqual(await bench.pass(1100), ["ContainerStarted a", "ContainerStarted a"]);
    assert.equal(bench.cache.get(podUid("a")).error, undefined);
  });

  test("an exit is told once, also when looks at the pod fail before and after", async () => {
    const looks = { fail: false };
    const bench = new Bench({ wrap: (cri) => failing(cri, looks) });
    const container = bench.pod("a");
    bench.start();
    await bench.pass(1100);
    bench.world.exit(container, 1, "Error");
    assert.deepEqual(await bench.pass(1500), ["ContainerDied a"]);
    looks.fail = true;
    bench.pleg.requestInspect(podUid("a"));
    await bench.pass(1500);
    looks.fail = false;
    assert.deepEqual(await bench.pass(3000), []);
  });

  test("a listing that fails is said once, and its end too", async () => {
    const bench = new Bench({ faults: { ...noFaults, failBefore: 1 } });
    bench.start();
    await bench.pass(3500);
    bench.connection.setFaults(noFaults);
    await bench.pass(1500);
    const notes = bench.journal.filter((entry) => entry.what.startsWith("Relist")).map((entry) => entry.what);
    assert.deepEqual(notes, ["RelistFailed", "RelistRecovered"]);
  });
});

describe("PLEG with runtime events", () => {
  const evented = async (faults: CriFaults = noFaults): Promise<Bench> => {
    const bench = new Bench({ faults });
    bench.start(true);
    await bench.pass(1500);
    return bench;
  };
  /** Counts the attempts to open an event stream, on a runtime that gives what is told. */
  const streaming = (stream: (attempt: number) => AsyncIterable<pb.ContainerEventResponse>): Bench => {
    let attempts = 0;
    const wrap = ({ runtime, ...cri }: Cri): Cri => {
      return { ...cri, runtime: { ...runtime, getContainerEvents: () => stream(++attempts) } };
    };
    return new Bench({ wrap });
  };

  test("notices an exit by its event, long before the next listing", async () => {
    const bench = await evented();
    const container = bench.pod("a");
    await bench.pass(100);
    assert.ok(bench.pleg.evented);
    await bench.pass(10_000);
    bench.world.exit(container, 1, "Error");
    assert.deepEqual(await bench.pass(200), ["ContainerDied a"]);
  });

  test("looks at what starts once for all pods, with the listing that comes within a second, not at each step", async () => {
    let looks = 0;
    const bench = new Bench({
      wrap: (cri) => ({
        ...cri,
        runtime: {
          ...cri.runtime,
          listPodSandbox: (request, options) => {
            looks++;
            return cri.runtime.listPodSandbox(request, options);
          },
        },
      }),
    });
    bench.start(true);
    await bench.pass(11_000);
    looks = 0;
    for (const uid of ["a", "b", "c"]) bench.pod(uid);
    assert.deepEqual(await bench.pass(500), []);
    assert.equal(looks, 0);
    assert.equal((await bench.pass(700)).length, 6);
    assert.equal(looks, 1 + 3, "one listing, which finds three pods to look at");
  });

  test("asks about what it knows of, or an event named, beside the lists that say what there is", async () => {
    let asked = 0;
    const answers: (() => void)[] = [];
    const bench = new Bench({
      wrap: ({ runtime, ...cri }) => ({
        ...cri,
        runtime: {
          ...runtime,
          // Answers when it is told to.
          listContainers: async (request, options) => {
            if (request.filter !== undefined) await new Promise<void>((resolve) => void answers.push(resolve));
            return await runtime.listContainers(request, options);
          },
          containerStatus: (request, options) => {
            asked++;
            return runtime.containerStatus(request, options);
          },
        },
      }),
    });
    bench.start(true);
    await bench.pass(11_000);
    const container = bench.pod("a");
    await bench.pass(100);
    bench.pleg.hint(podUid("a"));
    await bench.pass(100);
    assert.equal(asked, 1, "named by the event of its start");
    const look = async (): Promise<readonly string[]> => {
      answers.shift()?.();
      await bench.pass(100);
      return bench.cache.get(podUid("a")).status.containers.map(({ id }) => id);
    };
    assert.deepEqual(await look(), [container.id]);
    bench.world.exit(container, 0, "Completed");
    await bench.pass(100);
    assert.equal(asked, 2, "seen before");
    bench.world.removeContainer(container.id);
    assert.deepEqual(await look(), [], "it is not in the list any more");
    const other = bench.pod("b");
    bench.pleg.hint(podUid("b"));
    answers.shift()?.();
    await bench.pass(100);
    bench.world.removeContainer(other.id);
    asked = 0;
    bench.pleg.requestInspectAfresh(podUid("b"));
    await bench.pass(100);
    assert.equal(asked, 0, "something of it was removed");
  });

  test("an event that was lost is made good by the next listing", async () => {
    const bench = await evented();
    const container = bench.pod("a");
    await bench.pass(10_000);
    bench.connection.setFaults({ ...noFaults, eventLost: 1 });
    bench.world.exit(container, 1, "Error");
    assert.deepEqual(await bench.pass(200), []);
    assert.deepEqual(await bench.pass(10_000), ["ContainerDied a"]);
  });

  test("events that come twice and late change nothing: only an inspection does", async () => {
    const bench = await evented({ ...noFaults, eventTwice: 1, eventDelayMaxMs: 2000 });
    const container = bench.pod("a");
    await bench.pass(300);
    bench.world.exit(container, 1, "Error");
    const events = await bench.pass(20_000);
    assert.equal(events.filter((event) => event === "ContainerDied a").length, 1);
    assert.equal(bench.cache.get(podUid("a")).status.containers[0]?.state, "exited");
  });

  test("a runtime without events is listed every second", async () => {
    const bench = await evented({ ...noFaults, noEvents: true });
    assert.equal(bench.pleg.evented, false);
    const container = bench.pod("a");
    await bench.pass(1100);
    bench.world.exit(container, 1, "Error");
    assert.deepEqual(await bench.pass(1100), ["ContainerDied a"]);
  });

  test("a silent stream is believed after ten seconds, until something happens that it does not tell", async () => {
    const bench = await evented();
    assert.equal(bench.pleg.evented, false, "silence of a moment proves nothing");
    await bench.pass(9000);
    assert.ok(bench.pleg.evented);
    bench.connection.setFaults({ ...noFaults, eventLost: 1 });
    const container = bench.pod("a");
    await bench.pass(10_500);
    bench.world.exit(container, 1, "Error");
    await bench.pass(10_000);
    assert.equal(bench.pleg.evented, false, "an end was found by listing");
    await bench.pass(60_000);
    assert.equal(bench.pleg.evented, false, "however long it stays silent");
    bench.connection.setFaults(noFaults);
    bench.world.removeContainer(container.id);
    await bench.pass(100);
    assert.ok(bench.pleg.evented, "an event came");
  });

  test("a stream that ends well without an event means none: said once, and asked again after a minute", async () => {
    const attempts: number[] = [];
    const bench = streaming(async function* (attempt) {
      attempts.push(attempt);
    });
    bench.start(true);
    await bench.pass(59_000);
    assert.deepEqual(attempts, [1]);
    const container = bench.pod("a");
    await bench.pass(1100);
    bench.world.exit(container, 1, "Error");
    assert.deepEqual(await bench.pass(1100), ["ContainerDied a"], "it is listed every second");
    await bench.pass(600_000);
    assert.equal(attempts.length, 12);
    assert.deepEqual(bench.said, ["the runtime gives no events; listing it every second instead"]);
    assert.ok(!bench.journal.some(({ what }) => what.startsWith("RuntimeEvents")));
  });

  test("a runtime that was away is asked for events as soon as it is back", async () => {
    const bench = new Bench({ ways: crioWays });
    bench.start(true);
    await bench.pass(5000);
    let asked = 0;
    const { runtime } = bench.cri;
    const events = runtime.getContainerEvents;
    Object.assign(runtime, {
      getContainerEvents: (...[request, options]: Parameters<typeof events>) => {
        asked++;
        return events(request, options);
      },
    });
    bench.world.goDown();
    await bench.pass(3000);
    bench.world.comeUp(() => false);
    assert.equal(asked, 0);
    await bench.pass(1100);
    assert.equal(asked, 1);
  });

  test("a stream that breaks again and again is tried more seldom, and told once", async () => {
    let attempts = 0;
    const bench = streaming(async function* () {
      attempts++;
      yield create(pb.ContainerEventResponseSchema, { containerId: "c" });
      throw new Error("broken");
    });
    bench.start(true);
    await bench.pass(60_000);
    assert.ok(attempts > 25 && attempts < 40, `${attempts} attempts`);
    assert.deepEqual(bench.said, ["runtime event stream ended"]);
  });
});
