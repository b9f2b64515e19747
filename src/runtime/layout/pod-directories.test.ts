import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { testPod } from "../../../test/support/observed.ts";
import { podUid } from "../../base/ids.ts";
import { FileError } from "../../ports/files.ts";
import { MemoryFiles } from "../../sim/files.ts";
import {
  makeContainerDirectories,
  makePodDirectories,
  makeTerminationLog,
  removePodDirectory,
  removePodLogs,
} from "./pod-directories.ts";

const node = { rootDirectory: "/var/lib/kubelet", podLogsRoot: "/var/log/pods" };
const container = { name: "c", terminationMessagePath: "/dev/termination-log" };

async function scene(): Promise<MemoryFiles> {
  const files = new MemoryFiles(new ManualClock());
  await makePodDirectories(files, node, testPod());
  await makeContainerDirectories(files, node, testPod(), container);
  return files;
}

test("a pod's directories have upstream's places and modes", async () => {
  const files = await scene();
  const modes = {
    "/var/lib/kubelet/pods/uid-1": 0o750,
    "/var/lib/kubelet/pods/uid-1/volumes": 0o750,
    "/var/lib/kubelet/pods/uid-1/plugins": 0o750,
    "/var/lib/kubelet/pods/uid-1/containers/c": 0o750,
    "/var/log/pods/default_pod_uid-1": 0o755,
    "/var/log/pods/default_pod_uid-1/c": 0o755,
  };
  for (const [path, mode] of Object.entries(modes)) assert.equal((await files.stat(path))?.mode, mode, path);
});

test("a pod's own directory is created first, because later runs find the pod by it", async () => {
  const files = new MemoryFiles(new ManualClock());
  const made: string[] = [];
  files.makeDirectory = async (path) => {
    made.push(`begin ${path}`);
    await Promise.resolve();
    made.push(`end ${path}`);
  };
  await makePodDirectories(files, node, testPod());
  assert.deepEqual(made.slice(0, 2), ["begin /var/lib/kubelet/pods/uid-1", "end /var/lib/kubelet/pods/uid-1"]);
  assert.ok(made.includes("end /var/log/pods/default_pod_uid-1"));
});

test("each instance has its own message file, named by 8 hex digits and writable by everyone", async () => {
  const files = await scene();
  let draw = 0;
  const random = { uniform: () => 0, bytes: (count: number) => new Uint8Array(count).fill(0xa0 + draw++) };
  const paths = [1, 2].map(() => makeTerminationLog(files, random, node, testPod(), container));
  assert.deepEqual(await Promise.all(paths), [
    "/var/lib/kubelet/pods/uid-1/containers/c/a0a0a0a0",
    "/var/lib/kubelet/pods/uid-1/containers/c/a1a1a1a1",
  ]);
  const info = await files.stat("/var/lib/kubelet/pods/uid-1/containers/c/a0a0a0a0");
  assert.deepEqual([info?.type, info?.mode, info?.size], ["file", 0o666, 0]);
  assert.equal(await makeTerminationLog(files, random, node, testPod(), { name: "c" }), undefined);
});

test("a pod is removed even if its log directory's name is too long to exist", async () => {
  const files = await scene();
  const removed: string[] = [];
  files.removeTree = async (path) => void removed.push(path);
  const all = { ...node, containerLogsRoot: "/var/log/containers" };
  await removePodLogs(files, all, { uid: podUid("uid-1"), namespace: "default", name: "a".repeat(242) });
  assert.deepEqual(removed, []);
  await removePodLogs(files, all, { uid: podUid("uid-1"), namespace: "default", name: "a".repeat(241) });
  assert.deepEqual(removed, [`/var/log/pods/default_${"a".repeat(241)}_uid-1`]);
});

test("a pod's directory is removed with its content, unless it has leftover volumes or mounts", async () => {
  const files = await scene();
  const directory = "/var/lib/kubelet/pods/uid-1";
  await files.write(`${directory}/etc-hosts`, "", 0o644);
  for (const place of ["volumes/kubernetes.io~csi", "volumeDevices/kubernetes.io~csi"]) {
    await files.makeDirectory(`${directory}/${place}`, 0o750);
    await removePodDirectory(files, node, podUid("uid-1"));
    assert.ok(await files.stat(`${directory}/etc-hosts`), `with ${place} nothing is removed`);
    await files.remove(`${directory}/${place}`);
  }
  const removeTree = files.removeTree.bind(files);
  files.removeTree = () => Promise.reject(new FileError("EBUSY", directory, "something is mounted"));
  await removePodDirectory(files, node, podUid("uid-1"));
  files.removeTree = removeTree;
  assert.ok(await files.stat(`${directory}/etc-hosts`));
  await removePodDirectory(files, node, podUid("uid-1"));
  assert.equal(await files.stat(directory), undefined);
});

test("the directory of a returning pod is recreated, so that its logs are found if it does not return", async () => {
  const files = await scene();
  await removePodDirectory(files, node, podUid("uid-1"), true);
  assert.deepEqual(await files.list("/var/lib/kubelet/pods/uid-1"), []);
});
