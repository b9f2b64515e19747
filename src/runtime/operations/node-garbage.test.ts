import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { testContainer, testSandbox, testStatus } from "../../../test/support/observed.ts";
import { containerId, podUid, sandboxId } from "../../base/ids.ts";
import type { Cause, JournalInput } from "../../journal/entry.ts";
import { MemoryFiles } from "../../sim/files.ts";
import { silentLog } from "../../sim/machine.ts";
import { defaultGarbagePolicy } from "../actions/garbage.ts";
import { NodeGarbage } from "./node-garbage.ts";
import { PodHoldings } from "../pod-holdings.ts";
import type { RemovedContainer } from "./removed-lately.ts";
import { removePodLogs } from "../layout/pod-directories.ts";
import type { PodStatus } from "../status/pod-status.ts";

const signal = new AbortController().signal;
const links = "/var/log/containers";
const logs = "/var/log/pods";

class Scene {
  readonly clock = new ManualClock();
  readonly files = new MemoryFiles(this.clock);
  readonly node = { rootDirectory: "/kubelet", podLogsRoot: logs, containerLogsRoot: links };
  readonly entries: JournalInput[] = [];
  readonly destroyed: string[] = [];
  isReady = true;
  pods: PodStatus[] = [];
  cgroups: string[] = [];
  readonly known = new Set(["uid-1"]);
  readonly removed: string[] = [];
  /** Of the last removal. */
  cause: Cause | undefined;
  readonly over = new Set<string>();
  readonly evicted = new Set<string>();
  /** Pods of other nodes of the machine. */
  readonly owned = new Set(["uid-2"]);
  /** What was removed lately, in other ways, too. */
  readonly lately: RemovedContainer[] = [];
  /** Containers, files and cgroups that cannot be removed. */
  readonly stuck = new Set<string>();
  readonly removal = {
    removeDead: async (_: unknown, { id }: { readonly id: string }) => {
      this.#free(id);
      this.removed.push(id);
    },
    lately: this.lately,
  };
  readonly garbage = new NodeGarbage(
    {
      effects: {
        clock: this.clock,
        files: this.files,
        log: silentLog,
        journal: { record: (entry: JournalInput) => this.entries.push(entry) },
      },
      removal: this.removal,
      collector: {
        removeParts: async ({ uid }, { containers, sandboxes }, cause) => {
          this.cause = cause;
          for (const { id } of [...containers, ...sandboxes]) this.removed.push(`${uid} ${id}`);
          for (const { id } of containers) this.lately.push({ id, uid, atMs: this.clock.monotonic() });
          const ids = { containers: containers.map(({ id }) => id), sandboxes: sandboxes.map(({ id }) => id) };
          return { ...ids, failures: [] };
        },
      },
      isOver: (uid) => this.over.has(uid),
      isEvicted: (uid) => this.evicted.has(uid),
      logOwners: async () => ({ has: async (uid) => this.owned.has(uid) }),
      node: this.node,
      holdings: new PodHoldings([
        {
          name: "cgroup",
          until: "removed",
          release: async ({ uid }) => {
            this.#free(uid);
            this.destroyed.push(uid);
          },
          leftovers: { what: "RemoveCgroup", uids: async () => this.cgroups.map(podUid) },
        },
        {
          name: "nothing",
          until: "removed",
          release: async ({ uid }) => void this.destroyed.push(`nothing of ${uid}`),
        },
      ]),
      ready: () => this.isReady,
      pods: () => this.pods,
      pod: (uid) => this.pods.find((status) => status.uid === uid),
      known: (uid) => this.known.has(uid),
    },
    { ...defaultGarbagePolicy, maxContainers: 0, periodMs: 60_000 },
  );

  constructor() {
    const remove = this.files.remove.bind(this.files);
    this.files.remove = async (path) => {
      this.#free(path);
      await remove(path);
    };
    const removeTree = this.files.removeTree.bind(this.files);
    this.files.removeTree = async (path) => {
      this.#free(path);
      await removeTree(path);
    };
  }

  #free(what: string): void {
    if (this.stuck.has(what)) throw new Error(`${what} is stuck`);
  }

  async link(name: string, target: string, exists: boolean): Promise<void> {
    await this.files.makeDirectory(links, 0o755);
    await this.files.makeDirectory(target.slice(0, target.lastIndexOf("/")), 0o755);
    if (exists) await this.files.write(target, "", 0o640);
    await this.files.symlink(target, `${links}/${name}`);
  }

  async linkNames(): Promise<string[]> {
    return (await this.files.list(links)).map(({ name }) => name).toSorted();
  }
}

