import assert from "node:assert/strict";
import { test } from "node:test";
import { DriverScene, podWithVolumes } from "../../../test/support/sim-driver-scene.ts";
import { inlineDriver } from "../csi/claimed-volumes.ts";
import { devicesDirectory, recordOf } from "../csi/record-paths.ts";

/** Pods that have the claim, or an inline volume, and what becomes of them while podwright is down. */
interface Case {
  readonly claim: string;
  /** Whose data file is damaged. */
  readonly record: "pod" | "staged";
  readonly pods: "stay" | "are deleted" | "are gone";
}

async function damaged({ claim, record, pods }: Case): Promise<DriverScene> {
  const scene = new DriverScene(true);
  const { node, cluster } = scene;
  node.start();
  for (const name of ["a", "b"]) cluster.want(podWithVolumes(name, claim));
  await scene.pass(40_000);
  assert.ok(scene.runs("uid-a") && scene.runs("uid-b"));
  const { volumes } = node.drivers;
  const [[target, handle] = ["", ""]] = [...volumes.published];
  node.kill();
  await node.files.write(recordOf(record === "pod" ? target : (volumes.staged.get(handle) ?? target)), '{"dri', 0o644);
  if (pods !== "stay") for (const uid of ["uid-a", "uid-b"]) cluster.delete(uid, pods === "are gone" ? 0 : undefined);
  node.start();
  await scene.pass(120_000);
  return scene;
}

for (const claim of ["claim-1", "claim-3", "claim-5", "claim-6", "inline"]) {
  for (const record of ["pod", "staged"] as const) {
    for (const pods of ["stay", "are deleted", "are gone"] as const) {
      test(`${claim}, whose ${record}'s data file is damaged, and whose pods ${pods}, is kept or torn down`, async () => {
        const scene = await damaged({ claim, record, pods });
        const { targets } = scene.node.drivers.volumes;
        if (pods === "stay") assert.ok(scene.runs("uid-a") && scene.runs("uid-b"));
        else assert.deepEqual(targets, []);
        assert.deepEqual(await scene.problems(), []);
        const files = await scene.node.files.list(devicesDirectory.slice(0, -1));
        const left = files.filter(({ name }) => name !== "staging" && name !== "publish");
        if (pods !== "stay") assert.deepEqual(left, []);
      });
    }
  }
}

test("an inline volume with a damaged data file is known by the stored spec of a pod that is gone", async () => {
  const scene = new DriverScene();
  const { node, cluster } = scene;
  const { volumes } = node.drivers;
  using _calls = scene.driver(inlineDriver.name).onCall(({ method, when }) => {
    if (method !== "publish") return;
    if (when === "begins") scene.clock.schedule("the pod to be deleted", 0, () => cluster.delete("uid-a", 0));
    else node.kill();
  });
  node.start();
  cluster.want(podWithVolumes("a", "inline"));
  await scene.pass(20_000);
  const [target = ""] = [...volumes.published.keys()];
  assert.notEqual(target, "");
  await node.files.write(recordOf(target), "", 0o644);
  node.start();
  await scene.pass(60_000);
  assert.deepEqual([...volumes.published], []);
  assert.deepEqual(await scene.problems(), []);
});
