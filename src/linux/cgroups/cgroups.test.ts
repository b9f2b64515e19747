import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { PodwrightError } from "../../base/errors.ts";
import type { Cgroups } from "../../ports/cgroups.ts";
import { FileError } from "../../ports/files.ts";
import { CgroupsV1 } from "./cgroups-v1.ts";
import { CgroupsV2 } from "./cgroups-v2.ts";
import { cgroupsOf, openCgroups } from "./cgroups.ts";
import { systemClock } from "../processes/clock.ts";
import { parseMountInfo } from "../files/mountinfo.ts";
import { needsRoot, testDirectory } from "../processes/testing.ts";

const cgroupRoot = "/sys/fs/cgroup";

function skipUnless(condition: boolean, reason: string): string | false {
  return needsRoot() || (condition ? false : reason);
}

const needsV1 = skipUnless(existsSync(`${cgroupRoot}/memory/memory.limit_in_bytes`), "needs cgroup v1");
const needsUnified = skipUnless(existsSync(`${cgroupRoot}/unified/cgroup.procs`), "needs a hybrid system's v2 tree");

/** A logical path of this test, whose cgroups and processes are removed with it. */
function testCgroup(
  cgroups: Cgroups,
): { readonly path: string; join(child: ChildProcess, file: string): void } & AsyncDisposable {
  const path = `/podwright-test-${randomBytes(6).toString("hex")}`;
  const children: ChildProcess[] = [];
  return {
    path,
    join(child, file) {
      children.push(child);
      writeFileSync(file, `${child.pid}`);
    },
    async [Symbol.asyncDispose]() {
      for (const child of children) child.kill("SIGKILL");
      await cgroups.remove(path);
    },
  };
}

function sleeper(): ChildProcess {
  return spawn("sleep", ["60"], { stdio: "ignore" });
}

test("the mount at /sys/fs/cgroup determines the version", () => {
  const v2 = parseMountInfo("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate");
  assert.equal(cgroupsOf(systemClock, v2).version, 2);

  const hybrid = [
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw",
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct",
    "33 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
  ].join("\n");
  assert.equal(cgroupsOf(systemClock, parseMountInfo(hybrid)).version, 1);

  const none = parseMountInfo("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw");
  assert.throws(() => cgroupsOf(systemClock, none), PodwrightError);
});

test("paths that could lead elsewhere, and the root, are rejected", async () => {
  const cgroups = new CgroupsV2(systemClock, "/nonexistent");
  for (const path of ["/", "", "relative", "/a/../b", "/a//b", "/a/", "/./a", "/a\0"]) {
    await assert.rejects(cgroups.remove(path), RangeError, JSON.stringify(path));
    await assert.rejects(cgroups.removeEmpty(path), RangeError, JSON.stringify(path));
    await assert.rejects(cgroups.apply(path, {}), RangeError);
    if (path !== "/") await assert.rejects(cgroups.pids(path), RangeError);
  }
  assert.deepEqual(await cgroups.children("/"), []);
});

