import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { testContainer, testSandbox } from "../../test/support/observed.ts";
import { podWith } from "../../test/support/pods.ts";
import { MemoryRecorder, silentLog } from "../../test/support/sources.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import { StartUp } from "../base/start-up.ts";
import type { Pod } from "../api/pod.ts";
import type { PodRef } from "../journal/entry.ts";
import { PodCache } from "../pleg/pod-cache.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import { MemoryFiles } from "../sim/files.ts";
import { Housekeeping } from "./housekeeping.ts";

const node = { rootDirectory: "/kubelet" };

function running(uid: string, source?: string): PodStatus {
  const sandboxes = [testSandbox(source === undefined ? {} : { source })];
  return { uid: podUid(uid), name: uid, namespace: "ns", sandboxes, containers: [testContainer()] };
}

class Fixture {
  readonly clock = new ManualClock();
  readonly startUp = new StartUp();
  readonly cache = new PodCache(this.clock);
  readonly journal = new MemoryRecorder();
  readonly listed = new Set<PodUid>();
  readonly passed = new Set<string | undefined>();
  readonly justRemoved = new Set<PodUid>();
  readonly owned = new Set(["a", "b", "c"]);
  readonly left = new Set<string>();
  /** Pods that wait for admission. */
  readonly waiting: Pod[] = [];
  /** Pods whose leftovers take their time. */
  readonly slow = new Set<string>();
  /** What was done, in order. */
  readonly done: string[] = [];
  readonly housekeeping: Housekeeping;

  constructor() {
    const workers = new Set<PodUid>();
    const files = new MemoryFiles(this.clock);
    const isListed = (uid: PodUid): boolean => this.listed.has(uid);
    const listed = (): PodUid[] => [...this.listed];
    this.housekeeping = new Housekeeping({
      effects: { clock: this.clock, journal: this.journal, log: silentLog },
      startUp: this.startUp,
      gate: { hasPassedAll: (source) => this.passed.has(source) },
      pleg: {
        isListed,
        get listed() {
          return listed();
        },
      },
      cache: this.cache,
      workers: {
        get: () => undefined,
        has: (uid) => workers.has(uid),
        isUnseenSinceRemoval: (uid) => this.justRemoved.has(uid),
        removeOrphan: ({ uid }: PodRef) => {
          this.done.push(`end ${uid}`);
          workers.add(podUid(uid));
        },
      },
      killer: { look: () => {} },
      syncLoop: {
        retry: () => void this.done.push("retry"),
        waiting: this.waiting,
      },
      checkpoint: { files, node, log: silentLog },
      endings: { take: () => undefined },
      unclaimed: { clear: () => void this.done.push("nobody is unclaimed") },
      owns: async (uid) => this.owned.has(uid),
      leftovers: {
        others: [],
        isPods: async () => true,
        podUids: async () => new Set([...this.left].map((uid) => podUid(uid))),
        remove: async (uid, signal) => {
          this.done.push(`remove ${uid}`);
          if (this.slow.has(uid)) await this.clock.sleep("a driver that is away", 600_000, signal);
          return true;
        },
      },
      periodMs: 2000,
    });
  }

  see(status: PodStatus, observed = 1): void {
    this.listed.add(status.uid);
    this.cache.set(status.uid, status, undefined, observed);
  }

  /** One look; what was done since the last. */
  async look(): Promise<string[]> {
    const end = new AbortController();
    const run = this.housekeeping.run(end.signal);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    end.abort();
    await run;
    return this.done.splice(0).filter((step) => step !== "retry");
  }
}

