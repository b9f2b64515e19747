import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { testContainer, testPod } from "../../../test/support/observed.ts";
import { MemoryFiles } from "../../sim/files.ts";
import { withLostAttempts } from "./lost-attempts.ts";
import { StartAttempts } from "./start-attempts.ts";
import type { ContainerToStart } from "../actions/container-decision.ts";

const start: ContainerToStart = {
  container: { name: "c", image: "busybox" },
  kind: "regular",
  attempt: 0,
  restart: false,
  leftover: undefined,
  cause: { code: "ContainerMissing", message: "container c has not been started yet" },
};

async function attemptAfter(
  logs: readonly string[],
  change: Partial<ContainerToStart> = {},
  attempts = new StartAttempts(),
): Promise<number> {
  const files = new MemoryFiles(new ManualClock());
  await files.makeDirectory("/var/log/pods/default_pod_uid-1/c", 0o755);
  for (const name of logs) await files.write(`/var/log/pods/default_pod_uid-1/c/${name}`, "", 0o640);
  const node = { podLogsRoot: "/var/log/pods" };
  return (await withLostAttempts({ files, node, attempts }, testPod(), { ...start, ...change })).attempt;
}

test("a container that the runtime has forgotten continues its count from its highest log", async () => {
  assert.equal(await attemptAfter([]), 0);
  assert.equal(await attemptAfter(["0.log"]), 1);
  assert.equal(await attemptAfter(["9.log", "10.log", "2.log", "note.txt"]), 11);
  assert.equal(await attemptAfter(["4.log.20261120-140203.gz"]), 5, "also where only a rotated log is left");
});

test("the runtime's containers take precedence over logs", async () => {
  assert.equal(await attemptAfter(["7.log"], { attempt: 2 }), 2);
  assert.equal(await attemptAfter(["7.log"], { leftover: testContainer({ state: "created" }) }), 0);
});

test("an instance that was created but never started is recreated with the same count, whatever its log", async () => {
  const { uid } = testPod().metadata;
  const attempts = new StartAttempts();
  attempts.making(uid, "c", 0);
  assert.equal(await attemptAfter(["0.log"], {}, attempts), 0);
  attempts.making(uid, "c", 3);
  assert.equal(await attemptAfter(["2.log", "3.log"], {}, attempts), 3);
  assert.equal(await attemptAfter(["7.log"], { attempt: 2 }, attempts), 2, "what the runtime shows counts");
  attempts.started(uid, "c");
  assert.equal(await attemptAfter(["2.log", "3.log"], {}, attempts), 4);
  attempts.making(uid, "c", 9);
  attempts.forget(uid);
  assert.equal(await attemptAfter([], {}, attempts), 0);
});
