import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import { StartUp } from "../base/start-up.ts";
import { fc } from "../../test/support/fast-check.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { MemoryRecorder } from "../../test/support/sources.ts";
import { PodMux } from "./mux.ts";
import type { PodUpdate, SourcedPod, SourceName } from "./source.ts";

class Fixture {
  readonly clock = new ManualClock(0);
  readonly journal = new MemoryRecorder();
  readonly updates: PodUpdate[] = [];
  readonly logged: string[] = [];
  readonly mux = new PodMux(
    {
      clock: this.clock,
      journal: this.journal,
      log: { warn: (message, fields) => this.logged.push(`${message} ${JSON.stringify(fields)}`) },
    },
    ["file", "http", "run"],
  );

  /** All that earlier runs left is known, as it is nearly always. */
  constructor() {
    const startUp = new StartUp();
    for (const stage of ["listed", "sourcesSeen"] as const) startUp.reach(stage);
    this.mux.connect({ onUpdate: (update) => this.updates.push(update), isListed: () => false, startUp });
  }

  set(source: SourceName, ...pods: SourcedPod[]): string[] {
    this.updates.length = 0;
    this.mux.set(source, { pods, complete: true });
    return this.updates.map(({ op, pod }) => `${op} ${pod.metadata.uid}`);
  }
}

const sourced = (name: string, uid: string, image = "i", place = "place"): SourcedPod => ({
  place,
  pod: { metadata: { name, namespace: "default", uid: podUid(uid) }, spec: { containers: [{ name: "c", image }] } },
});

test("changes are delivered as additions, updates of the same UID and removals, removals first", () => {
  const fixture = new Fixture();
  assert.deepEqual(fixture.set("file", sourced("a", "1"), sourced("b", "2")), ["add 1", "add 2"]);
  assert.deepEqual(fixture.set("file", sourced("a", "1"), sourced("b", "2")), []);
  assert.deepEqual(fixture.set("file", sourced("a", "1", "new"), sourced("b", "3")), ["remove 2", "add 3", "update 1"]);
  assert.deepEqual(fixture.set("file"), ["remove 1", "remove 3"]);
});

test("a pod that was changed and changed back has another generation, and is delivered", () => {
  const fixture = new Fixture();
  const of = (generation: number): SourcedPod => {
    const { pod, place } = sourced("a", "1");
    return { place, pod: { ...pod, metadata: { ...pod.metadata, generation } } };
  };
  assert.deepEqual(fixture.set("run", of(1)), ["add 1"]);
  assert.deepEqual(fixture.set("run", of(3)), ["update 1"]);
  assert.equal(fixture.updates[0]?.pod.metadata.generation, 3);
  assert.deepEqual(fixture.set("run", of(3)), []);
});

test("pods that come together are added by their creation, those without a time first", () => {
  const fixture = new Fixture();
  const created = (uid: string, creationTimestamp: string): SourcedPod => {
    const { pod, place } = sourced(uid, uid);
    return { place, pod: { ...pod, metadata: { ...pod.metadata, creationTimestamp } } };
  };
  const later = created("a", "2026-11-20T15:00:00Z");
  const earlier = created("b", "2026-11-20T14:00:00Z");
  assert.deepEqual(fixture.set("run", later, earlier, sourced("c", "c")), ["add c", "add b", "add a"]);
});

test("pods are marked with source and time, which an update keeps", async () => {
  const fixture = new Fixture();
  fixture.set("http", sourced("a", "1"));
  await fixture.clock.advance(60_000);
  fixture.set("http", sourced("a", "1", "new"));
  assert.deepEqual(fixture.updates[0]?.pod.metadata.annotations, {
    "kubernetes.io/config.source": "http",
    "kubernetes.io/config.seen": "1970-01-01T00:00:00Z",
  });
});

test("every change refers to its journal entry", () => {
  const fixture = new Fixture();
  fixture.set("run", sourced("a", "1", "i", "x.yaml"));
  assert.deepEqual(fixture.updates[0]?.cause, { code: "ManifestAdded", message: "pod added: x.yaml", entry: 1 });
  assert.deepEqual(fixture.journal.entries[0]?.what, "PodAdded");
});

