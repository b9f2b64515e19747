import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { podOf, runs, Scene } from "../../test/support/sim-scene.ts";
import type { Container } from "../api/container.ts";
import { hookCommand } from "../sim/behaviour.ts";

function hooked(name: string, hook: { readonly exitCode: number; readonly durationMs: number }): Container {
  const postStart = { exec: { command: hookCommand({ kind: "postStart", ...hook }) } };
  return runs(name, { lifecycle: { postStart } });
}

/** The states and reasons that a container's status went through, with each the ms at which it came. */
function statesOf(scene: Scene, container: string): { readonly atMs: number; readonly message: string }[] {
  const own = scene.entries("ContainerStateChanged").filter((entry) => entry.container === container);
  return own.map(({ atMs, message }) => ({ atMs, message: message.replaceAll(/^container \w+ is |: the .*$/gu, "") }));
}

describe("while its postStart hook runs", () => {
  test("a container waits: it is neither running nor ready before the hook has ended", async () => {
    const scene = new Scene();
    scene.node.add(podOf({ containers: [hooked("c", { exitCode: 0, durationMs: 20_000 })] }));
    await scene.pass(15_000);
    const [started] = scene.at("started c");
    assert.ok(started !== undefined);
    const [before] = scene.status()?.containerStatuses ?? [];
    assert.deepEqual([before?.state.waiting?.reason, before?.ready], ["ContainerCreating", false]);
    assert.equal(scene.status()?.phase, "Pending");
    await scene.pass(20_000);
    const [, ready] = statesOf(scene, "c");
    assert.equal(ready?.message, "running and ready");
    assert.ok(ready.atMs >= started + 20_000, `running after ${ready.atMs - started} ms`);
  });

  test("no probe runs: it may depend on the hook's result", async () => {
    const scene = new Scene();
    const livenessProbe = { httpGet: { port: 80, path: "/" }, periodSeconds: 1, failureThreshold: 3 };
    scene.node.add(podOf({ containers: [{ ...hooked("c", { exitCode: 0, durationMs: 20_000 }), livenessProbe }] }));
    await scene.pass(15_000);
    assert.deepEqual(scene.entries("Unhealthy"), []);
    await scene.pass(20_000);
    assert.ok(scene.entries("Unhealthy").length > 0, "nothing answers it afterwards");
  });

  test("a container that dies meanwhile has ended, however long the hook continues", async () => {
    const scene = new Scene();
    scene.node.add(podOf({ containers: [runs("c", { lifecycle: { postStart: { sleep: { seconds: 60 } } } })] }));
    await scene.pass(5000);
    scene.world.exit(scene.container("c"), 3, "Error");
    await scene.pass(3000);
    assert.equal(scene.status()?.containerStatuses?.[0]?.state.terminated?.exitCode, 3);
  });
});

describe("a postStart hook that fails", () => {
  test("is why its container is stopped, in the words of upstream's Event", async () => {
    const scene = new Scene();
    scene.node.add(podOf({ containers: [hooked("c", { exitCode: 1, durationMs: 100 })] }));
    await scene.pass(5000);
    const [killing] = scene.entries("Killing");
    assert.equal(killing?.data?.["eventMessage"], "FailedPostStartHook");
  });

  test("delays the next start only by the container's crash-loop back-off: at once, then 10 s, 20 s, 40 s", async () => {
    const scene = new Scene();
    scene.node.add(podOf({ containers: [hooked("c", { exitCode: 1, durationMs: 100 })] }));
    await scene.pass(90_000);
    const [first = Number.NaN, ...later] = scene.at("started c");
    const ends = scene.at("exited c");
    const waits = later.map((atMs, index) => atMs - (ends[index] ?? Number.NaN));
    assert.ok(first < 3000);
    for (const [index, leastMs] of [0, 10_000, 20_000, 40_000].entries()) {
      const waitedMs = waits[index] ?? Number.NaN;
      assert.ok(waitedMs >= leastMs - 10 && waitedMs < leastMs + 500, `${waitedMs} ms instead of ${leastMs}`);
    }
  });

  test("is the reason until there is a back-off, which is the reason from then on", async () => {
    const scene = new Scene();
    scene.node.add(podOf({ containers: [hooked("c", { exitCode: 1, durationMs: 100 })] }));
    await scene.pass(90_000);
    const waiting = statesOf(scene, "c").flatMap(({ message }) => /^waiting: (\w+)$/u.exec(message)?.[1] ?? []);
    assert.deepEqual(
      waiting.filter((reason, index) => reason !== waiting[index - 1]),
      ["ContainerCreating", "PostStartHookError", "CrashLoopBackOff"],
    );
    assert.ok(statesOf(scene, "c").every(({ message }) => !message.includes("ready") || message.includes("not ready")));
  });
});
