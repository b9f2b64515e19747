/** How pods restart and end, played step by step. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ends, podOf, runs, Scene } from "../../../test/support/sim-scene.ts";
import type { Container } from "../../api/container.ts";
import type { Probe, ProbeType } from "../../prober/probe-spec.ts";
import { hookCommand } from "../behaviour.ts";
import { healthPath } from "../health.ts";

const sidecar: Partial<Container> = { restartPolicy: "Always" };

/** The sequence of phases. */
function phases(scene: Scene): unknown[] {
  return scene.entries("PodPhaseChanged").map(({ data }) => data?.["to"]);
}

/** A probe that succeeds for this time, and then fails. */
function failingAfter(container: string, type: ProbeType, afterMs: number): Probe {
  const path = healthPath("uid-1", container, type, { afterMs, untilMs: 1e9, cycleMs: 1e9, manner: "errs" });
  return { httpGet: { port: 80, path }, periodSeconds: 1, failureThreshold: 1 };
}

const preStop = (durationMs: number): Container["lifecycle"] => {
  return { preStop: { exec: { command: hookCommand({ kind: "preStop", exitCode: 0, durationMs }) } } };
};

function killed(scene: Scene): string[] {
  return scene.entries("Killing").map(({ container = "" }) => container);
}

describe("a node that runs restartable init containers reboots", () => {
  async function rebooted(restart: boolean): Promise<Scene> {
    const scene = new Scene();
    scene.node.add(
      podOf({
        initContainers: [ends("init-1", 5000, 0), runs("restartable-init-2", sidecar), ends("init-3", 5000, 0)],
        containers: [runs("regular-1")],
      }),
    );
    await scene.pass(30_000);
    if (restart) scene.node.kill();
    for (const { id } of scene.world.sandboxes.values()) scene.world.stopSandbox(id);
    if (restart) scene.node.start();
    return scene;
  }

  for (const restart of [true, false]) {
    test(`makes its pod Pending until that is initialized again, ${restart ? "after a restart" : "in the same run"}`, async () => {
      const scene = await rebooted(restart);
      const seen: string[] = [];
      for (let tenths = 0; tenths < 600; tenths++) {
        await scene.pass(100);
        const {
          phase = "",
          initContainerStatuses: [first] = [],
          containerStatuses: [regular] = [],
        } = scene.status() ?? {};
        if ((first?.restartCount ?? 0) >= 1 && regular?.restartCount === 0) seen.push(phase);
      }
      assert.ok(seen.length > 50);
      assert.deepEqual(new Set(seen), new Set(["Pending"]), "as soon as the first one is said to have run again");
      assert.deepEqual(phases(scene).slice(-3), ["Running", "Pending", "Running"]);
    });
  }

  test("restarts its containers in the order of the spec", async () => {
    const scene = await rebooted(true);
    await scene.pass(60_000);
    const names = ["init-1", "restartable-init-2", "init-3", "regular-1"];
    const again = names.map((name) => scene.at(`started ${name}`)[1] ?? Number.NaN);
    assert.deepEqual(
      again,
      again.toSorted((a, b) => a - b),
    );
    const { initContainerStatuses = [], containerStatuses = [] } = scene.status() ?? {};
    const counts = [...initContainerStatuses, ...containerStatuses].map(({ restartCount }) => restartCount);
    assert.deepEqual(counts, [1, 1, 1, 1]);
  });
});

test("a pod without init containers stays Running when its sandbox is recreated", async () => {
  const scene = new Scene();
  scene.node.add(podOf({ containers: [runs("c")] }));
  await scene.pass(10_000);
  for (const { id } of scene.world.sandboxes.values()) scene.world.stopSandbox(id);
  await scene.pass(30_000);
  assert.equal(scene.at("started c").length, 2);
  assert.deepEqual(phases(scene), ["Pending", "Running"]);
});

describe("a container whose preStop hook takes 50 s", () => {
  const slow = (more: Partial<Container> = {}): Container => runs("app", { lifecycle: preStop(50_000), ...more });

  test("is reported as being killed before the hook starts, once, whatever ends it", async () => {
    const livenessProbe = failingAfter("app", "liveness", 10_000);
    for (const [what, container] of [
      ["deleted", slow()],
      ["unhealthy", slow({ livenessProbe })],
    ] as const) {
      const scene = new Scene();
      scene.node.add(podOf({ terminationGracePeriodSeconds: 60, containers: [container] }));
      await scene.pass(9000);
      if (what === "deleted") scene.node.remove("uid-1");
      await scene.pass(5000);
      assert.deepEqual(killed(scene), ["app"], what);
      const toldMs = scene.entries("Killing")[0]?.atMs ?? Number.NaN;
      const [hookMs = Number.NaN] = scene.at("hook app");
      assert.ok(toldMs <= hookMs, `${what}: told at ${toldMs}, hook at ${hookMs}`);
      assert.deepEqual(scene.at("stopping app"), []);
      await scene.pass(47_000);
      assert.equal(scene.at("stopping app").length, 1);
      assert.equal(killed(scene).length, 1);
    }
  });

  test("delays its sidecar's stop, which is reported at once", async () => {
    const scene = new Scene();
    scene.node.add(
      podOf({ terminationGracePeriodSeconds: 60, initContainers: [runs("side", sidecar)], containers: [slow()] }),
    );
    await scene.pass(9000);
    scene.node.remove("uid-1");
    await scene.pass(1000);
    assert.deepEqual(killed(scene).toSorted(), ["app", "side"]);
    assert.deepEqual(scene.at("stopping side"), []);
  });
});

