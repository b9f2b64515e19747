import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "../ports/clock.ts";
import { SimClock } from "../sim/clock.ts";
import { testContainer, testPod, testSandbox, testStatus } from "../../test/support/observed.ts";
import { ActiveDeadline, ageMs } from "./active-deadline.ts";

const wallMs = 1_700_000_000_000;
const madeAgo = (seconds: number): bigint => BigInt(wallMs - seconds * 1000) * 1_000_000n;

test("the deadline counts from a new pod's first observation, and a changed limit changes it", () => {
  const deadline = new ActiveDeadline(new SimClock(wallMs).incarnation());
  const nothing = testStatus([]);
  assert.equal(deadline.endsAt(testPod(), nothing), undefined);
  assert.equal(deadline.endsAt(testPod({ activeDeadlineSeconds: 5 }), nothing), 5000);
  assert.equal(deadline.endsAt(testPod({ activeDeadlineSeconds: 7 }), nothing), 7000);
});

test("a pod from an earlier run is as old as its oldest sandbox or container in the runtime", () => {
  const clock = new SimClock(wallMs).incarnation();
  const status = testStatus(
    [testSandbox({ createdAt: madeAgo(20) }), testSandbox({ createdAt: madeAgo(60), ready: false })],
    [testContainer({ createdAt: madeAgo(19) }), testContainer({ createdAt: 0n })],
  );
  assert.equal(ageMs(status, wallMs), 60_000);
  const deadline = new ActiveDeadline(clock);
  assert.equal(deadline.endsAt(testPod({ activeDeadlineSeconds: 100 }), status), 40_000);
});

test("a pod keeps its age from an earlier run", async () => {
  const world = new SimClock(wallMs);
  const first = new ActiveDeadline(world.incarnation());
  assert.equal(first.startedAt, undefined);
  first.endsAt(testPod(), testStatus([]));
  assert.equal(first.startedAt, wallMs);
  await world.run(world.nowMs + 60_000);
  const clock = world.incarnation();
  const second = new ActiveDeadline(clock);
  second.remember(wallMs);
  const pod = testPod({ activeDeadlineSeconds: 100 });
  assert.equal(
    second.endsAt(pod, testStatus([])),
    clock.monotonic() + 40_000,
    "although the runtime has nothing of it",
  );
  assert.equal(second.startedAt, wallMs);
});

test("a pod that had ended at its first observation keeps its result, however long its deadline has passed", () => {
  const status = (exitCode: number) =>
    testStatus(
      [testSandbox({ createdAt: madeAgo(60) })],
      [testContainer({ state: "exited", exitCode, createdAt: madeAgo(60) })],
    );
  const limited = { activeDeadlineSeconds: 50, restartPolicy: "OnFailure" } as const;
  const clock = (): Clock => new SimClock(wallMs).incarnation();
  assert.equal(new ActiveDeadline(clock()).endsAt(testPod(limited), status(0)), undefined);
  assert.equal(new ActiveDeadline(clock()).endsAt(testPod(limited), status(1)), -10_000);
});

test("later sandboxes and containers, and clock jumps, do not move the deadline", async () => {
  const world = new SimClock(wallMs);
  const deadline = new ActiveDeadline(world.incarnation());
  const pod = testPod({ activeDeadlineSeconds: 100 });
  deadline.endsAt(pod, testStatus([]));
  world.jumpWall(3_600_000);
  assert.equal(deadline.endsAt(pod, testStatus([testSandbox({ createdAt: madeAgo(5) })])), 100_000);
  assert.equal(ageMs(testStatus([testSandbox({ createdAt: madeAgo(-60) })]), wallMs), 0);
});
