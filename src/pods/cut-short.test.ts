import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import { runtimeContainer, runtimeStatus } from "../../test/support/runtime-status.ts";
import type { PodSpec } from "../api/pod.ts";
import type { ContainerStatus } from "../runtime/status/pod-status.ts";
import { overdue } from "./active-deadline.ts";
import { endingNow } from "./cut-short.ts";
import { unwanted } from "./ending.ts";
import { preempted } from "./preemption.ts";

const cause = { code: "Resync", message: "a test" } as const;
const exited = { state: "exited" } as const;

function outcomeOf(
  restartPolicy: PodSpec["restartPolicy"],
  seen: Partial<ContainerStatus>,
  ...waiting: string[]
): string {
  const pod = podWith({ containers: [{ name: "c" }], ...(restartPolicy && { restartPolicy }) });
  const status = runtimeStatus(pod, [runtimeContainer("c", seen)]);
  const reasons = new Map(waiting.map((name) => [name, "CrashLoopBackOff"]));
  return endingNow(preempted(pod, 1, cause), pod, status, reasons).outcome;
}

test("a pod that is cut short while a container waits for its restart has failed, whatever the exit code", () => {
  assert.equal(outcomeOf("Always", exited, "c"), "failed");
  assert.equal(outcomeOf("Always", exited), "cutShort", "it is about to run");
  assert.equal(outcomeOf("OnFailure", exited, "c"), "cutShort", "it does not restart");
  assert.equal(outcomeOf("OnFailure", { ...exited, exitCode: 1 }, "c"), "failed");
  assert.equal(outcomeOf("Always", {}, "c"), "cutShort", "it runs");
  const pod = podWith({ containers: [{ name: "c" }] });
  const status = runtimeStatus(pod, [runtimeContainer("c", exited)]);
  for (const ending of [overdue(pod), unwanted(cause, 1)]) {
    assert.equal(endingNow(ending, pod, status, new Map([["c", ""]])), ending);
  }
});