test("a link is removed when its log is gone, unless its container still runs or the link is foreign", async () => {
  const scene = new Scene();
  const own = `${logs}/default_pod_uid-1/c`;
  await scene.link("pod_default_c-111111.log", `${own}/0.log`, false);
  await scene.link("pod_default_c-222222.log", `${own}/1.log`, true);
  await scene.link("pod_default_c-333333.log", `${own}/2.log`, false);
  scene.owned.add("uid-9");
  await scene.link("other_default_c-444444.log", `${logs}/default_other_uid-2/c/0.log`, false);
  await scene.link("elsewhere_default_c-555555.log", "/srv/logs/a/c/0.log", false);
  await scene.link("notes.txt", `${own}/0.log`, false);
  scene.pods = [testStatus([], [testContainer({ id: containerId("333333") })])];
  await scene.garbage.collect(signal);
  assert.deepEqual(await scene.linkNames(), [
    "elsewhere_default_c-555555.log",
    "notes.txt",
    "other_default_c-444444.log",
    "pod_default_c-222222.log",
    "pod_default_c-333333.log",
  ]);
  assert.equal(scene.entries[0]?.cause?.message, `${own}/0.log does not exist`);
});

test("unknown pods' holdings are released, but their identifying ones not before the pod's directory", async () => {
  const scene = new Scene();
  scene.cgroups = ["uid-1", "uid-2", "uid-3"];
  await scene.files.makeDirectory("/kubelet/pods/uid-3", 0o750);
  await scene.garbage.collect(signal);
  assert.deepEqual(scene.destroyed, ["uid-2"]);
  assert.deepEqual(
    scene.entries.filter(({ kind }) => kind === "action").map(({ what, message }) => `${what}: ${message}`),
    ["RemoveCgroup: remove the cgroup of pod uid-2"],
  );
});

test("a failed collection is reported, and continues with the rest", async () => {
  const scene = new Scene();
  await scene.files.makeDirectory("/var/log", 0o755);
  await scene.files.write(links, "no directory", 0o644);
  scene.cgroups = ["uid-2"];
  await scene.garbage.collect(signal);
  const [told] = scene.entries;
  assert.equal(told?.what, "ContainerGCFailed");
  assert.match(told.message, /\/var\/log\/containers/u);
  assert.deepEqual(scene.destroyed, ["uid-2"]);
});

test("a pod is removed with all links to its logs, and no others", async () => {
  const scene = new Scene();
  await scene.link("pod_default_c-111111.log", `${logs}/default_pod_uid-1/c/0.log`, true);
  await scene.link("pod_default_c-222222.log", `${logs}/default_pod_uid-9/c/0.log`, true);
  await removePodLogs(scene.files, scene.node, { uid: podUid("uid-1"), namespace: "default", name: "pod" });
  assert.deepEqual(await scene.linkNames(), ["pod_default_c-222222.log"]);
  assert.equal(await scene.files.stat(`${logs}/default_pod_uid-1`), undefined);
});

test("one container, log, link or cgroup that cannot be removed does not keep others, and all are told", async () => {
  const scene = new Scene();
  for (const name of ["p_default_c-1.log", "p_default_c-2.log"]) {
    await scene.link(name, `${logs}/default_p_uid-1/c/${name}`, false);
  }
  for (const uid of ["uid-7", "uid-8"]) await scene.files.makeDirectory(`${logs}/default_gone_${uid}`, 0o755);
  await scene.clock.advance(600_000);
  scene.cgroups = ["uid-7", "uid-8"];
  // The newest first, which stays.
  const dead = ["c-3", "c-2", "c-1"].map((id, index) =>
    testContainer({ id: containerId(id), state: "exited", createdAt: BigInt(9 - index) }),
  );
  scene.pods = [testStatus([], dead)];
  const stuck = ["c-1", "uid-7", `${logs}/default_gone_uid-7`, `${links}/p_default_c-1.log`];
  for (const each of stuck) scene.stuck.add(each);
  await scene.garbage.collect(signal);
  assert.deepEqual(scene.removed, ["c-2"]);
  assert.deepEqual(scene.destroyed, ["uid-8"]);
  assert.deepEqual(await scene.linkNames(), ["p_default_c-1.log"]);
  const left = await scene.files.list(logs);
  assert.deepEqual(left.map(({ name }) => name).toSorted(), ["default_gone_uid-7", "default_p_uid-1"]);
  const told = scene.entries.filter(({ what }) => what === "ContainerGCFailed");
  assert.deepEqual(
    told.map(({ message }) => message),
    ["c-1 is stuck", `${logs}/default_gone_uid-7 is stuck`, `${links}/p_default_c-1.log is stuck`],
  );
});

