import assert from "node:assert/strict";
import { test } from "node:test";
import { testContainer, testStatus } from "../../../test/support/observed.ts";
import { containerId } from "../../base/ids.ts";
import type { ContainerStatus } from "./pod-status.ts";
import { runningLogs } from "./running-logs.ts";

const directory = "/var/log/pods/default_pod_uid-1/c";

function pathsOf(...containers: readonly Partial<ContainerStatus>[]): string[] {
  const instances = containers.map((container, index) =>
    testContainer({ id: containerId(`c-${index}`), logPath: `${directory}/${index}.log`, ...container }),
  );
  return runningLogs(testStatus([], instances), "/var/log/pods").map(({ path }) => path);
}

test("running containers write logs; ended ones, and those never started, do not", () => {
  const states = ["exited", "running", "created", "unknown"] as const;
  assert.deepEqual(pathsOf(...states.map((state) => ({ state }))), [`${directory}/1.log`]);
});

test("a log outside of its pod's directory is not this node's", () => {
  for (const logPath of ["", "/etc/passwd", "/var/log/pods/other/c/0.log", `${directory}/../../../../etc/passwd`]) {
    assert.deepEqual(pathsOf({ logPath }), [], logPath);
  }
});
