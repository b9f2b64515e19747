import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { deaf, ends, podOf, runs, Scene } from "../../test/support/sim-scene.ts";
import type { Pod } from "../api/pod.ts";
import { CriError } from "../ports/cri.ts";

/** A pod that never restarts, and the same with another image. */
function changed(): { readonly before: Pod; readonly after: Pod } {
  const before = podOf({ restartPolicy: "Never", containers: [runs("c")] });
  return { before, after: podOf({ restartPolicy: "Never", containers: [runs("c", { image: "busybox:2" })] }) };
}

/** A pod that succeeds with its container, which is being stopped because their sandbox is not ready any more. */
async function withoutSandbox(initContainers = [ends("init", 1000, 0)]): Promise<Scene> {
  const scene = new Scene();
  scene.node.add(podOf({ restartPolicy: "OnFailure", initContainers, containers: [deaf("c")] }));
  await scene.pass(5000);
  const sandbox = scene.world.sandboxes.get(scene.container("c").sandboxId);
  assert.ok(sandbox);
  sandbox.ready = false;
  while (scene.entries("StopContainer").length === 0) await scene.pass(100);
  return scene;
}

function phases(scene: Scene): unknown[] {
  return scene.entries("PodPhaseChanged").map(({ data }) => data?.["to"]);
}

describe("a container that is stopped for its new definition", () => {
  test("is started even if that fails at first, whatever its policy, and has not ended meanwhile", async () => {
    const scene = new Scene();
    const { before, after } = changed();
    scene.node.add(before);
    await scene.pass(5000);
    const createContainer = scene.world.createContainer.bind(scene.world);
    scene.world.createContainer = () => {
      throw new CriError("Unknown", "CreateContainer", "no room");
    };
    scene.node.add(after);
    await scene.pass(30_000);
    const { phase, containerStatuses } = scene.status() ?? {};
    assert.deepEqual([phase, containerStatuses?.[0]?.state.waiting?.reason], ["Running", "CreateContainerError"]);
    scene.world.createContainer = createContainer;
    await scene.pass(16_000);
    assert.equal(scene.at("started c").length, 2);
    assert.deepEqual(phases(scene), ["Pending", "Running"]);
    const told = scene.entries("ContainerStateChanged").map(({ message }) => message);
    assert.ok(!told.some((message) => message.includes("terminated")), told.join());
  });

  test("is started by the next run if podwright is killed with the stop", async () => {
    const scene = new Scene();
    const { before, after } = changed();
    scene.node.add(before);
    await scene.pass(5000);
    using _watch = scene.world.onChange(({ type }) => {
      if (type === "stopping") scene.node.kill();
    });
    scene.node.add(after);
    await scene.pass(5000);
    assert.deepEqual([scene.at("exited c").length, scene.at("started c").length], [1, 1]);
    scene.node.start();
    await scene.pass(10_000);
    assert.equal(scene.at("started c").length, 2);
  });
});

describe("a container that is stopped because its sandbox is gone", () => {
  test("runs again in the next one, although it ended well", async () => {
    const scene = await withoutSandbox();
    scene.world.exit(scene.container("c"), 0, "Completed");
    await scene.pass(10_000);
    assert.equal(scene.at("started c").length, 2);
    assert.ok(!phases(scene).includes("Succeeded"));
  });

  test("runs again if no other can be created at first, and podwright is killed", async () => {
    const scene = await withoutSandbox([]);
    const runSandbox = scene.world.runSandbox.bind(scene.world);
    scene.world.runSandbox = () => {
      throw new CriError("Unknown", "RunPodSandbox", "no network");
    };
    scene.world.exit(scene.container("c"), 0, "Completed");
    await scene.pass(20_000);
    scene.node.kill();
    await scene.pass(1000);
    scene.node.start();
    await scene.pass(5000);
    scene.world.runSandbox = runSandbox;
    await scene.pass(30_000);
    assert.equal(scene.at("started c").length, 2);
    assert.ok(!phases(scene).includes("Succeeded"));
  });
});