test("a failed step prevents no other", async () => {
  const scene = new Scene();
  await scene.files.write("/var-log", "", 0o600);
  scene.cgroups = ["uid-2"];
  scene.node.containerLogsRoot = "/var-log";
  await scene.garbage.collect(signal);
  assert.deepEqual(scene.destroyed, ["uid-2"]);
});

test("logs of unknown pods are removed with their links; those of this and other nodes, young ones and other files stay", async () => {
  const scene = new Scene();
  const bare = "0123456789abcdef0123456789abcdef";
  for (const name of [
    "default_pod_uid-1",
    "default_other_uid-2",
    "default_gone_uid-3",
    "default_left_uid-4",
    bare,
    "notes",
  ]) {
    await scene.files.makeDirectory(`${logs}/${name}`, 0o755);
  }
  await scene.files.write(`${logs}/default_file_uid-5`, "", 0o600);
  await scene.files.makeDirectory("/kubelet/pods/uid-4", 0o750);
  await scene.link("gone_default_c-111111.log", `${logs}/default_gone_uid-3/c/0.log`, true);
  await scene.link("away_default_c-222222.log", `${logs}/default_away_uid-6/c/0.log`, false);
  await scene.files.removeTree(`${logs}/default_away_uid-6`);
  await scene.clock.advance(600_000);
  await scene.files.makeDirectory(`${logs}/default_new_uid-7`, 0o755);
  await scene.garbage.collect(signal);
  assert.deepEqual((await scene.files.list(logs)).map(({ name }) => name).toSorted(), [
    "default_file_uid-5",
    "default_left_uid-4",
    "default_new_uid-7",
    "default_other_uid-2",
    "default_pod_uid-1",
    "notes",
  ]);
  assert.deepEqual(await scene.linkNames(), []);
});

test("useless containers are removed at once, and all of an ended pod", async () => {
  const scene = new Scene();
  const dead = (name: string, restartCount: number) =>
    testContainer({ id: containerId(`${name}-${restartCount}`), name, restartCount, state: "exited" });
  const runs = testContainer({ id: containerId("web-2"), name: "web", restartCount: 2, state: "running" });
  const containers = [runs, dead("web", 1), dead("web", 0), dead("job", 1), dead("job", 0)];
  const status = { ...testStatus([testSandbox({ ready: true })], containers), uid: podUid("uid-1") };
  scene.pods = [status];
  const cause = { code: "GarbageRequested", message: "" } as const;
  await scene.garbage.removeUnused(cause, signal);
  assert.deepEqual(scene.removed.splice(0), ["uid-1 web-0", "uid-1 job-0"]);
  assert.deepEqual([scene.cause?.code, scene.cause?.because], ["ContainerGC", cause], "why tells what ended the pod");
  const [unused] = scene.garbage.unused();
  assert.deepEqual(
    unused?.parts.stays.map(({ container, why }) => [container.id, why]),
    [
      ["web-2", "running"],
      ["web-1", "one of the last dead instances, or too recent"],
      ["job-1", "newest instance of its container"],
    ],
  );
  scene.over.add("uid-1");
  scene.pods = [{ ...status, containers: containers.slice(1), sandboxes: [testSandbox({ ready: false })] }];
  await scene.garbage.removeUnused(cause, signal);
  assert.deepEqual(scene.removed.length, 3, "two more containers, and their sandbox");
});

test("an evicted pod's leftovers are removed by the next collection, but not those of other ended pods", async () => {
  const scene = new Scene();
  for (const uid of ["uid-1", "uid-3"]) {
    scene.known.add(uid);
    scene.over.add(uid);
    const id = sandboxId(`s-${uid}`);
    const container = testContainer({ id: containerId(`c-${uid}`), state: "exited", sandboxId: id });
    scene.pods.push({ ...testStatus([testSandbox({ id, ready: false })], [container]), uid: podUid(uid) });
  }
  scene.evicted.add("uid-3");
  await scene.garbage.collect(signal);
  assert.deepEqual(scene.removed, ["uid-3 c-uid-3", "uid-3 s-uid-3"]);
});

