import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { testContainer } from "../../../test/support/observed.ts";
import { containerId, podUid } from "../../base/ids.ts";
import { RemoveContainerResponseSchema, StopContainerResponseSchema } from "../../ports/gen/runtime/v1/api_pb.js";
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

const cause = { code: "Resync", message: "a test" } as const;
const { signal } = new AbortController();

interface Removing {
  readonly removal: ContainerRemoval;
  readonly clock: ManualClock;
  /** The containers whose removal the runtime was asked for, and their stops. */
  readonly removed: string[];
}

function removing(files: MemoryFiles): Removing {
  const clock = new ManualClock();
  const removed: string[] = [];
  const { cri } = new SimConnection(new RuntimeWorld(new SimClock(0)), clock, new SimRandom(1), noFaults);
  const removeContainer: typeof cri.runtime.removeContainer = async ({ containerId: id = "" }) => {
    removed.push(id);
    return create(RemoveContainerResponseSchema);
  };
  const stopContainer: typeof cri.runtime.stopContainer = async ({ containerId: id = "", timeout }) => {
    removed.push(`stop ${id} within ${timeout} s`);
    return create(StopContainerResponseSchema);
  };
  const effects = {
    clock,
    files,
    cri: { ...cri, runtime: { ...cri.runtime, removeContainer, stopContainer } },
    journal,
  };
  const node = { podLogsRoot, containerLogsRoot: "/var/log/containers" };
  return { removal: new ContainerRemoval(effects, { preStops: new PreStopHooks(), node }), clock, removed };
}

/** Removes the first instance of container `app`. Returns the containers whose removal the runtime was asked for. */
async function remove(files: MemoryFiles, state: ContainerState = "exited"): Promise<string[]> {
  const { removal, removed } = removing(files);
  await removal.remove(pod, testContainer({ name: "app", state }), { cause }, signal);
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

test("a container in unknown state may run: it is stopped before it is removed", async () => {
  const { removal, removed } = removing(new MemoryFiles(new ManualClock()));
  await removal.removeDead(pod, testContainer({ id: containerId("a"), state: "unknown" }), cause, signal);
  assert.deepEqual(removed, ["stop a within 2 s", "a"]);
});

test("containers removed in any way are remembered until their layers are free", async () => {
  const { removal, clock } = removing(new MemoryFiles(new ManualClock()));
  const [a, b, c, d] = ["a", "b", "c", "d"].map((id) => {
    return testContainer({ id: containerId(id), name: id, state: "exited" });
  });
  assert.ok(a && b && c && d);
  const lately = (): string[] => removal.lately.map(({ id, uid }) => `${uid} ${id}`);
  await removal.remove(pod, a, { cause }, signal);
  await removal.removeDead(pod, b, cause, signal);
  await clock.advance(9_000);
  await removal.removeUnstarted(pod, c, cause, signal);
  await removal.removeStartedOver(pod, d, cause, signal);
  assert.deepEqual(lately(), ["uid-1 a", "uid-1 b", "uid-1 c", "uid-1 d"]);
  await clock.advance(1_000);
  assert.deepEqual(lately(), ["uid-1 c", "uid-1 d"]);
});