test(
  "on v1 a cgroup and its parents are created in every hierarchy with the given values",
  { skip: needsV1 },
  async () => {
    const cgroups = await openCgroups(systemClock);
    await using own = testCgroup(cgroups);
    const pod = `${own.path}/burstable/pod1`;
    const value = (controller: string, file: string, path = pod): string =>
      readFileSync(`${cgroupRoot}/${controller}${path}/${file}`, "utf8").trim();
    assert.equal(await cgroups.exists(pod), false);
    await cgroups.apply(pod, {
      cpuShares: 512,
      cpuQuotaMicroseconds: 50_000,
      cpuPeriodMicroseconds: 100_000,
      memoryLimitBytes: 64 * 1024 * 1024,
      pidsLimit: 100,
    });
    assert.equal(await cgroups.exists(pod), true);
    assert.equal(value("cpu", "cpu.shares"), "512");
    assert.equal(value("cpu", "cpu.cfs_quota_us"), "50000");
    assert.equal(value("cpu", "cpu.cfs_period_us"), "100000");
    assert.equal(value("memory", "memory.limit_in_bytes"), "67108864");
    assert.equal(value("pids", "pids.max"), "100");
    for (const controller of ["cpuacct", "devices", "freezer", "blkio", "systemd"]) {
      assert.ok(existsSync(`${cgroupRoot}/${controller}${pod}`), controller);
    }
    assert.ok(!existsSync(`${cgroupRoot}/unified${pod}`));
    for (const file of ["cpuset.cpus", "cpuset.mems"]) {
      assert.equal(value("cpuset", file), readFileSync(`${cgroupRoot}/cpuset/${file}`, "utf8").trim());
    }

    await cgroups.apply(pod, { cpuQuotaMicroseconds: -1, memoryLimitBytes: -1, pidsLimit: -1 });
    assert.equal(value("cpu", "cpu.shares"), "512");
    assert.equal(value("cpu", "cpu.cfs_quota_us"), "-1");
    assert.ok(Number(value("memory", "memory.limit_in_bytes")) > 2 ** 60);
    assert.equal(value("pids", "pids.max"), "max");
    assert.deepEqual(await cgroups.children(own.path), ["burstable"]);
  },
);

test("on v1 applied values are read back, and a missing limit as none", { skip: needsV1 }, async () => {
  const cgroups = await openCgroups(systemClock);
  await using own = testCgroup(cgroups);
  const resources = {
    cpuShares: 512,
    cpuQuotaMicroseconds: 50_000,
    cpuPeriodMicroseconds: 100_000,
    memoryLimitBytes: 64 * 1024 * 1024,
  };
  await cgroups.apply(own.path, { ...resources, hugePageLimitBytes: { "2MB": 0 } });
  assert.deepEqual(await cgroups.read(own.path), { resources, memoryUsageBytes: 0 });
  await cgroups.apply(own.path, { cpuQuotaMicroseconds: -1, memoryLimitBytes: -1 });
  const { cpuQuotaMicroseconds, memoryLimitBytes } = (await cgroups.read(own.path)).resources;
  assert.deepEqual([cpuQuotaMicroseconds, memoryLimitBytes], [-1, -1]);
  await assert.rejects(cgroups.read(`${own.path}/missing`));
});

test("on v1 huge pages in use are limited, and reserved ones where the kernel can", async () => {
  using directory = testDirectory();
  const cgroups = new CgroupsV1(systemClock, [{ directory: directory.path, controllers: ["hugetlb"] }]);
  const files = ["hugetlb.2MB.limit_in_bytes", "hugetlb.2MB.rsvd.limit_in_bytes", "hugetlb.1GB.limit_in_bytes"];
  mkdirSync(directory.join("pod"));
  for (const file of files) writeFileSync(directory.join("pod", file), "unlimited\n");
  await cgroups.apply("/pod", { hugePageLimitBytes: { "2MB": 4096, "1GB": 0 } });
  assert.deepEqual(readdirSync(directory.join("pod")).toSorted(), files.toSorted());
  assert.deepEqual(
    files.map((file) => readFileSync(directory.join("pod", file), "utf8")),
    ["4096", "4096", "0"],
  );
});

test("on v1 a missing hierarchy is named by its directory", { skip: needsV1 }, async () => {
  const cgroups = await openCgroups(systemClock);
  await using own = testCgroup(cgroups);
  await cgroups.apply(own.path, {});
  assert.deepEqual(await cgroups.missing(own.path), []);
  rmdirSync(`${cgroupRoot}/cpuset${own.path}`);
  rmdirSync(`${cgroupRoot}/blkio${own.path}`);
  assert.deepEqual(await cgroups.missing(own.path), [`${cgroupRoot}/cpuset${own.path}`], "blkio limits no pods");
});

