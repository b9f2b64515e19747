import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { test } from "node:test";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import type { Pod } from "../api/pod.ts";
import { podUid } from "../base/ids.ts";
import { cause, needs, podOfVolumes, VolumesUnderTest } from "../../test/support/volumes.ts";
import { systemClock } from "../linux/processes/clock.ts";
import { memoryFiles, systemFiles } from "../linux/files/files.ts";
import { systemLoopDevices } from "../linux/files/loop-devices.ts";
import { systemMounts } from "../linux/files/mounts.ts";
import { needsRoot, testDirectory } from "../linux/processes/testing.ts";
import { systemVolumeFiles } from "../linux/files/volume-files.ts";
import { removePodDirectory } from "../runtime/layout/pod-directories.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { AtomicWriter, type Payload } from "./atomic-writer.ts";

const signal = new AbortController().signal;
const options = { skip: needsRoot() };
const hasHugePages = existsSync("/sys/kernel/mm/hugepages/hugepages-2048kB");
const hugeOptions = { skip: needsRoot() || (hasHugePages ? false : "the kernel has no huge pages of 2 MiB") };

/** Volumes on the machine itself, below a directory of the test; whatever happens, nothing stays mounted. */
async function withVolumes(work: (volumes: VolumesUnderTest) => Promise<void>): Promise<void> {
  using directory = testDirectory();
  const root = `${realpathSync(directory.path)}/kubelet`;
  const ports = {
    clock: systemClock,
    files: systemFiles,
    memoryFiles,
    mounts: systemMounts,
    volumeFiles: systemVolumeFiles,
    loopDevices: systemLoopDevices,
  };
  try {
    await work(new VolumesUnderTest(root, ports));
  } finally {
    const left = (await systemMounts.list()).filter(({ target }) => target.startsWith(`${root}/`));
    for (const { target } of left.toReversed()) await systemMounts.unmount(target, { lazy: true });
  }
}

async function mountsBelow(root: string): Promise<string[]> {
  return (await systemMounts.list()).map(({ target }) => target).filter((target) => target.startsWith(`${root}/`));
}

function payload(round: number): Payload {
  const data = new TextEncoder().encode(`${round}\n`.repeat(2000));
  return new Map(["a", "b", "c/d"].map((path) => [path, { data, mode: 0o644 }]));
}

test("a reader that opens ..data once never sees half of an update", async () => {
  using directory = testDirectory();
  const writer = new AtomicWriter({ files: systemFiles, clock: systemClock, random: fixedRandom() }, directory.path);
  await writer.write(payload(0), async () => {});
  const reader = new Worker(readLoop, { eval: true, workerData: directory.path });
  const problems: string[] = [];
  let reads = 0;
  reader.on("message", (message: { reads: number; problems: string[] }) => {
    reads = message.reads;
    problems.push(...message.problems);
  });
  await new Promise((done) => reader.once("online", done));
  for (let round = 1; round <= 60; round++) await writer.write(payload(round), async () => {});
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
  reader.postMessage("stop");
  await new Promise((done) => reader.once("exit", done));
  assert.deepEqual(problems, []);
  assert.ok(reads > 5, `the reader read meanwhile: ${reads} times`);
});

/** Opens the directory behind ..data, as a reader of consistent files does, and compares them. */
const readLoop = `
const { openSync, closeSync, readFileSync, constants } = require("node:fs");
const { parentPort, workerData: volume } = require("node:worker_threads");
const problems = [];
let reads = 0;
let going = true;
parentPort.once("message", () => (going = false));
const look = () => {
  const fd = openSync(volume + "/..data", constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    const texts = ["a", "b", "c/d"].map((name) => readFileSync("/proc/self/fd/" + fd + "/" + name, "utf8"));
    const lines = new Set(texts.join("").split("\\n").filter((line) => line !== ""));
    if (lines.size !== 1 || new Set(texts).size !== 1) problems.push([...lines].join());
    reads++;
  } catch (error) {
    // The files were removed after their replacement: the reader would reopen them.
    if (error.code !== "ENOENT") problems.push(String(error));
  } finally {
    closeSync(fd);
  }
  // The names that the pod sees are there at every moment.
  if (readFileSync(volume + "/..data/../a", "utf8") === "") problems.push("an empty file");
  if (going) setImmediate(look);
  else parentPort.postMessage({ reads, problems });
};
look();`;

