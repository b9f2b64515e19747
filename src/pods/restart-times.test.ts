import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testContainer, testSandbox, testStatus } from "../../test/support/observed.ts";
import type { Container } from "../api/container.ts";
import { containerId } from "../base/ids.ts";
import { nothingToDo } from "../runtime/actions/pod-actions.ts";
import type { ContainerStatus } from "../runtime/status/pod-status.ts";
import { SimClock } from "../sim/clock.ts";
import { RestartTimes } from "./restart-times.ts";

const wallMs = 1_700_000_000_000;
const web: Container = { name: "web", image: "web:1" };

/** A container that ends again and again, and is restarted as soon as it may. */
class Scene {
  readonly world = new SimClock(wallMs);
  readonly clock = this.world.incarnation();
  readonly times: RestartTimes;
  #instances = 0;

  constructor(maxMs = 300_000) {
    this.times = new RestartTimes(this.clock, maxMs);
  }

  async pass(ms: number): Promise<void> {
    await this.world.run(this.world.nowMs + ms);
  }

  /** An exit now, by the runtime's wall clock. */
  exit(): ContainerStatus {
    const finishedAt = BigInt(this.clock.now()) * 1_000_000n;
    const id = containerId(`web-${this.#instances++}`);
    const exited = testContainer({ id, name: "web", state: "exited", exitCode: 1, finishedAt });
    this.times.observe(testStatus([], [exited]));
    return exited;
  }

  /** The seconds from the exit to the next start, which is made then. */
  async restart(container = web, ranMs = 0): Promise<number> {
    await this.pass(ranMs);
    const exited = this.exit();
    const now = this.clock.monotonic();
    const waitMs = Math.max(0, (this.times.endsAt(container, exited) ?? 0) - now);
    await this.pass(waitMs);
    this.times.attempted(container, testStatus([], [exited]));
    return waitMs / 1000;
  }
}

describe("crash-loop back-off", () => {
  test("is zero for the first restart, then 10 s, doubled up to 300 s", async () => {
    const scene = new Scene();
    const waits: number[] = [];
    for (let count = 0; count < 8; count++) waits.push(await scene.restart());
    assert.deepEqual(waits, [0, 10, 20, 40, 80, 160, 300, 300]);
  });

  test("has the configured maximum, which may be shorter than the first wait", async () => {
    const scene = new Scene(15_000);
    const waits: number[] = [];
    for (let count = 0; count < 4; count++) waits.push(await scene.restart());
    assert.deepEqual(waits, [0, 10, 15, 15]);
    const short = new Scene(1000);
    await short.restart();
    assert.equal(await short.restart(), 1);
  });

  test("starts over after an exit more than 600 s after the last restart, whatever the maximum", async () => {
    for (const maxMs of [300_000, 1000]) {
      const scene = new Scene(maxMs);
      await scene.restart();
      assert.ok((await scene.restart(web, 600_000)) > 0);
      assert.equal(await scene.restart(web, 600_001), 0);
    }
  });

  test("counts from the container's exit, not from its observation", async () => {
    const scene = new Scene();
    await scene.restart();
    const exited = scene.exit();
    await scene.pass(4000);
    assert.equal(scene.times.endsAt(web, exited), scene.clock.monotonic() + 6000);
  });

  test("starts over after a change of image or resources, not of anything else", async () => {
    const scene = new Scene();
    await scene.restart();
    const exited = scene.exit();
    const changes: readonly [Partial<Container>, boolean][] = [
      [{ command: ["x"] }, true],
      [{ image: "web:2" }, false],
      [{ resources: { limits: { cpu: 1 } } }, false],
    ];
    for (const [change, waits] of changes) {
      assert.equal(scene.times.endsAt({ ...web, ...change }, exited) !== undefined, waits, JSON.stringify(change));
    }
  });

  test("does not depend on the order of its resources", async () => {
    const scene = new Scene();
    await scene.restart({ ...web, resources: { limits: { cpu: "1", memory: "1Gi" } } });
    const turned = { ...web, resources: { limits: { memory: "1Gi", cpu: "1" } } };
    assert.notEqual(scene.times.endsAt(turned, scene.exit()), undefined);
  });

  test("is not moved by a wall clock that jumps after the exit was seen", async () => {
    const scene = new Scene();
    await scene.restart();
    const exited = scene.exit();
    const before = scene.times.endsAt(web, exited);
    scene.world.jumpWall(3_600_000);
    assert.equal(scene.times.endsAt(web, exited), before);
  });

  test("is as old in the next run, however the wall clock was set in between", async () => {
    for (const jumpMs of [-3_600_000, 3_600_000]) {
      const scene = new Scene();
      await scene.restart();
      await scene.pass(100_000);
      scene.world.jumpWall(jumpMs);
      const ages = (): number[] => scene.times.delays().map(({ updatedAt }) => scene.clock.now() - updatedAt);
      assert.deepEqual(ages(), [100_000]);
      scene.world.jumpWall(jumpMs);
      await scene.restart({ ...web, image: "web:2" });
      assert.deepEqual(ages(), [100_000, 0], "what is noted after it is dated by the clock as it was set");
      const next = new RestartTimes(scene.clock, 300_000);
      next.remember(scene.times.delays());
      await scene.pass(500_001);
      assert.equal(next.endsAt(web, scene.exit()), undefined, "it ran for long enough");
    }
  });

  test("is not corrected for a wall clock that is only adjusted", async () => {
    const scene = new Scene();
    await scene.restart();
    const before = scene.times.delays();
    scene.world.jumpWall(999);
    assert.deepEqual(scene.times.delays(), before);
  });
});