test(
  "on v1 a process is moved in every hierarchy, into a cgroup that is created for it, also after another has exited",
  { skip: needsV1 },
  async () => {
    const cgroups = await openCgroups(systemClock);
    await using own = testCgroup(cgroups);
    const child = sleeper();
    await cgroups.apply(own.path, {});
    own.join(child, `${cgroupRoot}/pids${own.path}/cgroup.procs`);
    const gone = 2 ** 22 + 1;
    const failures = await cgroups.move([gone, child.pid ?? 0], `${own.path}/system`);
    assert.deepEqual([...failures.keys()], [gone]);
    assert.match(String(failures.get(gone)), /ESRCH/u);
    const places = readFileSync(`/proc/${child.pid}/cgroup`, "utf8")
      .split("\n")
      .filter((line) => /^[1-9]/u.test(line));
    assert.ok(
      places.every((line) => line.endsWith(`:${own.path}/system`)),
      places.join(" "),
    );
    assert.deepEqual(await cgroups.ownPids(`${own.path}/system`), [child.pid]);
    assert.deepEqual(await cgroups.ownPids(own.path), []);
  },
);

test("on v1 a limit below the usage does not prevent other values from being set", { skip: needsV1 }, async () => {
  const cgroups = await openCgroups(systemClock);
  await using own = testCgroup(cgroups);
  await cgroups.apply(own.path, {});
  const hungry = spawn("sh", ["-c", 'read go; x=$(head -c 40000000 /dev/zero | tr "\\0" x); echo; read end'], {
    stdio: ["pipe", "pipe", "ignore"],
  });
  own.join(hungry, `${cgroupRoot}/memory${own.path}/cgroup.procs`);
  hungry.stdin.write("\n");
  await once(hungry.stdout, "data");
  await assert.rejects(cgroups.apply(own.path, { memoryLimitBytes: 4096, pidsLimit: 7 }), /EBUSY/);
  assert.equal(readFileSync(`${cgroupRoot}/pids${own.path}/pids.max`, "utf8").trim(), "7");
});

test("on v1 a period that fits only the new quota is set", { skip: needsV1 }, async () => {
  const cgroups = await openCgroups(systemClock);
  await using own = testCgroup(cgroups);
  await cgroups.apply(own.path, { cpuQuotaMicroseconds: 50_000, cpuPeriodMicroseconds: 100_000 });
  await cgroups.apply(`${own.path}/pod`, { cpuQuotaMicroseconds: 50_000, cpuPeriodMicroseconds: 100_000 });
  await cgroups.apply(`${own.path}/pod`, { cpuQuotaMicroseconds: 5_000, cpuPeriodMicroseconds: 10_000 });
  assert.equal(readFileSync(`${cgroupRoot}/cpu${own.path}/pod/cpu.cfs_period_us`, "utf8").trim(), "10000");
});

test("on v1 concurrent pods under a new parent all get CPUs and memory nodes", { skip: needsV1 }, async () => {
  const cgroups = await openCgroups(systemClock);
  await using own = testCgroup(cgroups);
  const pods = Array.from({ length: 8 }, (_, index) => `${own.path}/besteffort/pod${index}`);
  await Promise.all(pods.map((pod) => cgroups.apply(pod, { cpuShares: 2 })));
  for (const pod of pods) {
    assert.notEqual(readFileSync(`${cgroupRoot}/cpuset${pod}/cpuset.cpus`, "utf8").trim(), "");
    assert.notEqual(readFileSync(`${cgroupRoot}/cpuset${pod}/cpuset.mems`, "utf8").trim(), "");
  }
  assert.equal((await cgroups.children(`${own.path}/besteffort`)).length, 8);
});

