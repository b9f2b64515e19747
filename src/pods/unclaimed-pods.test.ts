import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { testSandbox, testStatus } from "../../test/support/observed.ts";
import { podWith } from "../../test/support/pods.ts";
import { silentLog } from "../../test/support/sources.ts";
import { keepSpec } from "../runtime/layout/kept-spec.ts";
import { MemoryFiles } from "../sim/files.ts";
import { UnclaimedPods } from "./unclaimed-pods.ts";

const node = { rootDirectory: "/kubelet" };

async function filesOf(pods: Readonly<Record<string, string>>): Promise<MemoryFiles> {
  const files = new MemoryFiles(new ManualClock());
  for (const [uid, source] of Object.entries(pods)) {
    await files.makeDirectory(`/kubelet/pods/${uid}`, 0o750);
    const annotations = { "kubernetes.io/config.source": source };
    await keepSpec(files, node, podWith({ containers: [{ name: "c" }] }, { name: uid, uid, annotations }), "start");
  }
  return files;
}

interface Known {
  readonly listed?: readonly string[];
  readonly ended?: readonly string[];
  readonly workers?: readonly string[];
  readonly down?: readonly string[];
}

function unclaimedOf(files: MemoryFiles, { listed = [], ended = [], workers = [], down = [] }: Known): UnclaimedPods {
  return new UnclaimedPods({
    checkpoint: { files, node, log: silentLog },
    endings: { has: (uid) => ended.includes(uid) },
    pleg: { isListed: (uid) => listed.includes(uid) },
    cache: {
      get: (uid) => {
        const sandboxes = [testSandbox({ ready: !down.includes(uid) })];
        return { status: { ...testStatus(sandboxes), uid }, error: undefined, observed: 1 };
      },
    },
    workers: { has: (uid) => workers.includes(uid) },
  });
}

test("unclaimed pods of the API server keep their resources until all pods are known", async () => {
  const files = await filesOf({ a: "api", gone: "api", over: "api", named: "api", down: "api", static: "file" });
  await files.makeDirectory("/kubelet/pods/torn", 0o750);
  await files.write("/kubelet/pods/torn/podwright-pod.json", "{", 0o600);
  const listed = ["a", "over", "named", "down", "static"];
  const unclaimed = unclaimedOf(files, { listed, ended: ["over"], workers: ["named"], down: ["down"] });
  const names = (): string[] => unclaimed.holding().map(({ metadata }) => metadata.name);
  assert.deepEqual(names(), [], "nothing was read yet");
  await Promise.all([unclaimed.load(), unclaimed.load()]);
  assert.deepEqual(names(), ["a"]);
  unclaimed.clear();
  assert.deepEqual(names(), []);
});

test("a node without pods has none, and an unreadable directory delays no pod", async () => {
  const none = unclaimedOf(new MemoryFiles(new ManualClock()), {});
  await none.load();
  assert.deepEqual(none.holding(), []);
});
