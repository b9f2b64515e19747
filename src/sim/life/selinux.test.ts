import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DriverScene, podWithVolumes } from "../../../test/support/sim-driver-scene.ts";
import type { Pod } from "../../api/pod.ts";
import { expose } from "../../metrics/exposition.ts";
import { stagingDriver } from "../csi/claimed-volumes.ts";
import { enableSELinux, labelOfLevel } from "../selinux.ts";

/** The claim of a volume for one pod at a time, and another one. */
const [exclusive, shared] = ["claim-7", "claim-1"] as const;

function podOfLevel(name: string, level: string | undefined, changed: Partial<Pod["spec"]> = {}): Pod {
  const pod = podWithVolumes(name, exclusive, shared);
  const securityContext = level === undefined ? {} : { seLinuxOptions: { level } };
  return { ...pod, spec: { ...pod.spec, securityContext, ...changed } };
}

async function sceneWith({ seLinux = true, asks = true } = {}): Promise<DriverScene> {
  const scene = new DriverScene(true, seLinux);
  if (seLinux) await enableSELinux(scene.node);
  if (asks) scene.cluster.storage?.askForLabels(stagingDriver.name);
  scene.node.start();
  return scene;
}

/** The mounts of the exclusive volume: mount options, in mount order. */
async function mountedWith(scene: DriverScene): Promise<string[]> {
  const mounts = await scene.node.mounts.list();
  const own = mounts.filter(({ source }) => source === "handle-7");
  return own.map(({ options }) => options.filter((each) => each !== "seclabel").join());
}

/** Which of a pod's volumes the runtime is to label, by mount path. */
function relabelled(scene: DriverScene, uid: string): readonly unknown[] {
  const { mounts = [] } = scene.runtime.running(uid, "main")?.config ?? {};
  return mounts.flatMap(({ containerPath, selinuxRelabel }) => {
    return containerPath.startsWith("/claim-") ? [[containerPath, selinuxRelabel]] : [];
  });
}

function metrics({ registry }: DriverScene): string {
  return expose(registry.families());
}

const level = "s0:c1,c2";
const option = `context="${labelOfLevel(level)}"`;

describe("on a node with SELinux, a volume for one pod at a time", () => {
  test("is staged and published with the pod's label, and not labelled by the runtime, over a restart", async () => {
    const scene = await sceneWith();
    scene.cluster.want(podOfLevel("a", level));
    await scene.pass(40_000);
    const expected = [
      [`/${exclusive}`, false],
      [`/${shared}`, true],
    ];
    assert.deepEqual([await mountedWith(scene), relabelled(scene, "uid-a")], [[option, option], expected]);
    assert.match(metrics(scene), /volumes_admitted_total\{.*staging\.example\.com.*access_mode="RWOP"\} 1/u);
    scene.node.kill();
    scene.node.start();
    await scene.pass(40_000);
    scene.crash("uid-a");
    await scene.pass(40_000);
    assert.deepEqual([await mountedWith(scene), relabelled(scene, "uid-a")], [[option, option], expected]);
    assert.deepEqual(scene.done("UnpublishVolume"), []);
    assert.deepEqual(await scene.problems(), []);
  });

  test("has no label without SELinux, without a driver that asks, without options, and with the policy Recursive", async () => {
    const recursive = { securityContext: { seLinuxOptions: { level }, seLinuxChangePolicy: "Recursive" } };
    for (const [scene, pod, isRelabelled] of [
      [await sceneWith({ seLinux: false }), podOfLevel("a", level), false],
      [await sceneWith({ asks: false }), podOfLevel("a", level), true],
      [await sceneWith(), podOfLevel("a", undefined), true],
      [await sceneWith(), podOfLevel("a", level, recursive), true],
    ] as const) {
      scene.cluster.want(pod);
      await scene.pass(40_000);
      const expected = [exclusive, shared].map((claim) => [`/${claim}`, isRelabelled]);
      assert.deepEqual([await mountedWith(scene), relabelled(scene, "uid-a")], [["", ""], expected]);
    }
  });

  test("is mounted anew for the next pod if that has another label", async () => {
    const scene = await sceneWith();
    scene.cluster.want(podOfLevel("a", level));
    await scene.pass(40_000);
    scene.cluster.want(podOfLevel("b", "s0:c3,c4"));
    await scene.pass(10_000);
    assert.ok(!scene.runs("uid-b"));
    scene.cluster.delete("uid-a");
    await scene.pass(60_000);
    assert.ok(scene.runs("uid-b"));
    const other = `context="${labelOfLevel("s0:c3,c4")}"`;
    assert.deepEqual(await mountedWith(scene), [other, other]);
    assert.deepEqual(await scene.problems(), []);
  });

  test("keeps its pod waiting, in upstream's words, if its containers have different labels", async () => {
    const scene = await sceneWith({ asks: false });
    const pod = podOfLevel("a", level);
    const [main] = pod.spec.containers;
    assert.ok(main !== undefined);
    const other = { ...main, name: "other", securityContext: { seLinuxOptions: { level: "s0:c3,c4" } } };
    scene.cluster.want({ ...pod, spec: { ...pod.spec, containers: [main, other] } });
    await scene.pass(150_000);
    assert.ok(!scene.runs("uid-a"));
    const words = `multiple SELinux labels found: ${labelOfLevel(level)},${labelOfLevel("s0:c3,c4")}`;
    const events = scene.events("uid-a").filter((event) => event.startsWith("Warning FailedMount: "));
    assert.ok(events.length > 0 && events.every((event) => event.includes(words)), events.join("\n"));
    assert.match(metrics(scene), /pod_context_mismatch_errors_total\{access_mode="RWOP"\} [1-9]/u);
    assert.deepEqual(await mountedWith(scene), []);
  });

  test("is there after a kill at any call of its driver", async () => {
    let moments = Number.POSITIVE_INFINITY;
    for (let killAt = 0; killAt <= moments; killAt++) {
      const scene = await sceneWith();
      let seen = 0;
      for (const driver of scene.node.drivers.all) {
        driver.onCall(() => {
          if (++seen !== killAt) return;
          scene.clock.schedule("podwright to be killed", 0, () => scene.node.kill());
          scene.clock.schedule("podwright to be started again", 1000, () => scene.node.start());
        });
      }
      scene.cluster.want(podOfLevel("a", level));
      await scene.pass(60_000);
      const found = [await mountedWith(scene), relabelled(scene, "uid-a")[0]];
      assert.deepEqual(
        found,
        [
          [option, option],
          [`/${exclusive}`, false],
        ],
        `killed at ${killAt}`,
      );
      assert.deepEqual(await scene.problems(), [], `killed at ${killAt}`);
      if (killAt === 0) moments = seen;
    }
    assert.ok(moments >= 8, `${moments} moments`);
  });
});