function fixedRandom(): { uniform: () => number; bytes: (count: number) => Uint8Array } {
  let drawn = 0;
  return {
    uniform: () => 0,
    bytes: (count) => Uint8Array.from({ length: count }, (_, index) => (drawn++ >> index) & 255),
  };
}

test("a memory volume is a tmpfs with its size limit, and a secret is not on the disk", options, async () => {
  await withVolumes(async (volumes) => {
    volumes.objects.setSecret("s", { key: "hunter2" });
    const pod = podOfVolumes([
      { name: "m", emptyDir: { medium: "Memory", sizeLimit: "2Mi" } },
      { name: "s", secret: { secretName: "s", defaultMode: 0o400 } },
    ]);
    const mounted = await volumes.manager.mount(pod, needs, cause, signal);
    const memory = mounted.get("m")?.hostPath ?? "";
    const { bsize, blocks, type } = statfsSync(memory);
    assert.equal(bsize * blocks, 2 * 1024 * 1024);
    assert.equal(type, 0x01021994, "tmpfs");
    assert.equal(lstatSync(memory).mode & 0o7777, 0o1777);
    assert.throws(() => writeFileSync(`${memory}/big`, new Uint8Array(3 << 20)), { code: "ENOSPC" });
    const secret = mounted.get("s")?.hostPath ?? "";
    assert.equal(statfsSync(secret).type, 0x01021994);
    assert.equal(readFileSync(`${secret}/key`, "utf8"), "hunter2");
    assert.equal(lstatSync(realpathSync(`${secret}/key`)).mode & 0o777, 0o400);
    await volumes.manager.release(podRef(pod), { cause }, signal);
    assert.deepEqual(await mountsBelow(volumes.root), []);
    assert.deepEqual(readdirSync(`${volumes.root}/pods/u/volumes`), []);
  });
});

test("a volume on huge pages is a hugetlbfs of its size, also for the next run", hugeOptions, async () => {
  await withVolumes(async (volumes) => {
    const resources = { requests: { "hugepages-2Mi": "2Mi" } };
    const containers = [{ name: "app", resources, volumeMounts: [{ name: "h", mountPath: "/h" }] }];
    const spec = { containers, securityContext: { fsGroup: 2000 } };
    const huge = (medium: string): Pod => podOfVolumes([{ name: "h", emptyDir: { medium } }], spec);
    const pod = huge("HugePages-2Mi");
    const mounted = await volumes.manager.mount(pod, needs, cause, signal);
    const directory = mounted.get("h")?.hostPath ?? "";
    const { bsize, type } = statfsSync(directory);
    assert.deepEqual([bsize, type], [2 << 20, 0x958458f6], "hugetlbfs");
    const { gid, mode } = lstatSync(directory);
    assert.deepEqual([gid, mode & 0o7777], [2000, 0o2775]);
    await volumes.restart().mount(pod, needs, cause, signal);
    assert.equal((await mountsBelow(volumes.root)).length, 1);
    const larger = volumes.restart().mount(huge("HugePages-1Gi"), needs, cause, signal);
    await assert.rejects(larger, /pagesize '2Mi' and requested medium size '1Gi' differ$/u);
    await volumes.restart().release(podRef(pod), { cause }, signal);
    assert.deepEqual(await mountsBelow(volumes.root), []);
    assert.deepEqual(readdirSync(`${volumes.root}/pods/u/volumes`), []);
  });
});