test("of two pods with one name the first wins; the other is reported once and starts when the first is removed", () => {
  const fixture = new Fixture();
  fixture.set("run", sourced("a", "1", "i", "run"));
  assert.deepEqual(fixture.set("file", sourced("a", "2", "i", "a.yaml")), []);
  assert.deepEqual(fixture.set("file", sourced("a", "2", "i", "a.yaml")), []);
  assert.deepEqual(fixture.journal.messages("FailedValidation"), [
    'the pod of a.yaml is ignored: run has the same name "a"',
  ]);
  const [report] = fixture.journal.entries.filter(({ what }) => what === "FailedValidation");
  assert.deepEqual(
    report?.data,
    { eventMessage: 'The pod is ignored: a pod of podwright run has the same name "a"' },
    "Events name no files",
  );
  const ignored = () => fixture.mux.ignored().map(({ pod, source, holder }) => [pod.metadata.uid, source, holder]);
  assert.deepEqual(ignored(), [["2", "file", "run"]]);
  assert.deepEqual(fixture.set("run", sourced("a", "3", "i", "run")), ["remove 1", "add 3"]);
  assert.deepEqual(fixture.set("run"), ["remove 3", "add 2"]);
  assert.deepEqual(ignored(), []);
});

test("at a start the running pod keeps its name, whichever source reports first, and whenever the runtime is listed", async () => {
  for (const when of ["before", "between", "after"] as const) {
    const updates: string[] = [];
    const running = new Set<string>();
    const startUp = new StartUp();
    const mux = new PodMux(
      {
        clock: new ManualClock(0),
        journal: new MemoryRecorder(),
        log: { warn: () => {} },
      },
      ["file", "api"],
    );
    mux.connect({
      onUpdate: ({ op, pod }) => updates.push(`${op} ${pod.metadata.uid}`),
      isListed: (uid) => running.has(uid),
      startUp,
    });
    const list = async (now: typeof when): Promise<void> => {
      if (now !== when) return;
      running.add("bound");
      startUp.reach("listed");
      await Promise.resolve();
    };
    await list("before");
    mux.set("file", { pods: [sourced("a", "static")], complete: true });
    await list("between");
    mux.set("api", { pods: [sourced("a", "bound")], complete: true });
    await list("after");
    startUp.reach("sourcesSeen");
    assert.deepEqual(updates, ["add static", "remove static", "add bound"], when);
    running.add("late");
    mux.set("file", { pods: [sourced("a", "late")], complete: true });
    assert.deepEqual(updates.slice(3), [], "later who came first keeps it");
    mux.set("api", { pods: [], complete: true });
    assert.deepEqual(updates.slice(3), ["remove bound", "add late"]);
  }
});

test("two pods with one UID never both run", () => {
  const fixture = new Fixture();
  assert.deepEqual(fixture.set("file", sourced("a", "1"), sourced("b", "1")), ["add 1"]);
  assert.match(fixture.journal.messages("FailedValidation")[0] ?? "", /has the same UID 1/u);
  assert.deepEqual(fixture.mux.ignored(), [], "one of that UID is not ignored");
});

test("a source counts as seen once it has delivered everything", () => {
  const fixture = new Fixture();
  fixture.set("file");
  fixture.set("http");
  assert.equal(fixture.mux.allSourcesSeen(), false);
  fixture.mux.set("run", { pods: [], complete: false });
  assert.equal(fixture.mux.allSourcesSeen(), false);
  assert.deepEqual(
    ["file", "run", "api"].map((source) => fixture.mux.isSeen(source)),
    [true, false, true],
    "no API server",
  );
  fixture.set("run");
  assert.equal(fixture.mux.allSourcesSeen(), true);
});

