import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { PlegBench } from "../../test/support/pleg-bench.ts";
import { podUid } from "../base/ids.ts";
import type { Cri } from "../ports/cri.ts";
import * as pb from "../ports/gen/runtime/v1/api_pb.js";
import { type CriFaults, noFaults } from "../sim/cri-faults.ts";
import { crioWays } from "../sim/runtime-ways.ts";
import { emptyStream } from "../sim/unimplemented.ts";

describe("PLEG with runtime events", () => {
  const evented = async (faults: CriFaults = noFaults): Promise<PlegBench> => {
    const bench = new PlegBench({ faults });
    bench.start(true);
    await bench.pass(1500);
    return bench;
  };
  /** Counts the attempts to open an event stream, on a runtime whose streams are given. */
  const streaming = (stream: (attempt: number) => AsyncIterable<pb.ContainerEventResponse>): PlegBench => {
    let attempts = 0;
    const wrap = ({ runtime, ...cri }: Cri): Cri => {
      return { ...cri, runtime: { ...runtime, getContainerEvents: () => stream(++attempts) } };
    };
    return new PlegBench({ wrap });
  };

  test("notices an exit by its event, long before the next relist", async () => {
    const bench = await evented();
    const container = bench.pod("a");
    await bench.pass(100);
    assert.ok(bench.pleg.evented);
    await bench.pass(10_000);
    bench.world.exit(container, 1, "Error");
    assert.deepEqual(await bench.pass(200), ["ContainerDied a"]);
  });

  test("inspects starting pods once, with the relist that follows within a second, not at each step", async () => {
    let looks = 0;
    const bench = new PlegBench({
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

  test("queries known and named IDs in parallel with the lists", async () => {
    let asked = 0;
    const answers: (() => void)[] = [];
    const bench = new PlegBench({
      wrap: ({ runtime, ...cri }) => ({
        ...cri,
        runtime: {
          ...runtime,
          // Answers on request.
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

  test("a lost event is made up for by the next relist", async () => {
    const bench = await evented();
    const container = bench.pod("a");
    await bench.pass(10_000);
    bench.connection.setFaults({ ...noFaults, eventLost: 1 });
    bench.world.exit(container, 1, "Error");
    assert.deepEqual(await bench.pass(200), []);
    assert.deepEqual(await bench.pass(10_000), ["ContainerDied a"]);
  });

  test("duplicate and late events change nothing: only an inspection does", async () => {
    const bench = await evented({ ...noFaults, eventTwice: 1, eventDelayMaxMs: 2000 });
    const container = bench.pod("a");
    await bench.pass(300);
    bench.world.exit(container, 1, "Error");
    const events = await bench.pass(20_000);
    assert.equal(events.filter((event) => event === "ContainerDied a").length, 1);
    assert.equal(bench.cache.get(podUid("a")).status.containers[0]?.state, "exited");
  });

  test("a runtime without events is relisted every second", async () => {
    const bench = await evented({ ...noFaults, noEvents: true });
    assert.equal(bench.pleg.evented, false);
    const container = bench.pod("a");
    await bench.pass(1100);
    bench.world.exit(container, 1, "Error");
    assert.deepEqual(await bench.pass(1100), ["ContainerDied a"]);
  });

  test("a silent stream is trusted after ten seconds, until something happens without an event", async () => {
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

  test("a stream that closes normally means no events: logged once, and retried after a minute", async () => {
    const attempts: number[] = [];
    const bench = streaming((attempt) => {
      attempts.push(attempt);
      return emptyStream();
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
    assert.deepEqual(bench.said, ["runtime sends no events; relisting every second instead"]);
    assert.ok(!bench.journal.some(({ what }) => what.startsWith("RuntimeEvents")));
  });

  test("events are subscribed to as soon as an absent runtime is back", async () => {
    const bench = new PlegBench({ ways: crioWays });
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

  test("a stream that keeps breaking is retried with a back-off, and logged once", async () => {
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
