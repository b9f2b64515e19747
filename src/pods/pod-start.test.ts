import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { podOf, runs, Scene } from "../../test/support/sim-scene.ts";
import { CriError } from "../ports/cri.ts";

describe("a start", () => {
  test("creates no sandbox for a pod whose volumes fail", async () => {
    const scene = new Scene();
    const volumes = [{ name: "v", configMap: { name: "nope" } }];
    scene.node.add(podOf({ volumes, containers: [runs("c", { volumeMounts: [{ name: "v", mountPath: "/v" }] })] }));
    await scene.pass(30_000);
    assert.ok(scene.entries("MountVolume").length > 0);
    assert.deepEqual(scene.entries("RunPodSandbox"), []);
    assert.equal(scene.status()?.containerStatuses?.[0]?.state.waiting?.reason, "ContainerCreating");
  });

  test("that fails leaves no link to the log of its replacement", async () => {
    const scene = new Scene();
    const startContainer = scene.world.startContainer.bind(scene.world);
    scene.world.startContainer = () => {
      throw new CriError("Unavailable", "StartContainer", "connection refused");
    };
    scene.node.add(podOf({ containers: [runs("c")] }));
    await scene.pass(5000);
    scene.world.startContainer = startContainer;
    await scene.pass(30_000);
    assert.equal(scene.status()?.phase, "Running");
    const [id] = [...scene.world.containers.values()].map((container) => container.id);
    const links = await scene.node.files.list("/var/log/containers");
    assert.deepEqual(
      links.map(({ name }) => name),
      [`web_default_c-${id}.log`],
    );
  });
});