describe("housekeeping", () => {
  test("ends orphans once every source has reported, and knows all pods then", async () => {
    const fixture = new Fixture();
    fixture.startUp.reach("listed");
    fixture.see(running("a"));
    fixture.left.add("gone");
    assert.deepEqual(await fixture.look(), []);
    assert.equal(fixture.startUp.has("sourcesSeen"), false);
    fixture.passed.add(undefined);
    assert.deepEqual(await fixture.look(), ["end a", "nobody is unclaimed", "remove gone"]);
    assert.equal(fixture.startUp.has("allKnown"), true);
    assert.deepEqual(fixture.journal.messages("PodsTakenUp").length, 1);
  });

  test("does not know all pods before each listed one was inspected, and removes nothing of those", async () => {
    const fixture = new Fixture();
    fixture.startUp.reach("listed");
    fixture.passed.add(undefined);
    fixture.listed.add(podUid("a"));
    fixture.left.add("a");
    assert.deepEqual(await fixture.look(), []);
    assert.deepEqual([fixture.startUp.has("sourcesSeen"), fixture.startUp.has("allKnown")], [true, false]);
    fixture.see(running("a"));
    assert.deepEqual(await fixture.look(), ["end a", "nobody is unclaimed"]);
  });

  test("a static orphan is ended once its source has reported, while another source is silent", async () => {
    const fixture = new Fixture();
    fixture.startUp.reach("listed");
    fixture.see(running("a", "file"));
    fixture.see(running("b", "api"));
    fixture.passed.add("file");
    assert.deepEqual(await fixture.look(), ["end a"]);
  });

  test("a removed pod is not picked up again by earlier observations, but by later ones", async () => {
    const fixture = new Fixture();
    fixture.startUp.reach("listed");
    fixture.passed.add(undefined);
    fixture.see(running("a"));
    fixture.justRemoved.add(podUid("a"));
    assert.deepEqual(await fixture.look(), ["nobody is unclaimed"]);
    fixture.justRemoved.clear();
    assert.deepEqual(await fixture.look(), ["end a"], "something of it was made late");
  });

  test("a pod that waits for admission keeps the volumes of an earlier run", async () => {
    const fixture = new Fixture();
    fixture.startUp.reach("listed");
    fixture.passed.add(undefined);
    fixture.left.add("waits");
    fixture.waiting.push(podWith({}, { uid: "waits" }));
    assert.deepEqual(await fixture.look(), ["nobody is unclaimed"]);
    fixture.waiting.length = 0;
    assert.deepEqual(await fixture.look(), ["remove waits"]);
  });

  test("a pod that waits for admission is no orphan, whatever the runtime has of it", async () => {
    const fixture = new Fixture();
    fixture.startUp.reach("listed");
    fixture.passed.add(undefined);
    fixture.see(running("a"));
    fixture.waiting.push(podWith({}, { uid: "a" }));
    assert.deepEqual(await fixture.look(), ["nobody is unclaimed"]);
    fixture.waiting.length = 0;
    assert.deepEqual(await fixture.look(), ["end a"], "it is desired no longer");
  });

  test("slow removals of leftovers delay neither others nor the next check, and are started once", async () => {
    const fixture = new Fixture();
    fixture.startUp.reach("listed");
    fixture.passed.add(undefined);
    for (const uid of ["slow", "other"]) fixture.left.add(uid);
    fixture.slow.add("slow");
    const end = new AbortController();
    const run = fixture.housekeeping.run(end.signal);
    await fixture.clock.advance(1000);
    assert.deepEqual(fixture.done.splice(0).includes("remove other"), false, "it is waited for a little");
    await fixture.clock.advance(2000);
    assert.ok(fixture.done.includes("remove other"));
    fixture.left.delete("other");
    fixture.see(running("a"));
    await fixture.clock.advance(10_000);
    assert.ok(fixture.done.includes("end a"), "another pod is looked after");
    assert.ok(!fixture.done.includes("remove slow"));
    fixture.left.delete("slow");
    await fixture.clock.advance(600_000);
    end.abort();
    await run;
    assert.deepEqual(fixture.clock.waits, []);
  });

  test("foreign pods are left alone", async () => {
    const fixture = new Fixture();
    fixture.startUp.reach("listed");
    fixture.passed.add(undefined);
    fixture.see(running("foreign"));
    assert.deepEqual(await fixture.look(), ["nobody is unclaimed"]);
  });
});