test("fsGroup: a process of the group writes to emptyDirs and reads files of objects", options, async () => {
  await withVolumes(async (volumes) => {
    chmodSync(volumes.root.replace(/\/kubelet$/, ""), 0o755);
    volumes.objects.setSecret("s", { key: "hunter2" });
    const pod = podOfVolumes(
      [
        { name: "d", emptyDir: {} },
        { name: "m", emptyDir: { medium: "Memory" } },
        { name: "s", secret: { secretName: "s", defaultMode: 0o400 } },
      ],
      { securityContext: { fsGroup: 2000 } },
    );
    const mounted = await volumes.manager.mount(pod, needs, cause, signal);
    const stat = (name: string): string => {
      const { gid, mode } = lstatSync(mounted.get(name)?.hostPath ?? "");
      return `${gid} ${(mode & 0o7777).toString(8)}`;
    };
    assert.deepEqual([stat("d"), stat("m"), stat("s")], ["2000 2777", "2000 3777", "2000 3777"]);
    const key = lstatSync(realpathSync(`${mounted.get("s")?.hostPath}/key`));
    assert.deepEqual([key.gid, key.mode & 0o7777], [2000, 0o440]);
    await volumes.manager.release(podRef(pod), { cause }, signal);
  });
});

test(
  "a subPath replaced by a link to the node never shows the node, and no bind mount outlives its pod",
  options,
  async () => {
    await withVolumes(async (volumes) => {
      const pod = podOfVolumes([{ name: "v", emptyDir: {} }]);
      const mounted = await volumes.manager.mount(pod, needs, cause, signal);
      const volume = mounted.get("v")?.hostPath ?? "";
      const outside = `${volumes.root}/outside`;
      mkdirSync(`${outside}/sub`, { recursive: true });
      writeFileSync(`${outside}/sub/mark`, "the node's");
      mkdirSync(`${volume}/dir/sub`, { recursive: true });
      const container = { name: "app", volumeMounts: [{ name: "v", mountPath: "/m", subPath: "dir/sub" }] };
      symlinkSync(outside, `${volume}/link`);
      const exchange = promisify(execFile)("sh", ["-c", exchangeLoop], { cwd: volume });
      const target = `${volumes.root}/pods/u/volume-subpaths/v/app/0`;
      let shown = 0;
      for (let round = 0; round < 15; round++) {
        try {
          const [mount] = await volumes.manager.mountsFor(pod, container, [], mounted, signal);
          assert.equal(mount?.hostPath, target);
          assert.equal(existsSync(`${target}/mark`), false, "it must not be the node's");
          shown++;
        } catch (error) {
          if (error instanceof assert.AssertionError) throw error;
        }
      }
      exchange.child.kill("SIGKILL");
      await exchange.catch(() => {});
      assert.ok(shown > 0, "the pod's own directory was shown");
      await volumes.manager.release(podRef(pod), { cause }, signal);
      assert.deepEqual(await mountsBelow(volumes.root), []);
      assert.equal(readFileSync(`${outside}/sub/mark`, "utf8"), "the node's");
    });
  },
);

const exchangeLoop = `while :; do
  mv dir dir.away; mv -T link dir; mv -T dir link; mv -T dir.away dir
done 2>/dev/null`;

test("a bind mount keeps the opened file: a later link in the pod's volume changes nothing", options, async () => {
  await withVolumes(async (volumes) => {
    volumes.objects.setConfigMap("c", { key: "value" });
    const pod = podOfVolumes([
      { name: "v", emptyDir: {} },
      { name: "c", configMap: { name: "c" } },
    ]);
    const mounted = await volumes.manager.mount(pod, needs, cause, signal);
    const volume = mounted.get("v")?.hostPath ?? "";
    const volumeMounts = [
      { name: "v", mountPath: "/m", subPath: "part" },
      { name: "c", mountPath: "/etc/key", subPath: "key" },
    ];
    const mounts = await volumes.manager.mountsFor(pod, { name: "app", volumeMounts }, [], mounted, signal);
    renameSync(`${volume}/part`, `${volume}/moved`);
    symlinkSync("/etc", `${volume}/part`);
    writeFileSync(`${volume}/moved/mark`, "");
    assert.deepEqual(readdirSync(mounts[0]?.hostPath ?? ""), ["mark"]);
    assert.equal(readFileSync(mounts[1]?.hostPath ?? "", "utf8"), "value", "a file of a ConfigMap, through its links");
    const hostile = { name: "app", volumeMounts: [{ name: "v", mountPath: "/m", subPath: "part" }] };
    await assert.rejects(volumes.manager.mountsFor(pod, hostile, [], mounted, signal), /failed to prepare subPath/);
    await volumes.manager.release(podRef(pod), { cause }, signal);
    assert.ok(existsSync("/etc/passwd"));
    assert.deepEqual(await mountsBelow(volumes.root), []);
  });
});

