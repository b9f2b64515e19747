import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testContainer, testPod, testSandbox, testStatus } from "../../test/support/observed.ts";
import type { Pod } from "../api/pod.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import { StartUp } from "../base/start-up.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import { SimClock } from "../sim/clock.ts";
import { MemoryFiles } from "../sim/files.ts";
import { silentLog } from "../sim/machine.ts";
import { matchesRunning } from "../sources/static-pod.ts";
import { StartedStaticPods } from "./started-static-pods.ts";
import { StaticIdentity } from "./static-identity.ts";
import type { PodChange } from "./pod-change.ts";

const cause = { code: "Resync", message: "a test" } as const;
const configHash = "kubernetes.io/config.hash";
const computed = "0123456789abcdef0123456789abcdef";
const running = podUid("fedcba9876543210fedcba9876543210");

function staticTestPod(uid: string): Pod {
  const pod = testPod({}, uid);
  const annotations = { "kubernetes.io/config.source": "file", [configHash]: uid };
  return { ...pod, metadata: { ...pod.metadata, annotations } };
}

function setUp(
  runtime: ReadonlyMap<PodUid, PodStatus>,
  files = new MemoryFiles(new SimClock(0).incarnation()),
): {
  identity: StaticIdentity;
  passed: PodChange[];
  listed: () => void;
} {
  const passed: PodChange[] = [];
  const startUp = new StartUp();
  const identity = new StaticIdentity({
    startUp,
    pleg: {
      podsNamed: () => [...runtime.keys()],
      isListed: (uid) => runtime.has(uid),
    },
    started: new StartedStaticPods(files, silentLog, "/var/lib/kubelet/podwright/static-pods"),
    cache: {
      getNewerThan: async (uid) => runtime.get(uid) ?? Promise.reject(new Error("the runtime hangs")),
    },
    journal: { record: () => 1 },
    log: silentLog,
    matchesRunning,
    observeLimitMs: 1000,
  });
  identity.connect((change) => passed.push(change));
  return { identity, passed, listed: () => startUp.reach("listed") };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const uids = (changes: readonly PodChange[]): string[] => changes.map(({ op, pod }) => `${op} ${pod.metadata.uid}`);
const asWanted = new Map([[running, testStatus([testSandbox()], [testContainer()])]]);

describe("static pod identity", () => {
  test("a pod that runs as in its manifest keeps its present UID, also for later changes", async () => {
    const { identity, passed, listed } = setUp(asWanted);
    const pod = staticTestPod(computed);
    identity.handle({ op: "add", pod, cause });
    await turn();
    assert.deepEqual(passed, []);
    assert.equal(identity.settled, false, "the pod would be taken for one that nobody wants");
    listed();
    await turn();
    assert.equal(identity.settled, true);
    identity.handle({ op: "update", pod, cause });
    identity.handle({ op: "remove", pod, cause });
    assert.deepEqual(uids(passed), [`add ${running}`, `update ${running}`, `remove ${running}`]);
  });

  test("the annotation config.hash of a pod that keeps its UID is that UID, as of every static pod", async () => {
    const { identity, passed, listed } = setUp(asWanted);
    const pod = staticTestPod(computed);
    assert.equal(identity.resolved(pod), pod);
    listed();
    identity.handle({ op: "add", pod, cause });
    await turn();
    const annotations = { "kubernetes.io/config.source": "file", [configHash]: running };
    assert.deepEqual(passed[0]?.pod.metadata.annotations, annotations);
    assert.deepEqual(identity.resolved(pod), passed[0]?.pod);
    identity.handle({ op: "remove", pod, cause });
    assert.deepEqual(passed[1]?.pod.metadata.annotations, annotations);
    assert.equal(identity.resolved(pod), pod);
  });

  test("a manifest that changes while its pod runs defines another pod, even with equal container hashes", async () => {
    const { identity, passed, listed } = setUp(asWanted);
    const changed = "00000000000000000000000000000001";
    listed();
    identity.handle({ op: "add", pod: staticTestPod(computed), cause });
    await turn();
    identity.handle({ op: "remove", pod: staticTestPod(computed), cause });
    identity.handle({ op: "add", pod: staticTestPod(changed), cause });
    await turn();
    assert.deepEqual(uids(passed), [`add ${running}`, `remove ${running}`, `add ${changed}`]);
  });

  test("a pod whose containers differ is not adopted", async () => {
    const other = new Map([[running, testStatus([testSandbox()], [testContainer({ image: "other" })])]]);
    const { identity, passed, listed } = setUp(other);
    listed();
    identity.handle({ op: "add", pod: staticTestPod(computed), cause });
    await turn();
    assert.deepEqual(uids(passed), [`add ${computed}`]);
  });

  test("a UID that podwright assigned in an earlier run is not adopted: the manifest has changed since", async () => {
    const files = new MemoryFiles(new SimClock(0).incarnation());
    await files.makeDirectory("/var/lib/kubelet/podwright/static-pods", 0o700);
    await files.write(`/var/lib/kubelet/podwright/static-pods/${running}`, "", 0o600);
    await files.write("/var/lib/kubelet/podwright/static-pods/gone", "", 0o600);
    const { identity, passed, listed } = setUp(asWanted, files);
    listed();
    identity.handle({ op: "add", pod: staticTestPod(computed), cause });
    await turn();
    assert.deepEqual(uids(passed), [`add ${computed}`]);
    const remembered = await files.list("/var/lib/kubelet/podwright/static-pods");
    assert.deepEqual(new Set(remembered.map(({ name }) => name)), new Set([running, computed]));
  });

  test("a pod whose sandbox is not ready is not adopted", async () => {
    const dead = new Map([[running, testStatus([testSandbox({ ready: false })], [testContainer()])]]);
    const { identity, passed, listed } = setUp(dead);
    listed();
    identity.handle({ op: "add", pod: staticTestPod(computed), cause });
    await turn();
    assert.deepEqual(uids(passed), [`add ${computed}`]);
  });

  test("an ended pod with the computed UID stays ended if another kubelet has started the pod since", async () => {
    const ended: [PodUid, PodStatus] = [
      podUid(computed),
      testStatus([testSandbox({ ready: false })], [testContainer()]),
    ];
    for (const runtime of [new Map([ended, ...asWanted]), new Map([...asWanted, ended])]) {
      const { identity, passed, listed } = setUp(runtime);
      listed();
      identity.handle({ op: "add", pod: staticTestPod(computed), cause });
      await turn();
      assert.deepEqual(uids(passed), [`add ${running}`]);
    }
  });

  test("a pod that runs, or may run, with the computed UID keeps it", async () => {
    for (const own of [testStatus([testSandbox()], [testContainer()]), undefined as never]) {
      const { identity, passed, listed } = setUp(new Map([[podUid(computed), own], ...asWanted]));
      listed();
      identity.handle({ op: "add", pod: staticTestPod(computed), cause });
      await turn();
      assert.deepEqual(uids(passed), [`add ${computed}`]);
    }
  });

  test("a manifest's own UID stays, and the pod does not wait", () => {
    const { identity, passed } = setUp(asWanted);
    identity.handle({ op: "add", pod: staticTestPod("11111111-2222-3333-4444-555555555555"), cause });
    assert.equal(passed.length, 1);
  });

  test("changes behind a waiting one keep their order", async () => {
    const { identity, passed, listed } = setUp(asWanted);
    identity.handle({ op: "add", pod: staticTestPod(computed), cause });
    identity.handle({ op: "add", pod: testPod({}, "uid-2", "other"), cause });
    assert.deepEqual(passed, []);
    listed();
    await turn();
    assert.deepEqual(uids(passed), [`add ${running}`, "add uid-2"]);
  });

  test("a runtime that hangs costs the adoption, not the pod", async () => {
    const { identity, passed, listed } = setUp(new Map([[running, undefined as never]]));
    listed();
    identity.handle({ op: "add", pod: staticTestPod(computed), cause });
    await turn();
    assert.deepEqual(uids(passed), [`add ${computed}`]);
  });
});
