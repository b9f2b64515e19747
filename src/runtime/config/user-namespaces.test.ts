import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { podWith } from "../../../test/support/pods.ts";
import type { Pod } from "../../api/pod.ts";
import { podUid } from "../../base/ids.ts";
import type { JournalInput } from "../../journal/entry.ts";
import { FileError } from "../../ports/files.ts";
import { NamespaceMode } from "../../ports/gen/runtime/v1/api_pb.js";
import { MemoryFiles } from "../../sim/files.ts";
import { silentLog } from "../../sim/machine.ts";
import { defaultPodIds, type IdRange, idUnit, overlaps, type PodIds, readRange, writeRange } from "./id-ranges.ts";
import { type SandboxesInUse, UserNamespaces } from "./user-namespaces.ts";

const root = "/var/lib/kubelet";
/** Of a Go kubelet's node. */
const goFile =
  '{"uidMappings":[{"hostId":131072,"containerId":0,"length":65536}],"gidMappings":[{"hostId":131072,"containerId":0,"length":65536}]}';

const pod = (uid: string, hostUsers: boolean | undefined = false): Pod =>
  podWith({ ...(hostUsers !== undefined && { hostUsers }) }, { uid });

/** A node whose files outlive it. */
class Machine {
  readonly files = new MemoryFiles(new ManualClock());
  readonly entries: JournalInput[] = [];
  /** What runs of pods that an earlier run started. */
  readonly inUse = new Map<string, ReturnType<SandboxesInUse>>();

  node({ ids = defaultPodIds(idUnit), supported = true }: { ids?: PodIds; supported?: boolean } = {}): UserNamespaces {
    const journal = { record: (entry: JournalInput): number => this.entries.push(entry) };
    return new UserNamespaces({
      files: this.files,
      journal,
      log: silentLog,
      node: { rootDirectory: root },
      ids,
      features: () => ({ handler: "", isKnown: true, recursiveReadOnlyMounts: false, userNamespaces: supported }),
      sandboxesInUse: (uid) => (this.inUse.has(uid) ? this.inUse.get(uid) : []),
    });
  }

  async write(uid: string, text: string): Promise<void> {
    await this.files.makeDirectory(`${root}/pods/${uid}`, 0o750);
    await this.files.write(`${root}/pods/${uid}/userns`, text, 0o600);
  }

  async text(uid: string): Promise<string> {
    return new TextDecoder().decode(await this.files.read(`${root}/pods/${uid}/userns`, 10_000));
  }
}

async function rangeOf(node: UserNamespaces, uid: string): Promise<IdRange> {
  const namespace = await node.namespaceOf(pod(uid));
  const [only] = namespace?.uids ?? [];
  assert.ok(only);
  assert.deepEqual(namespace, { mode: NamespaceMode.POD, uids: [only], gids: [only] });
  assert.equal(only.containerId, 0);
  return { first: only.hostId ?? 0, length: only.length ?? 0 };
}

test("a pod that requests none runs with the node's users", async () => {
  const node = new Machine().node({ supported: false });
  assert.equal(await node.namespaceOf(pod("a", true)), undefined);
  assert.equal(await node.namespaceOf(podWith({})), undefined);
});

test("each pod gets its own IDs, stores them in the Go kubelet's format, and keeps them", async () => {
  const machine = new Machine();
  const node = machine.node();
  assert.deepEqual(await rangeOf(node, "a"), { first: 65_536, length: 65_536 });
  assert.deepEqual(await rangeOf(node, "b"), { first: 131_072, length: 65_536 });
  assert.deepEqual(await rangeOf(node, "a"), { first: 65_536, length: 65_536 });
  assert.equal(await machine.text("b"), goFile);
  assert.equal((await machine.files.stat(`${root}/pods/b/userns`))?.mode, 0o600);
  const [first, ...others] = machine.entries;
  assert.equal(first?.message, "the pod's user namespace uses IDs 65536 to 131071 of the node");
  assert.equal(others.length, 1, "said once a pod");
});

test("concurrent requests get the same range", async () => {
  const node = new Machine().node();
  const [one, other] = await Promise.all([rangeOf(node, "a"), rangeOf(node, "a")]);
  assert.deepEqual(one, other);
});

test("the next run, and a Go kubelet, keep pods' IDs", async () => {
  const machine = new Machine();
  await machine.write("b", goFile);
  assert.deepEqual(await rangeOf(machine.node(), "a"), { first: 65_536, length: 65_536 });
  const next = machine.node();
  assert.deepEqual(await rangeOf(next, "c"), { first: 196_608, length: 65_536 });
  assert.deepEqual(await rangeOf(next, "b"), { first: 131_072, length: 65_536 });
  assert.deepEqual(await rangeOf(next, "a"), { first: 65_536, length: 65_536 });
});

