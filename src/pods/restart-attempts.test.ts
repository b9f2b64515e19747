import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ends, podOf, runs, Scene } from "../../test/support/sim-scene.ts";
import type { Container } from "../api/container.ts";
import { CriError } from "../ports/cri.ts";
import type { RuntimeWorld } from "../sim/runtime-world.ts";

const directory = "/srv/data";
const volumes = [{ name: "v", hostPath: { path: directory, type: "Directory" } }];
const volumeMounts = [{ name: "v", mountPath: "/data" }];
/** Longer than five doublings of a back-off of 10 s. */
const longMs = 330_000;
/** A try every 10 to 15 s. */
const retryMs = 16_000;

/** All such calls of the runtime fail until the returned function is called. */
function refusing(
  world: RuntimeWorld,
  call: "createContainer" | "removeContainer" | "runSandbox" | "stopContainer",
): () => void {
  const own = world[call];
  world[call] = () => {
    throw new CriError("Unknown", call, "no room");
  };
  return () => Object.assign(world, { [call]: own });
}

describe("a planned restart that is dropped before its attempt", () => {
  test("for a missing volume happens once that is available, and the next exit waits as after a first restart", async () => {
    const scene = new Scene();
    await scene.node.files.makeDirectory(directory, 0o755);
    scene.node.add(podOf({ volumes, containers: [ends("c", 8000, 3, { volumeMounts })] }));
    await scene.pass(3000);
    await scene.node.files.remove(directory);
    await scene.pass(longMs);
    assert.ok(
      scene.entries("MountVolume").filter(({ kind }) => kind === "action").length > 15,
      "it is tried every time",
    );
    assert.equal(scene.at("started c").length, 1);
    assert.equal(scene.status()?.containerStatuses?.[0]?.state.waiting?.reason, "ContainerCreating");
    await scene.node.files.makeDirectory(directory, 0o755);
    await scene.pass(retryMs + 8000 + 12_000);
    const [[first = 0], [, second = 0, third = 0]] = [scene.at("exited c"), scene.at("started c")];
    assert.ok(second > first + longMs - 10_000 && second < first + longMs + retryMs, `restarted at ${second}`);
    assert.ok(third - second >= 18_000 && third - second < 19_000, `and ${third - second} ms later`);
  });

  test("for a missing volume in a new sandbox does not delay the sandbox once the volume is available", async () => {
    const scene = new Scene();
    await scene.node.files.makeDirectory(directory, 0o755);
    scene.node.add(podOf({ volumes, containers: [runs("c", { volumeMounts })] }));
    await scene.pass(3000);
    await scene.node.files.remove(directory);
    scene.world.stopSandbox(scene.container("c").sandboxId);
    await scene.pass(longMs);
    assert.equal(scene.at("sandboxStarted uid-1").length, 1);
    await scene.node.files.makeDirectory(directory, 0o755);
    await scene.pass(retryMs);
    assert.equal(scene.at("sandboxStarted uid-1").length, 2);
    assert.equal(scene.container("c").state, "running");
  });

  test("for a missing sandbox happens as soon as one can be created, however often that failed", async () => {
    const scene = new Scene();
    scene.node.add(podOf({ containers: [runs("c")] }));
    await scene.pass(3000);
    const allow = refusing(scene.world, "runSandbox");
    scene.world.stopSandbox(scene.container("c").sandboxId);
    await scene.pass(longMs);
    const tries = scene.entries("RunPodSandbox").filter(({ kind }) => kind === "action");
    assert.ok(tries.length > 15, `${tries.length} tries`);
    allow();
    await scene.pass(retryMs);
    assert.equal(scene.container("c").state, "running");
    scene.world.exit(scene.container("c"), 1, "Error");
    await scene.pass(1000);
    const wait = scene.status()?.containerStatuses?.[0]?.state.waiting?.message;
    assert.match(wait ?? "", /^back-off 10s /u, "it was restarted once");
  });

  test("for a failed stop before its pod starts over continues as soon as the stop succeeds", async () => {
    const scene = new Scene();
    const source = ends("source", 30_000, 88, {
      restartPolicy: "Never",
      restartPolicyRules: [{ action: "RestartAllContainers", exitCodes: { operator: "In", values: [88] } }],
    });
    scene.node.add(podOf({ containers: [source, runs("other")] }));
    await scene.pass(3000);
    const allow = refusing(scene.world, "stopContainer");
    await scene.pass(30_000 + longMs);
    const tries = scene.entries("StopContainer").filter(({ kind }) => kind === "action").length;
    assert.ok(tries > 15 && tries < 40, `${tries} tries`);
    allow();
    await scene.pass(retryMs);
    assert.deepEqual([scene.at("started source").length, scene.at("started other").length], [2, 2]);
  });
});