test("on v1 processes anywhere below are found, and delay removal until they are dead", { skip: needsV1 }, async () => {
  const cgroups = await openCgroups(systemClock);
  await using own = testCgroup(cgroups);
  await cgroups.apply(`${own.path}/pod/container`, {});
  const inPids = sleeper();
  const inCpuset = sleeper();
  own.join(inPids, `${cgroupRoot}/pids${own.path}/pod/container/cgroup.procs`);
  own.join(inCpuset, `${cgroupRoot}/cpuset${own.path}/pod/cgroup.procs`);
  assert.deepEqual(new Set(await cgroups.pids(own.path)), new Set([inPids.pid, inCpuset.pid]));

  await assert.rejects(cgroups.remove(own.path), (error) => error instanceof FileError && error.code === "EBUSY");
  inPids.kill("SIGKILL");
  inCpuset.kill("SIGKILL");
  await cgroups.remove(own.path);
  assert.equal(await cgroups.exists(own.path), false);
  assert.deepEqual(await cgroups.pids(own.path), []);
  assert.deepEqual(await cgroups.children(own.path), []);
  await cgroups.remove(own.path);
});

test(
  "on v1 an empty cgroup is removed at once, in every hierarchy that has it, and nothing else",
  { skip: needsV1 },
  async () => {
    const cgroups = await openCgroups(systemClock);
    await using own = testCgroup(cgroups);
    await cgroups.apply(`${own.path}/child`, {});
    rmdirSync(`${cgroupRoot}/memory${own.path}/child`);
    assert.equal(await cgroups.removeEmpty(own.path), "refused", "it has a child");
    assert.equal(existsSync(`${cgroupRoot}/cpu${own.path}`), true);
    assert.equal(await cgroups.removeEmpty(`${own.path}/child`), "removed");
    assert.equal(existsSync(`${cgroupRoot}/cpu${own.path}/child`), false);
    assert.equal(await cgroups.removeEmpty(`${own.path}/child`), "absent", "it is gone already");
    const child = sleeper();
    await cgroups.apply(own.path, {});
    own.join(child, `${cgroupRoot}/memory${own.path}/cgroup.procs`);
    assert.equal(await cgroups.removeEmpty(own.path), "refused", "a process is in it");
  },
);

test(
  "on a hybrid system a runtime's cgroups in the v2 tree are found and removed",
  { skip: needsUnified },
  async () => {
    const cgroups = await openCgroups(systemClock);
    await using own = testCgroup(cgroups);
    const left = `${cgroupRoot}/unified${own.path}`;
    mkdirSync(`${left}/pod`, { recursive: true });
    try {
      assert.deepEqual(await cgroups.children(own.path), ["pod"]);
      await cgroups.remove(own.path);
      assert.ok(!existsSync(left));
    } finally {
      if (existsSync(`${left}/pod`)) rmdirSync(`${left}/pod`);
    }
  },
);

test("a real v2 tree is created, listed, and removed after its processes", { skip: needsUnified }, async () => {
  const root = `${cgroupRoot}/unified`;
  const cgroups = new CgroupsV2(systemClock, root);
  await using own = testCgroup(cgroups);
  await cgroups.apply(`${own.path}/burstable/pod1`, {});
  assert.equal(await cgroups.exists(`${own.path}/burstable/pod1`), true);
  assert.deepEqual(await cgroups.children(own.path), ["burstable"]);

  const process = sleeper();
  own.join(process, `${root}${own.path}/burstable/pod1/cgroup.procs`);
  assert.deepEqual(await cgroups.pids(own.path), [process.pid]);
  await assert.rejects(cgroups.remove(own.path), new RegExp(`EBUSY.*processes in it: ${process.pid}\\)`));
  const exited = once(process, "exit");
  process.kill("SIGKILL");
  const removal = cgroups.remove(own.path);
  await exited;
  await removal;
  assert.equal(await cgroups.exists(own.path), false);
});

test("a value of a disabled controller is an error that names the controller", { skip: needsUnified }, async () => {
  const cgroups = new CgroupsV2(systemClock, `${cgroupRoot}/unified`);
  await using own = testCgroup(cgroups);
  await assert.rejects(cgroups.apply(own.path, { memoryLimitBytes: 1 }), /is the memory controller enabled there/);
});
