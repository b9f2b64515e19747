/** What admission judges when podwright or the machine starts again, played step by step. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ends, podOf, runs, Scene } from "../../../test/support/sim-scene.ts";
import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";

const withCpu = (container: Container, cpu: string): Container => ({ ...container, resources: { requests: { cpu } } });

function asking(cpu: string, uid: string, container = runs("c")): Pod {
  return podOf({ containers: [withCpu(container, cpu)] }, uid, uid);
}

/** A node whose resources may be fewer in its next run. */
class Restart {
  readonly scene = new Scene({ cpu: "1" });

  async run(...pods: readonly Pod[]): Promise<void> {
    for (const pod of pods) this.scene.node.add(pod);
    await this.scene.pass(20_000);
  }

  /** podwright starts again, or with it the machine, on which only remains of pods are left. */
  async again(what: "podwright" | "machine", cpu: string): Promise<void> {
    const { node, world } = this.scene;
    node.kill();
    if (what === "machine") for (const { id } of world.sandboxes.values()) world.stopSandbox(id);
    this.scene.limit({ cpu });
    node.start();
    await this.scene.pass(30_000);
  }

  running(...uids: readonly string[]): boolean[] {
    return uids.map((uid) => this.scene.world.running(uid, "c") !== undefined);
  }
}

describe("when the machine has started again", () => {
  test("a pod for which the node has no room any more is rejected", async () => {
    const restart = new Restart();
    await restart.run(asking("400m", "uid-1"), asking("400m", "uid-2"));
    await restart.again("machine", "500m");
    assert.deepEqual(restart.running("uid-1", "uid-2"), [true, false]);
    const { phase, reason } = restart.scene.status("uid-2") ?? {};
    assert.deepEqual([phase, reason], ["Failed", "OutOfcpu"]);
  });

  test("pods are judged by what they were allocated, not by a resize that had no room", async () => {
    const restart = new Restart();
    await restart.run(asking("400m", "uid-1"), asking("400m", "uid-2"));
    restart.scene.node.update(asking("700m", "uid-1"));
    await restart.scene.pass(20_000);
    await restart.again("machine", "900m");
    assert.deepEqual(restart.running("uid-1", "uid-2"), [true, true]);
  });

  test("a pod that had ended is not judged", async () => {
    const restart = new Restart();
    const job = asking("400m", "uid-1", ends("c", 1000, 0));
    await restart.run({ ...job, spec: { ...job.spec, restartPolicy: "Never" } }, asking("400m", "uid-2"));
    await restart.again("machine", "400m");
    assert.equal(restart.scene.status("uid-1")?.phase, "Succeeded");
    assert.deepEqual(restart.running("uid-2"), [true]);
  });
});

test("when only podwright has started again, pods that run go on, whatever the node has now", async () => {
  const restart = new Restart();
  await restart.run(asking("400m", "uid-1"), asking("400m", "uid-2"));
  await restart.again("podwright", "500m");
  assert.deepEqual(restart.running("uid-1", "uid-2"), [true, true]);
  assert.deepEqual(restart.scene.entries("OutOfcpu"), []);
});