describe("a pod whose last container is stopped for good, with a preStop hook of 50 s", () => {
  const dying = runs("app", { livenessProbe: failingAfter("app", "liveness", 10_000), lifecycle: preStop(50_000) });
  const sick = runs("side", { ...sidecar, livenessProbe: failingAfter("side", "liveness", 1000) });
  const probesOf = (scene: Scene, since: number): number =>
    scene.seen.filter(({ what, atMs }) => what === "probed side" && atMs > since).length;

  for (const restartPolicy of ["Never", "OnFailure", "Always"] as const) {
    const isOver = restartPolicy === "Never";
    test(`${isOver ? "neither probes nor restarts" : "probes and restarts"} its sidecars meanwhile under ${restartPolicy}`, async () => {
      const scene = new Scene();
      scene.node.add(
        podOf({ restartPolicy, terminationGracePeriodSeconds: 100, initContainers: [sick], containers: [dying] }),
      );
      await scene.pass(40_000);
      const [hookMs = Number.NaN] = scene.at("hook app");
      const [starts, probes] = [scene.at("started side").filter((ms) => ms > hookMs).length, probesOf(scene, hookMs)];
      if (isOver) assert.deepEqual([starts, probes], [0, 0]);
      else assert.ok(starts > 0 && probes > 0, `${starts} starts, ${probes} probes`);
      await scene.pass(40_000);
      assert.equal(scene.status()?.phase, isOver ? "Failed" : "Running");
      if (isOver) assert.equal(scene.at("started app").length, 1);
    });
  }

  test("keeps probing its readiness, as upstream", async () => {
    const scene = new Scene();
    const path = healthPath("uid-1", "side", "readiness", undefined);
    const readinessProbe = { httpGet: { port: 80, path }, periodSeconds: 1 };
    const side = runs("side", { ...sidecar, readinessProbe });
    scene.node.add(
      podOf({
        restartPolicy: "Never",
        terminationGracePeriodSeconds: 100,
        initContainers: [side],
        containers: [dying],
      }),
    );
    await scene.pass(40_000);
    const [hookMs = Number.NaN] = scene.at("hook app");
    assert.ok(probesOf(scene, hookMs) > 20);
  });

  test("ends with both containers, the second being stopped during the first one's stop", async () => {
    const scene = new Scene();
    const second = runs("second", { livenessProbe: failingAfter("second", "liveness", 20_000) });
    scene.node.add(
      podOf({
        restartPolicy: "Never",
        terminationGracePeriodSeconds: 100,
        initContainers: [runs("side", sidecar)],
        containers: [dying, second],
      }),
    );
    await scene.pass(15_000);
    assert.deepEqual(killed(scene), ["app"], "the other one runs on");
    assert.ok(scene.world.running("uid-1", "side"));
    await scene.pass(60_000);
    assert.equal(scene.at("hook app").length, 1);
    for (const name of ["app", "second", "side"]) assert.equal(scene.at(`started ${name}`).length, 1, name);
    assert.equal(scene.status()?.phase, "Failed");
  });

  test("gives it its probe's grace period, and the sidecar the pod's", async () => {
    const scene = new Scene();
    const livenessProbe = { ...failingAfter("app", "liveness", 10_000), terminationGracePeriodSeconds: 5 };
    scene.node.add(
      podOf({
        restartPolicy: "Never",
        terminationGracePeriodSeconds: 100,
        initContainers: [runs("side", { ...sidecar, lifecycle: preStop(20_000) })],
        containers: [runs("app", { livenessProbe, lifecycle: preStop(50_000) })],
      }),
    );
    await scene.pass(60_000);
    const [[hook = Number.NaN], [stop = Number.NaN], [side = Number.NaN]] = [
      scene.at("hook app"),
      scene.at("stopping app"),
      scene.at("stopping side"),
    ];
    assert.ok(stop - hook >= 4900 && stop - hook < 6000, `${stop - hook} ms`);
    assert.ok(side - hook >= 20_000, `${side - hook} ms`);
  });
});