test("a removal carries the grace period that its source requests", () => {
  const fixture = new Fixture();
  fixture.set("run", sourced("a", "1"));
  fixture.updates.length = 0;
  fixture.mux.set("run", { pods: [], complete: true, graceSeconds: new Map([[podUid("1"), 0]]) });
  assert.equal(fixture.updates[0]?.graceSeconds, 0);
});

test("after any changes exactly one pod of every desired name and UID runs, and nothing is added or removed twice", () => {
  const pods = fc.array(
    fc.tuple(fc.constantFrom("a", "b", "c"), fc.constantFrom("1", "2", "3", "4"), fc.constantFrom("x", "z")),
    { maxLength: 4 },
  );
  const steps = fc.array(fc.tuple(fc.constantFrom<SourceName[]>("file", "http", "run"), pods), { maxLength: 12 });
  fc.assert(
    fc.property(steps, (sequence) => {
      const fixture = new Fixture();
      const running = new Map<string, string>();
      const wanted = new Map<SourceName, string[]>();
      for (const [source, list] of sequence) {
        fixture.set(source, ...list.map(([name, uid, image]) => sourced(name, uid, image, `${source} ${uid}`)));
        wanted.set(
          source,
          list.map(([name]) => name),
        );
        for (const { op, pod } of fixture.updates) {
          const { uid, name } = pod.metadata;
          assert.equal(running.has(uid), op !== "add");
          if (op === "add") assert.ok(![...running.values()].includes(name));
          if (op === "remove") running.delete(uid);
          else running.set(uid, name);
        }
        assert.equal(new Set(running.values()).size, running.size);
        for (const name of running.values()) assert.ok([...wanted.values()].flat().includes(name));
        if (list.length > 0) assert.ok(running.size > 0);
      }
    }),
    { numRuns: 200 },
  );
});

test("pods unaffected by a change are as after a complete selection", () => {
  const pods = fc.array(fc.tuple(fc.constantFrom("a", "b", "c"), fc.constantFrom("1", "2", "3", "4")), {
    maxLength: 4,
  });
  const steps = fc.array(fc.tuple(fc.constantFrom<SourceName[]>("file", "http", "run"), pods), { maxLength: 12 });
  fc.assert(
    fc.property(steps, (sequence) => {
      const fixture = new Fixture();
      const last = new Map<SourceName, readonly SourcedPod[]>();
      for (const [source, list] of sequence) {
        const before = new Map(last.get(source)?.map((one) => [one.place, one]));
        const places = new Set(list.map(([name, uid]) => `${source} ${name} ${uid}`));
        const now = [...places].map((place) => {
          const [, name = "", uid = ""] = place.split(" ");
          return before.get(place) ?? sourced(name, uid, "x", place);
        });
        last.set(source, now);
        fixture.set(source, ...now);
      }
      const ignored = fixture.mux.ignored().map(({ pod }) => pod.metadata.uid);
      fixture.updates.length = 0;
      for (const [source, list] of last) fixture.set(source, ...list.map((one) => ({ ...one })));
      assert.deepEqual(fixture.updates, []);
      assert.deepEqual(
        fixture.mux
          .ignored()
          .map(({ pod }) => pod.metadata.uid)
          .toSorted(),
        ignored.toSorted(),
      );
    }),
    { numRuns: 300 },
  );
});

test("a pod that passes from one source to another belongs to the second", () => {
  const fixture = new Fixture();
  fixture.set("run", sourced("c", "3", "x", "run"));
  fixture.set("file", sourced("c", "1", "x", "first"), sourced("c", "3", "x", "second"));
  assert.deepEqual(fixture.set("run"), ["remove 3", "add 1"], "its name goes to the first file");
  assert.deepEqual(fixture.set("file", sourced("c", "3", "x", "second")), ["remove 1", "add 3"]);
  fixture.set("run", sourced("c", "3", "x", "run"));
  assert.deepEqual(fixture.set("file"), ["update 3"]);
  assert.equal(fixture.updates[0]?.pod.metadata.annotations?.["kubernetes.io/config.source"], "run");
  assert.deepEqual(
    fixture.mux.pods().map(({ source, place }) => [source, place]),
    [["run", "run"]],
  );
});