test("planned restarts do not count, attempted ones count each time", async () => {
  const scene = new Scene();
  const exited = scene.exit();
  const status = testStatus([], [exited]);
  const cause = { code: "ContainerExited", message: "it has ended" } as const;
  const start = { container: web, kind: "regular", attempt: 1, restart: true, leftover: undefined, cause } as const;
  const actions = { ...nothingToDo, createSandbox: { attempt: 1, cause }, containersToStart: [start] };
  for (let plans = 0; plans < 4; plans++) scene.times.acting(actions);
  assert.deepEqual([scene.times.delayMs(web), scene.times.sandboxEndsAt()], [0, undefined]);
  for (const delayMs of [10_000, 20_000, 40_000]) {
    scene.times.attempted(web, status);
    assert.equal(scene.times.delayMs(web), delayMs);
  }
  assert.equal(scene.times.endsAt(web, exited), scene.clock.monotonic() + 40_000);
});

test("a first start, and the start of a container stopped for it, is not a restart after an exit", () => {
  const scene = new Scene();
  const running = testContainer({ id: containerId("web-0"), name: "web", state: "running" });
  for (const before of [[], [running]]) scene.times.attempted(web, testStatus([], before));
  assert.equal(scene.times.delayMs(web), 0);
});

test("an exit that restarts the pod is known until its instance is removed, also in the next run", () => {
  const scene = new Scene();
  const exited = scene.exit();
  const cause = { code: "RestartAllContainers", message: "its rule" } as const;
  assert.ok(!scene.times.startsOver(exited));
  const actions = { ...nothingToDo, restartAll: { container: web, source: exited, cause } };
  for (let tries = 0; tries < 3; tries++) scene.times.acting(actions);
  const next = new Scene();
  next.times.remember(scene.times.delays());
  for (const { times } of [scene, next]) {
    times.observe(testStatus([], [exited]));
    assert.ok(times.startsOver(exited));
    assert.equal(times.delayMs(web), 10_000);
    times.observe(testStatus([], []));
    assert.ok(!times.startsOver(exited));
  }
});

test("an instance stopped for a restart is known until its successor runs or it is removed, also in the next run", () => {
  const cause = { code: "LivenessProbeFailed", message: "liveness probe failed" } as const;
  const next = testContainer({ id: containerId("next"), name: "web" });
  const isKnownWith = (...newer: readonly ContainerStatus[]): boolean[] => {
    const scene = new Scene();
    const exited = scene.exit();
    scene.times.stopped(exited.id, cause);
    const later = new Scene();
    later.times.remember([], scene.times.stops());
    return [scene, later].map(({ times }) => {
      assert.deepEqual(times.restartCause(exited), cause);
      times.observe(testStatus([], newer.length === 0 ? [] : [...newer, exited]));
      assert.equal(times.stops().length, times.restarting.size);
      return times.restartCause(exited) !== undefined;
    });
  };
  assert.deepEqual(isKnownWith(), [false, false]);
  assert.deepEqual(isKnownWith(next), [false, false]);
  assert.deepEqual(isKnownWith({ ...next, state: "created" }), [true, true], "that one may be replaced");
});

test("a lost sandbox is recreated at once, the next ones after 10 s, 20 s …", async () => {
  const scene = new Scene();
  scene.times.sandboxMade(testStatus([], []));
  assert.equal(scene.times.sandboxEndsAt(), undefined, "the first one replaces none");
  for (const seconds of [10, 20, 40]) {
    scene.times.sandboxMade(testStatus([testSandbox({ ready: false })], []));
    assert.equal(scene.times.sandboxEndsAt(), scene.clock.monotonic() + seconds * 1000);
    await scene.pass(seconds * 1000);
  }
});
