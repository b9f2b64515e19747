import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { testContainer } from "../../../test/support/observed.ts";
import { podUid } from "../../base/ids.ts";
import { RemoveContainerResponseSchema } from "../../ports/gen/runtime/v1/api_pb.js";
import { SimClock } from "../../sim/clock.ts";
import { SimConnection } from "../../sim/cri.ts";
import { noFaults } from "../../sim/cri-faults.ts";
import { MemoryFiles } from "../../sim/files.ts";
import { SimRandom } from "../../sim/random.ts";
import { RuntimeWorld } from "../../sim/runtime-world.ts";
import type { ContainerState } from "../status/pod-status.ts";
import { ContainerRemoval } from "./container-removal.ts";
import { PreStopHooks } from "./pre-stop-hooks.ts";

const journal = { record: () => 1 };
const podLogsRoot = "/var/log/pods";
const pod = { namespace: "default", name: "pod", uid: podUid("uid-1") };
const podLogs = `${podLogsRoot}/default_pod_uid-1`;

/** Removes the first instance of container `app`. Returns the containers whose removal the runtime was asked for. */
async function remove(files: MemoryFiles, state: ContainerState = "exited"): Promise<string[]> {
  const clock = new ManualClock();
  const removed: string[] = [];
  const { cri } = new SimConnection(new RuntimeWorld(new SimClock(0)), clock, new SimRandom(1), noFaults);
  const removeContainer: typeof cri.runtime.removeContainer = async ({ containerId = "" }) => {
    removed.push(containerId);
    return create(RemoveContainerResponseSchema);
  };
  const effects = { clock, files, cri: { ...cri, runtime: { ...cri.runtime, removeContainer } }, journal };
  const node = { podLogsRoot, containerLogsRoot: "/var/log/containers" };
  const removal = new ContainerRemoval(effects, { preStops: new PreStopHooks(), node });
  const container = testContainer({ name: "app", state });
  const cause = { code: "Resync", message: "a test" } as const;
  await removal.remove(pod, container, { cause }, new AbortController().signal);
  return removed;
}

async function directoryOfLogs(files: MemoryFiles, path: string): Promise<void> {
  await files.makeDirectory(path, 0o755);
  for (const name of ["0.log", "0.log.20260101-000000.gz", "1.log"]) await files.write(`${path}/${name}`, "x", 0o640);
}

async function names(files: MemoryFiles, path: string): Promise<string[]> {
  return (await files.list(path)).map(({ name }) => name).toSorted();
}

test("a container is removed with its own logs, including rotated ones, but not its other instances'", async () => {
  const files = new MemoryFiles(new ManualClock());
  await directoryOfLogs(files, `${podLogs}/app`);
  assert.equal((await remove(files)).length, 1);
  assert.deepEqual(await names(files, `${podLogs}/app`), ["1.log"]);
});

test("nothing is removed through a link in the place of the container's logs", async () => {
  const files = new MemoryFiles(new ManualClock());
  await directoryOfLogs(files, "/elsewhere/app");
  await files.makeDirectory(podLogs, 0o755);
  await files.symlink("/elsewhere/app", `${podLogs}/app`);
  assert.equal((await remove(files)).length, 1);
  assert.equal((await names(files, "/elsewhere/app")).length, 3);
});

test("nothing is removed through a link in the place of all the pod's logs", async () => {
  const files = new MemoryFiles(new ManualClock());
  await directoryOfLogs(files, "/elsewhere/app");
  await files.makeDirectory(podLogsRoot, 0o755);
  await files.symlink("/elsewhere", podLogs);
  assert.equal((await remove(files)).length, 1);
  assert.equal((await names(files, "/elsewhere/app")).length, 3);
});

test("a running container is not removed: it would end without its hook and grace period", async () => {
  const files = new MemoryFiles(new ManualClock());
  await assert.rejects(remove(files, "running"), /a container is removed after it has stopped/);
});
