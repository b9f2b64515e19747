import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { podOf, runs, Scene } from "../../test/support/sim-scene.ts";
import type { Container } from "../api/container.ts";
import type { Volume } from "../api/volume.ts";

const image = (name: string, reference: string, pullPolicy = "IfNotPresent"): Volume => {
  return { name, image: { reference, pullPolicy } };
};
const mounting = (name: string, ...volumes: readonly string[]): Container => {
  return runs(name, { volumeMounts: volumes.map((volume) => ({ name: volume, mountPath: `/${volume}` })) });
};

describe("an image volume", () => {
  test("is pulled before its container is created, and mounted by the runtime", async () => {
    const scene = new Scene();
    scene.node.add(podOf({ volumes: [image("v", "pulled:1")], containers: [mounting("c", "v")] }));
    await scene.pass(30_000);
    assert.equal(scene.status()?.phase, "Running");
    const [mount] = scene.container("c").config.mounts;
    assert.equal(mount?.image?.image, "sha256:pulled:1");
    assert.equal(mount?.image?.userSpecifiedImage, "pulled:1");
    assert.deepEqual([mount?.hostPath, mount?.readonly], ["", true]);
    const [pull] = scene.entries("PullImage");
    const [creation] = scene.entries("CreateContainer");
    assert.deepEqual(pull?.data?.["volume"], "v");
    assert.ok(pull !== undefined && creation !== undefined && pull.seq < creation.seq);
  });

  test("without its image keeps the container that mounts it waiting, with upstream's reasons, and no other", async () => {
    const scene = new Scene();
    const volumes = [image("v", "missing:1"), image("w", "busybox")];
    scene.node.add(podOf({ volumes, containers: [mounting("c", "v"), mounting("d", "w")] }));
    await scene.pass(15_000);
    const states = new Map(scene.status()?.containerStatuses?.map(({ name, state }) => [name, state]));
    assert.ok(states.get("d")?.running !== undefined);
    const waiting = states.get("c")?.waiting;
    assert.match(waiting?.reason ?? "", /^(?:ErrImagePull|ImagePullBackOff)$/);
    assert.match(waiting?.message ?? "", /pull.*image "missing:1"/);
    assert.match(scene.entries("VolumeImageMissing")[0]?.message ?? "", /no image for volume "v" \(ErrImagePull\)/);
    scene.world.images.add("missing:1");
    await scene.pass(120_000);
    assert.equal(
      scene.status()?.containerStatuses?.every(({ state }) => state.running !== undefined),
      true,
    );
  });

  test("that no container mounts needs no image", async () => {
    const scene = new Scene();
    scene.node.add(podOf({ volumes: [image("v", "missing:1")], containers: [mounting("c")] }));
    await scene.pass(30_000);
    assert.equal(scene.status()?.phase, "Running");
    assert.deepEqual(scene.entries("PullImage"), []);
  });

  test("of policy Never must be on the node", async () => {
    const scene = new Scene();
    scene.node.add(podOf({ volumes: [image("v", "pulled:1", "Never")], containers: [mounting("c", "v")] }));
    await scene.pass(10_000);
    const [status] = scene.status()?.containerStatuses ?? [];
    assert.equal(status?.state.waiting?.reason, "ErrImageNeverPull");
    assert.equal(status?.state.waiting?.message, 'Container image "pulled:1" is not present with pull policy of Never');
    assert.deepEqual(scene.entries("CreateContainer"), []);
  });

  test("is found again by a later run of podwright, whose restarts of the container mount it, too", async () => {
    const scene = new Scene();
    const volumes = [image("v", "pulled:1")];
    scene.node.add(podOf({ restartPolicy: "Always", volumes, containers: [mounting("c", "v")] }));
    await scene.pass(30_000);
    const first = scene.container("c").id;
    scene.node.kill();
    scene.node.start();
    await scene.pass(30_000);
    assert.equal(scene.container("c").id, first);
    scene.world.exit(scene.container("c"), 1, "Error");
    await scene.pass(60_000);
    const again = scene.container("c");
    assert.notEqual(again.id, first);
    assert.equal(again.config.mounts[0]?.image?.image, "sha256:pulled:1");
  });
});