test("a range whose length differs from the configured one stays its pod's", async () => {
  const machine = new Machine();
  await machine.write("old", goFile);
  const node = machine.node({ ids: defaultPodIds(2 * idUnit) });
  assert.deepEqual(await rangeOf(node, "old"), { first: 131_072, length: 65_536 });
  assert.deepEqual(await rangeOf(node, "new"), { first: 262_144, length: 131_072 });
});

test("released IDs are reused as late as possible", async () => {
  const machine = new Machine();
  const node = machine.node({ ids: { first: idUnit, length: 2 * idUnit, perPod: idUnit } });
  const [a, b] = [await rangeOf(node, "a"), await rangeOf(node, "b")];
  await assert.rejects(rangeOf(node, "c"), /could not find an empty slot/);
  await node.release({ uid: podUid("a") });
  await node.release({ uid: podUid("a") });
  assert.equal(await machine.files.stat(`${root}/pods/a/userns`), undefined);
  assert.deepEqual(await rangeOf(node, "c"), a);
  await node.release({ uid: podUid("b") });
  await node.release({ uid: podUid("c") });
  assert.deepEqual(await rangeOf(node, "d"), b, "a pod's ids are not the next pod's at once");
});

test("a range that cannot be stored is not assigned", async () => {
  const machine = new Machine();
  await machine.files.makeDirectory(`${root}/pods/a/userns/in-the-way`, 0o700);
  const node = machine.node();
  await assert.rejects(rangeOf(node, "a"));
  assert.equal((await rangeOf(machine.node(), "b")).first, idUnit);
});

test("unsupported runtimes are rejected in upstream's words", async () => {
  const node = new Machine().node({ supported: false });
  await assert.rejects(node.namespaceOf(pod("a")), {
    name: "ContainerConfigError",
    message: "can't set `spec.hostUsers: false`, runtime does not support user namespaces",
  });
});

test("an unusable file of a pod without a sandbox affects only its own pod, until that has ended", async () => {
  const mapping = (hostId: number, containerId = 0, length = idUnit): object => ({ hostId, containerId, length });
  const file = (uids: object[], gids: object[] = uids): string =>
    JSON.stringify({ uidMappings: uids, gidMappings: gids });
  for (const [text, reason] of [
    ["{", /JSON/],
    ["{}", /no ID mappings/],
    [file([mapping(-5)]), /no ID mappings/],
    [file([]), /one UID mapping/],
    [file([mapping(65_536), mapping(131_072)]), /one UID mapping/],
    [file([mapping(65_536)], [mapping(131_072)]), /UID and GID mappings differ/],
    [file([mapping(65_536, 1)]), /does not map UID 0/],
    [file([mapping(0)]), /IDs 0 to 65535 are not the range of a pod/],
    [file([mapping(65_537)]), /not the range of a pod/],
    [file([mapping(65_536, 0, 10)]), /not the range of a pod/],
    [file([mapping(2 ** 32 - idUnit, 0, 2 * idUnit)]), /not the range of a pod/],
  ] as const) {
    const machine = new Machine();
    await machine.write("broken", text);
    const node = machine.node();
    await assert.rejects(rangeOf(node, "broken"), reason, text);
    assert.equal((await rangeOf(node, "other")).first, idUnit);
    await node.release({ uid: podUid("broken") });
    assert.equal((await rangeOf(node, "broken")).first, 2 * idUnit);
  }
});

test("what runs of a pod with an unusable or empty file keeps its IDs until the pod has ended", async () => {
  for (const text of ["{", "", "{}"]) {
    const machine = new Machine();
    await machine.write("broken", text);
    machine.inUse.set("broken", [{ userIds: { first: idUnit, length: idUnit } }]);
    const node = machine.node();
    assert.equal((await rangeOf(node, "other")).first, 2 * idUnit);
    await assert.rejects(rangeOf(node, "broken"), /^ContainerConfigError: user namespace: cannot use .*userns: /);
    assert.equal(await machine.text("broken"), text, "the sandbox would be recreated with other IDs");
    assert.equal((await rangeOf(node, "third")).first, 3 * idUnit);
    machine.inUse.delete("broken");
    await node.release({ uid: podUid("broken") });
    assert.equal(await machine.files.stat(`${root}/pods/broken/userns`), undefined);
    assert.equal((await rangeOf(node, "broken")).first, 4 * idUnit);
  }
});

