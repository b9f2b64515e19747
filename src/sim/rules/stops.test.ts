import assert from "node:assert/strict";
import { test } from "node:test";
import { podOf, runs, Scene } from "../../../test/support/sim-scene.ts";
import { hookCommand } from "../behaviour.ts";
import { healthPath } from "../health.ts";
import type { SimEntry } from "../life/node.ts";
import { Stops } from "./stops.ts";

/** The entries about a pod whose only container is stopped for its liveness probe, and the rule's findings. */
async function endOf(graceSeconds: number, hookMs: number): Promise<{ stop: SimEntry; problems: readonly string[] }> {
  const sickness = { afterMs: 10_000, untilMs: 3_600_000, cycleMs: 3_600_000, manner: "errs" } as const;
  const path = healthPath("uid-1", "c", "liveness", sickness);
  const probe = { httpGet: { port: 80, path }, periodSeconds: 1, failureThreshold: 1 };
  const livenessProbe = { ...probe, terminationGracePeriodSeconds: graceSeconds };
  const preStop = { exec: { command: hookCommand({ kind: "preStop", exitCode: 0, durationMs: hookMs }) } };
  const scene = new Scene();
  const problems = scene.judge((of, broken) => new Stops(of, broken));
  const containers = [runs("c", { livenessProbe, lifecycle: { preStop } })];
  scene.node.add(podOf({ restartPolicy: "Never", terminationGracePeriodSeconds: 19, containers }));
  await scene.pass(60_000);
  const [stop] = scene.entries("StopContainer");
  assert.ok(stop);
  return { stop, problems };
}

test("if a probe ends the container with its pod, the hook counts into the probe's grace period", async () => {
  for (const [graceSeconds, hookMs, restSeconds] of [
    [7, 4195, 3],
    [6, 27_975, 2],
    [18, 500, 18],
    [40, 500, 40],
  ] as const) {
    const { stop, problems } = await endOf(graceSeconds, hookMs);
    assert.equal(stop.cause?.code, "LastContainerUnhealthy");
    assert.equal(stop.data?.["graceSeconds"], restSeconds);
    assert.deepEqual(problems, []);
  }
});