test("a pod that mounted something in its volume loses the mount, not the mounted data", options, async () => {
  await withVolumes(async (volumes) => {
    const pod = podOfVolumes([{ name: "v", emptyDir: {} }]);
    const volume = (await volumes.manager.mount(pod, needs, cause, signal)).get("v")?.hostPath ?? "";
    const precious = `${volumes.root}/precious`;
    mkdirSync(precious);
    writeFileSync(`${precious}/file`, "kept");
    mkdirSync(`${volume}/inside`);
    execFileSync("mount", ["--bind", precious, `${volume}/inside`]);
    await volumes.restart().release(podRef(pod), { cause }, signal);
    assert.equal(readFileSync(`${precious}/file`, "utf8"), "kept");
    assert.equal(existsSync(volume), false);
    rmSync(precious, { recursive: true });
  });
});

test("another kubelet's driver mount in a pod stays mounted, with all its data", options, async () => {
  await withVolumes(async (volumes) => {
    const pod = podOfVolumes([{ name: "v", emptyDir: {} }]);
    await volumes.manager.mount(pod, needs, cause, signal);
    const precious = `${volumes.root}/precious`;
    const target = `${volumes.root}/pods/u/volumes/kubernetes.io~csi/pvc-1/mount`;
    mkdirSync(precious);
    writeFileSync(`${precious}/file`, "kept");
    mkdirSync(target, { recursive: true });
    execFileSync("mount", ["--bind", precious, target]);
    await volumes.restart().release(podRef(pod), { cause }, signal);
    await removePodDirectory(systemFiles, { rootDirectory: volumes.root }, podUid("u"));
    assert.deepEqual(await mountsBelow(volumes.root), [target]);
    assert.equal(readFileSync(`${target}/file`, "utf8"), "kept");
    assert.deepEqual(readdirSync(`${volumes.root}/pods/u/volumes`), ["kubernetes.io~csi"]);
    await systemMounts.unmount(target);
    await volumes.manager.release(podRef(pod), { cause }, signal);
    await removePodDirectory(systemFiles, { rootDirectory: volumes.root }, podUid("u"));
    assert.equal(existsSync(`${volumes.root}/pods/u`), false);
    assert.equal(readFileSync(`${precious}/file`, "utf8"), "kept");
  });
});

test("a token file belongs to the user of its pod's containers, and to its group", options, async () => {
  await withVolumes(async (volumes) => {
    const objects = { ...noObjects, serviceAccountToken: () => ({ token: "t" }) };
    const manager = volumes.restart({ objects });
    const source = { name: "account", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } };
    const owner = async (uid: string, securityContext: object): Promise<string> => {
      const { spec, metadata } = podOfVolumes([source], { securityContext });
      const mounted = await manager.mount({ spec, metadata: { ...metadata, uid: podUid(uid) } }, needs, cause, signal);
      const { mode, uid: user, gid } = statSync(`${mounted.get("account")?.hostPath}/token`);
      return `${(mode & 0o777).toString(8)} ${user}:${gid}`;
    };
    assert.equal(await owner("user", { runAsUser: 1000 }), "600 1000:0");
    assert.equal(await owner("both", { runAsUser: 1000, fsGroup: 2000 }), "640 1000:2000");
    assert.equal(await owner("group", { fsGroup: 2000 }), "640 0:2000");
    assert.equal(await owner("none", {}), "644 0:0");
  });
});

const noObjects = { configMap: () => undefined, secret: () => undefined };