test("a pod whose manifest moves to another file belongs to that file", () => {
  const fixture = new Fixture();
  fixture.set("file", sourced("c", "3", "x", "first"));
  assert.deepEqual(fixture.set("file", sourced("c", "3", "x", "second")), []);
  assert.equal(fixture.mux.pods()[0]?.place, "second");
});

test("a backup next to a manifest never keeps its name", () => {
  const fixture = new Fixture();
  const own = sourced("etcd", "1", "i", "/m/etcd.yaml");
  const backup = sourced("etcd", "2", "i", "/m/etcd.yaml.bak");
  assert.deepEqual(fixture.set("file", backup), ["add 2"], "alone it counts, as upstream");
  assert.deepEqual(fixture.set("file", backup, own), ["remove 2", "add 1"]);
  assert.deepEqual(fixture.set("file", backup), ["remove 1", "add 2"], "the manifest was away for a moment");
  assert.deepEqual(fixture.set("file", own, backup), ["remove 2", "add 1"]);
});

test("of two files with one pod, the one that had the name first gets it back", () => {
  const fixture = new Fixture();
  const first = sourced("a", "1", "i", "/m/z.yaml");
  const second = sourced("a", "2", "i", "/m/b.yaml");
  assert.deepEqual(fixture.set("file", first), ["add 1"]);
  assert.deepEqual(fixture.set("file", second, first), []);
  assert.deepEqual(fixture.set("file", second), ["remove 1", "add 2"]);
  assert.deepEqual(fixture.set("file", second, first), ["remove 2", "add 1"]);
  assert.deepEqual(fixture.set("file"), ["remove 1"]);
  assert.deepEqual(fixture.set("file", second), ["add 2"], "nobody else's name any more");
  assert.deepEqual(fixture.set("file", second, first), []);
});

test("a file that returns takes no name from another source", () => {
  const fixture = new Fixture();
  const own = sourced("a", "1", "i", "/m/a.yaml");
  fixture.set("file", own);
  fixture.set("run", sourced("a", "2", "i", "run"));
  assert.deepEqual(fixture.set("file"), ["remove 1", "add 2"]);
  assert.deepEqual(fixture.set("file", own), []);
});

test("an ignored manifest is reported with the running pod, and in the log, as long as it exists", () => {
  const fixture = new Fixture();
  const own = sourced("etcd", "1", "i", "/m/etcd.yaml");
  const backup = sourced("etcd", "2", "i", "/m/etcd.yaml.bak");
  fixture.set("file", own, backup);
  fixture.set("file", own, backup);
  const told = "/m/etcd.yaml.bak has a pod of the same name and is ignored";
  assert.deepEqual(fixture.journal.messages("ManifestWarning"), [told]);
  assert.equal(fixture.journal.entries.find(({ what }) => what === "ManifestWarning")?.pod?.uid, "1");
  assert.deepEqual(fixture.logged, [
    'two manifests define the same pod; ignoring one {"ignored":"/m/etcd.yaml.bak","used":"/m/etcd.yaml"}',
  ]);
  assert.deepEqual(fixture.mux.contests(), [{ uid: "1", place: "/m/etcd.yaml", ignored: "/m/etcd.yaml.bak" }]);
  fixture.set("file", own);
  assert.deepEqual(fixture.journal.messages("ManifestWarningOver"), [told]);
  assert.deepEqual(fixture.mux.contests(), []);
});

test("warnings about a manifest are in the journal of its pod, again when it changes", () => {
  const fixture = new Fixture();
  fixture.set("file", { ...sourced("a", "1"), warnings: ["memory is small"] });
  fixture.set("file", { ...sourced("a", "1"), warnings: ["memory is small"] });
  fixture.set("file", { ...sourced("a", "1", "new"), warnings: ["memory is smaller"] });
  assert.deepEqual(fixture.journal.messages("ManifestWarning"), ["memory is small", "memory is smaller"]);
});