test("while unknown IDs of a pod may be in use, no others are assigned", async () => {
  const ids = { first: idUnit, length: 4 * idUnit, perPod: idUnit };
  for (const text of ["{", ""]) {
    const machine = new Machine();
    const kept = await rangeOf(machine.node({ ids }), "kept");
    await machine.write("broken", text);
    const node = machine.node({ ids });
    for (const inUse of [undefined, [{}], [{ userIds: undefined }]]) {
      machine.inUse.set("broken", inUse);
      await assert.rejects(rangeOf(node, "other"), {
        name: "ContainerConfigError",
        message: "user namespace: cannot read which IDs pod broken has, so no IDs can be assigned",
      });
    }
    assert.deepEqual(await rangeOf(node, "kept"), kept);
    machine.inUse.set("broken", []);
    assert.notDeepEqual(await rangeOf(node, "other"), kept);
  }
});

test("a pod with an empty file gets new IDs when nothing of it runs, also beside others like it", async () => {
  const machine = new Machine();
  for (const uid of ["a", "b"]) await machine.write(uid, "");
  const node = machine.node();
  assert.deepEqual(await rangeOf(node, "a"), { first: idUnit, length: idUnit });
  assert.deepEqual(await rangeOf(node, "b"), { first: 2 * idUnit, length: idUnit });
  machine.inUse.set("a", [{ userIds: { first: idUnit, length: idUnit } }]);
  assert.deepEqual(await rangeOf(node, "a"), { first: idUnit, length: idUnit });
  assert.equal(await machine.text("b"), goFile);
});

test("IDs of a pod whose file is temporarily unreadable are not assigned to others", async () => {
  const machine = new Machine();
  const range = await rangeOf(machine.node(), "a");
  const read = machine.files.read.bind(machine.files);
  machine.files.read = async (path) => {
    throw new FileError("EIO", path, `EIO: i/o error, read '${path}'`);
  };
  const node = machine.node();
  await assert.rejects(rangeOf(node, "b"), /cannot read which IDs pod a has/u);
  machine.files.read = read;
  assert.equal((await rangeOf(node, "b")).first, 2 * idUnit);
  assert.deepEqual(await rangeOf(node, "a"), range);
});

test("of two files with the same IDs only one counts", async () => {
  const machine = new Machine();
  const [a, b] = ["a".repeat(32), "b".repeat(32)];
  await machine.write(a, goFile);
  await machine.write(b, goFile);
  const node = machine.node();
  const outcomes = await Promise.allSettled([rangeOf(node, a), rangeOf(node, b)]);
  assert.deepEqual(outcomes.map(({ status }) => status).toSorted(), ["fulfilled", "rejected"]);
});

test("a pod whose spec could not be stored is no copy: that its IDs are another's is said, whatever its UID", async () => {
  const machine = new Machine();
  const owner = "a".repeat(32);
  await machine.write(owner, goFile);
  await machine.write("custom", goFile);
  const node = machine.node();
  assert.equal((await rangeOf(node, owner)).first, 131_072);
  await assert.rejects(rangeOf(node, "custom"), /its IDs belong to pod a{32}/u);
});

test("a copy of a pod's directory takes its IDs neither from the pod nor from others", async () => {
  for (const uid of ["a".repeat(32), "custom"]) {
    const machine = new Machine();
    await machine.write(`${uid}.bak`, goFile);
    await machine.write(uid, goFile);
    const node = machine.node();
    assert.equal((await rangeOf(node, uid)).first, 131_072);
    assert.notEqual((await rangeOf(node, "other")).first, 131_072);
  }
});

test("a range is read back as written", () => {
  const ranges = fc.record({ first: fc.integer({ min: 1, max: 65_534 }), length: fc.integer({ min: 1, max: 1 }) });
  fc.assert(
    fc.property(ranges, ({ first, length }) => {
      const range = { first: first * idUnit, length: length * idUnit };
      assert.deepEqual(readRange(writeRange(range)), range);
    }),
  );
});

test("no two pods share an ID, whatever pods come and go, and however often podwright restarts", async () => {
  const step = fc.record({
    what: fc.constantFrom("start", "end", "restart"),
    uid: fc.constantFrom("a", "b", "c", "d", "e", "f"),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const machine = new Machine();
      const ids = { first: idUnit, length: 4 * idUnit, perPod: idUnit };
      let node = machine.node({ ids });
      const held = new Map<string, IdRange>();
      for (const { what, uid } of steps) {
        if (what === "restart") node = machine.node({ ids });
        else if (what === "end") {
          await node.release({ uid: podUid(uid) });
          held.delete(uid);
        } else if (held.has(uid) || held.size < 4) {
          const range = await rangeOf(node, uid);
          assert.deepEqual(range, held.get(uid) ?? range, "it keeps its range");
          held.set(uid, range);
        } else await assert.rejects(rangeOf(node, uid), /empty slot/);
        const ranges = [...held.values()];
        assert.ok(ranges.every((one, index) => ranges.every((other, at) => at === index || !overlaps(one, other))));
      }
    }),
    { numRuns: 50 },
  );
});
