import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PlegBench } from "../../test/support/pleg-bench.ts";
import { podUid } from "../base/ids.ts";
import type { Cri } from "../ports/cri.ts";
import { noFaults } from "../sim/cri-faults.ts";

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
    const bench = new PlegBench();
    const container = bench.pod("a");
    bench.start();
    assert.deepEqual(await bench.pass(500), ["ContainerStarted a", "ContainerStarted a"]);
    bench.world.exit(container, 3, "Error");
    assert.deepEqual(await bench.pass(1100), ["ContainerDied a"]);
    assert.equal(bench.cache.get(podUid("a")).status.containers[0]?.exitCode, 3);
    assert.ok(bench.journal.some((entry) => entry.message === "container c exited with code 3 (Error)"));
  });

  test("a requested look gives an event even when nothing changed, and a fresh cache", async () => {
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

  test("a look that is wanted soon is taken a moment later, or with one that is wanted at once", async () => {
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

  test("what ends while its worker ends the pod is seen with the worker's own look, or a moment later", async () => {
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

  test("a pod that is gone is told once and reads as empty", async () => {
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

  test("a full channel discards nothing for good: the pod stays dirty and its events are offered again", async () => {
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

  test("a pod whose inspection hangs delays no other pod and no listing", async () => {
    const bench = new PlegBench({ wrap: (cri) => hanging(cri, (uid) => uid === "a") });
    bench.pod("a");
    const other = bench.pod("b");
    bench.start();
    assert.deepEqual(await bench.pass(500), ["ContainerStarted b", "ContainerStarted b"]);
    bench.world.exit(other, 1, "Error");
    assert.deepEqual(await bench.pass(1100), ["ContainerDied b"]);
    assert.ok(bench.node.monotonic() - (bench.pleg.lastRelistMs ?? 0) <= 1000);
  });

  test("more pods whose inspections hang than are inspected at a time delay others by seconds, and once", async () => {
    const bench = new PlegBench({ wrap: (cri) => hanging(cri, (uid) => uid.startsWith("stuck")) });
    for (let index = 0; index < 12; index++) bench.pod(`stuck${index}`);
    const other = bench.pod("works");
    bench.start();
    assert.deepEqual(await bench.pass(6500), ["ContainerStarted works", "ContainerStarted works"]);
    bench.world.exit(other, 1, "Error");
    assert.deepEqual(await bench.pass(1600), ["ContainerDied works"]);
  });

  test("an inspection that fails is told to whoever waits, and the next listing mends it", async () => {
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

  test("an exit is told once, also when looks at the pod fail before and after", async () => {
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

  test("a listing that fails is said once, and its end too", async () => {
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