describe("a restart of all containers that fails", () => {
  const asks: Partial<Container> = {
    restartPolicy: "Never",
    restartPolicyRules: [{ action: "RestartAllContainers", exitCodes: { operator: "In", values: [88] } }],
  };

  test("is retried soon, as what it is: nothing is in a crash-loop back-off any more", async () => {
    const scene = new Scene();
    scene.node.add(podOf({ containers: [ends("source", 1000, 88, asks), runs("other")] }));
    // The second exit waits 10 s.
    await scene.pass(9000);
    assert.equal(scene.entries("BackOff").length, 1);
    const allow = refusing(scene.world, "removeContainer");
    await scene.pass(60_000);
    assert.equal(scene.entries("BackOff").length, 1);
    const retries = scene.entries("StartRetry").map(({ message }) => message);
    assert.ok(retries.length >= 3, retries.join());
    for (const retry of retries) {
      assert.match(retry, /^container source waits 1\d s before its retry: RestartingAllContainers: .*no room$/u);
    }
    const waiting = scene.status()?.containerStatuses?.[0]?.state.waiting;
    assert.equal(waiting?.reason, "RestartingAllContainers");
    assert.match(waiting.message ?? "", /no room$/u);
    allow();
    await scene.pass(retryMs);
    assert.equal(scene.at("started source").length, 3);
  });

  test("does not wait for the back-off of sandboxes that were lost before its containers first ran", async () => {
    const scene = new Scene();
    const initContainers = [ends("init", 9000, 0)];
    scene.node.add(podOf({ initContainers, containers: [ends("source", 1000, 88, asks), runs("other")] }));
    await scene.pass(3000);
    for (let lost = 1; lost <= 5; lost++) {
      scene.world.stopSandbox(scene.container("init").sandboxId);
      // The first is replaced at once, the others 10, 20, 40 and 80 s after their creation.
      await scene.pass(lost === 1 ? 3000 : 5000 * 2 ** (lost - 1));
      assert.equal(scene.at("sandboxStarted uid-1").length, lost + 1);
    }
    refusing(scene.world, "removeContainer");
    await scene.pass(60_000);
    assert.equal(scene.at("started source").length, 1);
    const begun = scene.entries("RemoveContainer").filter(({ kind, message }) => {
      return kind === "action" && message.endsWith("for a restart of all containers");
    });
    assert.ok(begun.length >= 4, `${begun.length} tries`);
  });
});

describe("an attempted restart that fails", () => {
  test("counts each time, as upstream: after a missing image, or a failed creation", async () => {
    for (const hinder of [
      (scene: Scene): void => scene.world.images.remove("busybox:latest"),
      (scene: Scene): void => void refusing(scene.world, "createContainer"),
    ]) {
      const scene = new Scene();
      scene.node.add(podOf({ containers: [ends("c", 8000, 3, { imagePullPolicy: "Never" })] }));
      await scene.pass(3000);
      hinder(scene);
      await scene.pass(120_000);
      const record = await scene.node.files.read("/var/lib/kubelet/pods/uid-1/podwright.json", 10_000);
      const { backOff } = JSON.parse(new TextDecoder().decode(record));
      assert.equal(scene.at("started c").length, 1);
      assert.ok(backOff[0].delayMs >= 80_000, JSON.stringify(backOff));
    }
  });
});
