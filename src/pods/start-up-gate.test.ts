import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podWith } from "../../test/support/pods.ts";
import { silentLog } from "../../test/support/sources.ts";
import { podUid } from "../base/ids.ts";
import { StartUp } from "../base/start-up.ts";
import { keepSpec, keptSpec } from "../runtime/layout/kept-spec.ts";
import { MemoryFiles } from "../sim/files.ts";
import type { PodChange } from "./pod-change.ts";
import { StartUpGate } from "./start-up-gate.ts";

const node = { rootDirectory: "/kubelet" };
const annotations = { "kubernetes.io/config.source": "api" };

const change = (uid: string, op: PodChange["op"] = "add", creationTimestamp?: string): PodChange => ({
  op,
  pod: podWith({ containers: [] }, { name: uid, uid, annotations, ...(creationTimestamp && { creationTimestamp }) }),
  cause: { code: "ManifestAdded", message: "desired at the start" },
});

async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await Promise.resolve();
}

class Fixture {
  readonly startUp = new StartUp();
  readonly running = new Set<string>();
  /** The runtime has their remains. */
  readonly ended = new Set<string>();
  readonly identity = { settled: true };
  readonly seen: { readonly uid: string; readonly isLast: boolean }[] = [];
  readonly files = new MemoryFiles(new ManualClock());
  readonly gate: StartUpGate;

  constructor(load = async (): Promise<void> => {}, sourcesReady: (source?: string) => boolean = () => true) {
    this.gate = new StartUpGate({
      clock: { now: () => 0 },
      startUp: this.startUp,
      pleg: { isListed: (uid) => this.running.has(uid) || this.ended.has(uid), ran: (uid) => this.running.has(uid) },
      identity: this.identity,
      sourcesReady,
      unclaimed: { load },
      checkpoint: { files: this.files, node, log: silentLog },
    });
    this.gate.connect(({ pod }) => this.seen.push({ uid: pod.metadata.uid, isLast: this.gate.hasPassedAll() }));
  }

  get uids(): string[] {
    return this.seen.map(({ uid }) => uid);
  }

  async list(...running: readonly string[]): Promise<void> {
    for (const uid of running) this.running.add(uid);
    this.startUp.reach("listed");
    await settled();
  }
}

describe("the gate of a start", () => {
  test("new pods wait until the runtime is listed; then running pods come first", async () => {
    const fixture = new Fixture();
    const held = (): string[] => fixture.gate.pods.map(({ metadata }) => metadata.name);
    for (const uid of ["a", "b"]) fixture.gate.handle(change(uid));
    await settled();
    assert.deepEqual([fixture.uids, held()], [[], ["a", "b"]]);
    await fixture.list("b");
    assert.deepEqual([fixture.uids, held()], [["b", "a"], []]);
  });

  test("pods passed on one by one have all passed only after the last", async () => {
    const fixture = new Fixture();
    for (const uid of ["a", "b"]) fixture.gate.handle(change(uid));
    await fixture.list();
    assert.deepEqual(
      fixture.seen.map(({ isLast }) => isLast),
      [false, false],
    );
    assert.equal(fixture.gate.hasPassedAll(), true);
  });

  test("pods that do not run wait until earlier records are read, running ones do not", async () => {
    const read = Promise.withResolvers<void>();
    let loads = 0;
    const fixture = new Fixture(async () => {
      loads++;
      await read.promise;
    });
    await fixture.list("a");
    fixture.gate.handle(change("a"));
    await settled();
    assert.deepEqual([fixture.uids, loads], [["a"], 0]);
    fixture.gate.handle(change("b"));
    await settled();
    assert.deepEqual([fixture.uids, loads, fixture.gate.hasPassedAll()], [["a"], 1, false]);
    read.resolve();
    await settled();
    assert.deepEqual(fixture.uids, ["a", "b"]);
  });

  test("pods of which the runtime has only remains wait for earlier records, too, and come before new ones", async () => {
    const read = Promise.withResolvers<void>();
    const fixture = new Fixture(() => read.promise);
    fixture.ended.add("ended");
    for (const uid of ["new", "ended", "runs"]) fixture.gate.handle(change(uid));
    await fixture.list("runs");
    assert.deepEqual(fixture.uids, ["runs"]);
    read.resolve();
    await settled();
    assert.deepEqual(fixture.uids, ["runs", "ended", "new"]);
  });

  test("of pods that pass together the oldest come first, whatever their names, after those of manifests", async () => {
    const fixture = new Fixture();
    fixture.gate.handle(change("a-newest", "add", "2026-11-20T14:00:02Z"));
    fixture.gate.handle(change("b-old", "add", "2026-11-20T14:00:01Z"));
    fixture.gate.handle(change("c-old", "add", "2026-11-20T14:00:01Z"));
    fixture.gate.handle(change("d-oldest", "add", "2025-11-20T14:00:00Z"));
    fixture.gate.handle(change("e-manifest"));
    fixture.gate.handle(change("a-newest", "update"));
    await fixture.list();
    assert.deepEqual(fixture.uids, ["e-manifest", "d-oldest", "b-old", "c-old", "a-newest", "a-newest"]);
  });

  test("changes of a waiting pod keep their order, those of others pass", async () => {
    const fixture = new Fixture();
    fixture.gate.handle(change("a"));
    fixture.gate.handle(change("a", "update"));
    fixture.gate.handle(change("b", "update"));
    assert.deepEqual(fixture.uids, ["b"]);
    await fixture.list();
    assert.deepEqual(fixture.uids, ["b", "a", "a"]);
  });

  test("once all running pods are known, all pass at once", () => {
    const fixture = new Fixture();
    for (const stage of ["listed", "sourcesSeen", "allKnown"] as const) fixture.startUp.reach(stage);
    fixture.gate.handle(change("a"));
    assert.deepEqual(fixture.uids, ["a"]);
  });

  test("no pod is an orphan before the listing, the sources' reports, and the last pending change", async () => {
    const seen = new Set<string | undefined>(["file"]);
    const fixture = new Fixture(undefined, (source) => seen.has(source));
    assert.equal(fixture.gate.hasPassedAll("file"), false);
    await fixture.list();
    assert.deepEqual([fixture.gate.hasPassedAll("file"), fixture.gate.hasPassedAll()], [true, false]);
    seen.add(undefined);
    fixture.identity.settled = false;
    assert.equal(fixture.gate.hasPassedAll(), false);
    fixture.identity.settled = true;
    assert.equal(fixture.gate.hasPassedAll(), true);
    seen.delete(undefined);
    assert.equal(fixture.gate.hasPassedAll(), false, "a source that comes later is waited for");
  });

  test("a pod deleted while it waits stays deleted in the next run", async () => {
    const fixture = new Fixture();
    await fixture.files.makeDirectory("/kubelet/pods/a", 0o750);
    const { pod } = change("a");
    await keepSpec(fixture.files, node, pod, "start");
    fixture.gate.handle(change("a"));
    fixture.gate.handle(change("a", "remove"));
    await new Promise((resolve) => setImmediate(resolve));
    const kept = await keptSpec(fixture.files, node, podUid("a"));
    assert.equal(kept?.metadata.deletionTimestamp, "1970-01-01T00:00:00Z");
  });
});
