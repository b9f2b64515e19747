import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PlegBench } from "../../test/support/pleg-bench.ts";
import { podUid } from "../base/ids.ts";
import type { Cri } from "../ports/cri.ts";
import { noFaults } from "../sim/cri-faults.ts";

/** A runtime whose container queries fail while `looks.fail` is set. */
function failing(cri: Cri, looks: { readonly fail: boolean }): Cri {
  const { runtime } = cri;
  const containerStatus: typeof runtime.containerStatus = (request, options) =>
    looks.fail ? Promise.reject(new Error("no answer")) : runtime.containerStatus(request, options);
  return { ...cri, runtime: { ...runtime, containerStatus } };
}

/** A runtime that never answers container queries of some pods. */
function hanging(cri: Cri, isStuck: (uid: string) => boolean): Cri {
  const { runtime } = cri;
  const listContainers: typeof runtime.listContainers = (request, options) =>
    isStuck(request.filter?.labelSelector?.["io.kubernetes.pod.uid"] ?? "")
      ? new Promise(() => {})
      : runtime.listContainers(request, options);
  return { ...cri, runtime: { ...runtime, listContainers } };
}

describe("PLEG without runtime events", () => {
  test("finds running pods at its start, and an exit within the relist period", async () => {
    const bench = new PlegBench();
    const container = bench.pod("a");
    bench.start();
    assert.deepEqual(await bench.pass(500), ["ContainerStarted a", "ContainerStarted a"]);
    bench.world.exit(container, 3, "Error");
    assert.deepEqual(await bench.pass(1100), ["ContainerDied a"]);
    assert.equal(bench.cache.get(podUid("a")).status.containers[0]?.exitCode, 3);
    assert.ok(bench.journal.some((entry) => entry.message === "container c exited with code 3 (Error)"));
  });

  test("a requested inspection emits an event even without a change, and refreshes the cache", async () => {
    const bench = new PlegBench();
    bench.pod("a");
    bench.start();
    await bench.pass(500);
    const before = bench.pleg.now();
    bench.pleg.requestInspect(podUid("a"));
    const fresh = bench.cache.getNewerThan(podUid("a"), before, 5000);
    assert.deepEqual(await bench.pass(100), ["PodSync a"]);
    assert.equal((await fresh).containers.length, 1);
  });

  test("a deferred inspection happens a moment later, or with an immediate one", async () => {
    const bench = new PlegBench();
    bench.pod("a");
    bench.start();
    await bench.pass(500);
    const before = bench.pleg.now();
    bench.pleg.requestInspectSoon(podUid("a"));
    const fresh = bench.cache.getNewerThan(podUid("a"), before, 5000);
    assert.deepEqual(await bench.pass(999), []);
    assert.deepEqual(await bench.pass(50), ["PodSync a"]);
    assert.equal((await fresh).containers.length, 1);
    bench.pleg.requestInspectSoon(podUid("a"));
    bench.pleg.requestInspect(podUid("a"));
    assert.deepEqual(await bench.pass(500), ["PodSync a"]);
    bench.pleg.requestInspectSoon(podUid("a"));
    bench.pleg.expedite(podUid("a"));
    bench.pleg.expedite(podUid("a"));
    assert.deepEqual(await bench.pass(50), ["PodSync a"], "somebody waits for it");
    assert.deepEqual(await bench.pass(1500), []);
  });

  test("an exit in an ending pod is seen by the worker's own inspection, or a moment later", async () => {
    const bench = new PlegBench();
    const container = bench.pod("a");
    bench.start();
    await bench.pass(500);
    {
      using _ending = bench.pleg.ending(podUid("a"));
      bench.world.removeSandbox(container.sandboxId);
      bench.pleg.hint(podUid("a"));
      assert.deepEqual(await bench.pass(300), []);
    }
    bench.pleg.requestInspect(podUid("a"));
    const events = await bench.pass(50);
    assert.deepEqual(new Set(events), new Set(["ContainerDied a", "ContainerRemoved a"]));
    assert.deepEqual(await bench.pass(1500), []);
  });

  test("a removed pod is reported once and reads as empty", async () => {
    const bench = new PlegBench();
    const container = bench.pod("a");
    bench.start();
    await bench.pass(500);
    bench.world.removeSandbox(container.sandboxId);
    const events = await bench.pass(1100);
    assert.deepEqual(new Set(events), new Set(["ContainerDied a", "ContainerRemoved a"]));
    assert.deepEqual(bench.cache.get(podUid("a")).status.sandboxes, []);
    assert.deepEqual(await bench.pass(3000), []);
  });

  test("a full channel drops no event for good: the pod stays dirty and its events are retried", async () => {
    const bench = new PlegBench({ capacity: 2 });
    for (const uid of ["a", "b", "c"]) bench.pod(uid);
    bench.start();
    const all: string[] = [];
    for (let round = 0; round < 6; round++) all.push(...(await bench.pass(1100)));
    assert.deepEqual(new Set(all), new Set(["ContainerStarted a", "ContainerStarted b", "ContainerStarted c"]));
    assert.equal(all.length, 6);
    assert.ok(bench.pleg.discarded > 0);
    assert.ok(bench.journal.some((entry) => entry.what === "EventDiscarded"));
  });

  test("a pod whose inspection hangs delays no other pod and no relist", async () => {
    const bench = new PlegBench({ wrap: (cri) => hanging(cri, (uid) => uid === "a") });
    bench.pod("a");
    const other = bench.pod("b");
    bench.start();
    assert.deepEqual(await bench.pass(500), ["ContainerStarted b", "ContainerStarted b"]);
    bench.world.exit(other, 1, "Error");
    assert.deepEqual(await bench.pass(1100), ["ContainerDied b"]);
    assert.ok(bench.node.monotonic() - (bench.pleg.lastRelistMs ?? 0) <= 1000);
  });

  test("more hanging inspections than slots delay others by seconds, and once", async () => {
    const bench = new PlegBench({ wrap: (cri) => hanging(cri, (uid) => uid.startsWith("stuck")) });
    for (let index = 0; index < 12; index++) bench.pod(`stuck${index}`);
    const other = bench.pod("works");
    bench.start();
    assert.deepEqual(await bench.pass(6500), ["ContainerStarted works", "ContainerStarted works"]);
    bench.world.exit(other, 1, "Error");
    assert.deepEqual(await bench.pass(1600), ["ContainerDied works"]);
  });

  test("a failed inspection rejects the waiter, and the next relist retries it", async () => {
    const looks = { fail: true };
    const bench = new PlegBench({ wrap: (cri) => failing(cri, looks) });
    bench.pod("a");
    bench.start();
    assert.deepEqual(await bench.pass(500), []);
    assert.match(bench.cache.get(podUid("a")).error?.message ?? "", /no answer/);
    looks.fail = false;
    assert.deepEqual(await bench.pass(1100), ["ContainerStarted a", "ContainerStarted a"]);
    assert.equal(bench.cache.get(podUid("a")).error, undefined);
  });

  test("an exit is reported once, also when inspections before and after it fail", async () => {
    const looks = { fail: false };
    const bench = new PlegBench({ wrap: (cri) => failing(cri, looks) });
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

  test("a failed relist is logged once, and its recovery too", async () => {
    const bench = new PlegBench({ faults: { ...noFaults, failBefore: 1 } });
    bench.start();
    await bench.pass(3500);
    bench.connection.setFaults(noFaults);
    await bench.pass(1500);
    const notes = bench.journal.filter((entry) => entry.what.startsWith("Relist")).map((entry) => entry.what);
    assert.deepEqual(notes, ["RelistFailed", "RelistRecovered"]);
    assert.deepEqual(bench.saidOfListings, ["cannot list the runtime's pods", "container runtime answers again"]);
  });
});