test("a user is offered what evicted pods have left, also while only that shows their end", async () => {
  const scene = new Scene();
  const container = testContainer({ id: containerId("c"), state: "exited", sandboxId: sandboxId("s") });
  const sandbox = testSandbox({ id: sandboxId("s"), ready: false });
  scene.pods = ["uid-1", "uid-3"].map((uid) => ({ ...testStatus([sandbox], [container]), uid: podUid(uid) }));
  scene.evicted.add("uid-3");
  assert.deepEqual(
    scene.garbage.unused().map(({ parts }) => [...parts.containers, ...parts.sandboxes].map(({ id }) => id)),
    [[], ["c", "s"]],
  );
  await scene.garbage.removeUnused({ code: "GarbageRequested", message: "" }, signal);
  assert.deepEqual(scene.removed, ["uid-3 c", "uid-3 s"]);
});

test("before all pods are known nothing is removed: not periodically, not on request, not for space", async () => {
  const scene = new Scene();
  scene.isReady = false;
  const container = testContainer({ id: containerId("c"), state: "exited" });
  scene.pods = [{ ...testStatus([testSandbox({ ready: false })], [container]), uid: podUid("uid-3") }];
  scene.evicted.add("uid-3");
  scene.over.add("uid-3");
  scene.cgroups = ["uid-2"];
  const stop = new AbortController();
  const running = scene.garbage.run(stop.signal);
  const cause = { code: "EvictionThresholdMet", message: "the disk is full" } as const;
  await scene.clock.advance(60_000);
  assert.equal(scene.garbage.isReady, false);
  assert.deepEqual(await scene.garbage.removeUnused(cause, signal), { containers: [], sandboxes: [], failures: [] });
  assert.deepEqual(await scene.garbage.removeEvicted(cause, signal), []);
  assert.deepEqual([scene.removed, scene.destroyed], [[], []]);
  scene.isReady = true;
  await scene.clock.advance(60_000);
  assert.deepEqual([scene.removed[0], scene.destroyed], ["uid-3 c", ["uid-2"]]);
  stop.abort(new Error("the test is over"));
  await running;
});

test("a node that is short of space removes evicted pods' containers at once, whatever else shows their end", async () => {
  const scene = new Scene();
  const container = testContainer({ id: containerId("c"), state: "exited", sandboxId: sandboxId("s") });
  const sandbox = testSandbox({ id: sandboxId("s"), ready: false });
  scene.pods = ["uid-1", "uid-3"].map((uid) => ({ ...testStatus([sandbox], [container]), uid: podUid(uid) }));
  scene.evicted.add("uid-3");
  await scene.garbage.collect(signal);
  assert.deepEqual(scene.removed, [], "the pod has no other record of its end");
  const cause = { code: "EvictionThresholdMet", message: "the disk is full" } as const;
  assert.deepEqual(
    (await scene.garbage.removeEvicted(cause, signal)).map(({ id }) => id),
    ["c"],
  );
  assert.deepEqual(scene.removed, ["uid-3 c", "uid-3 s"]);
  assert.deepEqual([scene.cause?.code, scene.cause?.because], ["ContainerGC", cause]);
});

test("containers of evicted pods that were just removed in any way count as removed: their space may not be free yet", async () => {
  const scene = new Scene();
  scene.evicted.add("uid-3");
  for (const uid of ["uid-3", "uid-4"]) scene.lately.push({ id: containerId(uid), uid: podUid(uid), atMs: 0 });
  const cause = { code: "EvictionThresholdMet", message: "the disk is full" } as const;
  assert.deepEqual(
    (await scene.garbage.removeEvicted(cause, signal)).map(({ id }) => id),
    ["uid-3"],
  );
  assert.equal(scene.garbage.removedLately.length, 2);
});

test("what was removed is not removed again while a runtime that hangs lists it still, and again after a minute", async () => {
  const scene = new Scene();
  const container = testContainer({ id: containerId("c"), state: "exited", sandboxId: sandboxId("s") });
  const sandbox = testSandbox({ id: sandboxId("s"), ready: false });
  scene.pods = [{ ...testStatus([sandbox], [container]), uid: podUid("uid-3") }];
  scene.evicted.add("uid-3");
  const cause = { code: "EvictionThresholdMet", message: "the disk is full" } as const;
  const reclaim = async (): Promise<void> => {
    await scene.garbage.removeEvicted(cause, signal);
    await scene.garbage.removeUnused(cause, signal);
  };
  await reclaim();
  await scene.clock.advance(59_000);
  await reclaim();
  assert.deepEqual(scene.removed, ["uid-3 c", "uid-3 s"]);
  await scene.clock.advance(1_000);
  await reclaim();
  assert.deepEqual(scene.removed, ["uid-3 c", "uid-3 s", "uid-3 c", "uid-3 s"]);
});
