import assert from "node:assert/strict";
import { test } from "node:test";
import { PodwrightError } from "../../base/errors.ts";
import { systemHashing } from "../../linux/files/hashing.ts";
import type { MountPoint } from "../../ports/mounts.ts";
import type { CommandResult } from "../../ports/processes.ts";
import { runtimeLayout } from "../layout.ts";
import { FakeFiles, FakeMounts, FakeProcesses } from "../testing.ts";
import type { Check, CheckContext } from "./check.ts";
import { preflight, preflightBesideRuntime, requireReady } from "./preflight.ts";

const allCapabilities = "000001ffffffffff";
const withoutSysResource = "000001fffeffffff";

interface Machine {
  readonly files: FakeFiles;
  readonly mounts: FakeMounts;
  readonly context: (answers?: Readonly<Record<string, Partial<CommandResult>>>) => CheckContext;
}

const mount = (target: string, fileSystem: string, ...options: string[]): MountPoint => {
  return { target, source: fileSystem, fileSystem, options: options.length === 0 ? ["rw"] : options };
};

/** The smallest file that counts as a static program for amd64. */
function staticProgram(): Uint8Array {
  const head = Buffer.alloc(64);
  head.writeUInt32BE(0x7f454c46);
  head.set([2, 1], 4);
  head.writeUInt16LE(62, 18);
  return head;
}

/** A machine on which every check passes. */
function machine(): Machine {
  const files = new FakeFiles()
    .put("/proc/self/status", `Name:\tnode\nUid:\t0\t0\t0\t0\nCapEff:\t${allCapabilities}\n`)
    .put("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n")
    .put("/etc/os-release", 'ID=linuxmint\nID_LIKE="ubuntu debian"\n');
  for (const name of ["containerd", "containerd-shim-runc-v2", "ctr", "catatonit", "busybox"]) {
    files.put(`/usr/bin/${name}`, staticProgram(), { mode: 0o755 });
  }
  for (const name of ["mount", "umount"]) files.put(`/usr/bin/${name}`, "", { mode: 0o755 });
  for (const name of ["runc", "iptables"]) files.put(`/usr/sbin/${name}`, "", { mode: 0o755 });
  for (const name of ["bridge", "host-local", "portmap", "loopback"]) {
    files.put(`/usr/lib/cni/${name}`, "", { mode: 0o755 });
  }
  const mounts = new FakeMounts(mount("/", "ext4"), mount("/sys/fs/cgroup", "cgroup2"));
  return {
    files,
    mounts,
    context(answers = {}) {
      const usual: Readonly<Record<string, Partial<CommandResult>>> = {
        df: { stdout: "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/vda 100 50 52428800 1% /\n" },
        "/usr/sbin/iptables": { stdout: "-P FORWARD ACCEPT\n" },
      };
      const answer = (command: string): Partial<CommandResult> => {
        const program = command.split(" ")[0] ?? "";
        return answers[program] ?? usual[program] ?? {};
      };
      const layout = runtimeLayout("/srv/podwright", systemHashing);
      return { files, mounts, processes: new FakeProcesses([], answer), layout, searchPath: [] };
    },
  };
}

async function outcome(context: CheckContext, name: string): Promise<Check | undefined> {
  return (await preflight(context)).checks.find((check) => check.name === name);
}

test("a suitable machine passes every check in order and reports its facts", async () => {
  const { checks, facts } = await preflight(machine().context());
  assert.deepEqual(
    checks.map(({ name, ok }) => `${name}: ${ok}`),
    [
      "platform: ok",
      "user: ok",
      "capabilities: ok",
      "control groups: ok",
      "programs: ok",
      "state directory: ok",
      "overlayfs: ok",
      "disk space: ok",
      "mount propagation: ok",
      "iptables: ok",
    ],
  );
  assert.equal(facts?.mayLowerOomScore, true);
  assert.equal(facts?.openForwarding, false);
  assert.equal(facts?.programs.runc, "/usr/sbin/runc");
});

test("with an existing runtime, requirements of podwright's own containerd are not checked", async () => {
  const { files, context } = machine();
  for (const name of ["containerd", "ctr", "catatonit", "busybox"]) await files.remove(`/usr/bin/${name}`);
  assert.deepEqual(
    (await preflightBesideRuntime(context())).map(({ name, ok }) => `${name}: ${ok}`),
    [
      ...["platform: ok", "user: ok", "capabilities: ok", "control groups: ok", "state directory: ok"],
      ...["disk space: ok", "mount propagation: ok"],
    ],
  );
  assert.equal((await outcome(context(), "programs"))?.ok, "failed");
});

test("anything but Linux is reported as the only problem", async () => {
  const { files, context } = machine();
  await files.remove("/proc/self/status");
  assert.deepEqual(
    (await preflight(context())).checks.map(({ name, ok }) => [name, ok]),
    [["platform", "failed"]],
  );
});

test("a user who is not root gets one line, without the failures that follow from it", async () => {
  const { files, context } = machine();
  files.put("/proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n");
  const { checks, facts } = await preflight(context());
  assert.deepEqual(
    checks.filter(({ ok }) => ok === "failed").map(({ name }) => name),
    ["user"],
  );
  assert.equal(facts, undefined);
});

test("missing capabilities are named", async () => {
  const { files, context } = machine();
  files.put("/proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t00000000a80425fb\n");
  const check = await outcome(context(), "capabilities");
  assert.equal(check?.detail, "missing CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_SYS_PTRACE");
});

test("a missing CAP_SYS_RESOURCE is only a warning and restricts OOM scores", async () => {
  const { files, context } = machine();
  files.put("/proc/self/status", `Uid:\t0\t0\t0\t0\nCapEff:\t${withoutSysResource}\n`);
  const { checks, facts } = await preflight(context());
  assert.equal(checks.find(({ name }) => name === "capabilities")?.ok, "warning");
  assert.equal(facts?.mayLowerOomScore, false);
});

test("control groups fail if none is mounted, controllers are missing or they cannot be written", async () => {
  const cases: Array<[readonly MountPoint[], RegExp]> = [
    [[], /no cgroup hierarchy is mounted/],
    [
      [mount("/sys/fs/cgroup/cpu", "cgroup", "rw", "cpu", "cpuacct")],
      /v1 without the memory, pids, devices controllers/,
    ],
    [[mount("/sys/fs/cgroup", "cgroup2", "ro")], /mounted read-only: \/sys\/fs\/cgroup/],
    [
      ["cpu", "memory", "pids", "devices"].map((name) =>
        mount(`/sys/fs/cgroup/${name}`, "cgroup", name === "pids" ? "ro" : "rw", name),
      ),
      /mounted read-only: \/sys\/fs\/cgroup\/pids/,
    ],
  ];
  for (const [hierarchies, expected] of cases) {
    const { mounts, context } = machine();
    mounts.mounts = [mount("/", "ext4"), ...hierarchies];
    const check = await outcome(context(), "control groups");
    assert.equal(check?.ok, "failed");
    assert.match(check?.detail ?? "", expected);
  }
  const { files, context } = machine();
  files.put("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n");
  assert.match((await outcome(context(), "control groups"))?.detail ?? "", /v2 without the memory, pids controllers/);
});

test("v1 hierarchies are used despite an empty v2 tree", async () => {
  const { mounts, context } = machine();
  const v1 = ["cpu", "memory", "pids", "devices"].map((name) => mount(`/sys/fs/cgroup/${name}`, "cgroup", "rw", name));
  mounts.mounts = [mount("/", "ext4"), ...v1, mount("/sys/fs/cgroup/unified", "cgroup2")];
  assert.equal((await outcome(context(), "control groups"))?.detail, "cgroup v1");
});

test("each missing package is one line with its installation command", async () => {
  const { files, context } = machine();
  for (const path of ["/usr/bin/ctr", "/usr/bin/containerd", "/usr/bin/busybox", "/usr/lib/cni/portmap"]) {
    await files.remove(path);
  }
  const lines = async (): Promise<string[]> => {
    const { checks } = await preflight(context());
    return checks.flatMap(({ name, detail, remedy }) => (name === "programs" ? [`${detail}; ${remedy}`] : []));
  };
  assert.deepEqual(await lines(), [
    "missing: containerd, ctr; run: apt-get install containerd",
    "missing: busybox; run: apt-get install busybox-static",
    "missing: CNI plugins; run: apt-get install containernetworking-plugins",
  ]);
  files.put("/etc/os-release", "ID=fedora\n");
  assert.match((await lines())[1] ?? "", /^missing: busybox; install busybox, statically linked/);
});

test("a missing mount or umount is named, and the file system is not blamed", async () => {
  const { files, context } = machine();
  await files.remove("/usr/bin/umount");
  const { checks } = await preflight(context());
  const bad = checks.filter(({ ok }) => ok !== "ok").map(({ name, detail, remedy }) => `${name}: ${detail}; ${remedy}`);
  assert.deepEqual(bad, ["programs: missing: umount; run: apt-get install mount"]);
  assert.ok(!checks.some(({ name }) => name === "overlayfs"), "a mount could not be taken away again");
  files.put("/etc/os-release", "ID=fedora\n");
  const beside = await preflightBesideRuntime(context());
  assert.equal(beside.find(({ name }) => name === "programs")?.remedy, "install util-linux");
});

test("a mount outside of PATH is named, with the directory to add", async () => {
  const { files, mounts, context } = machine();
  mounts.refuse = "cannot run mount: spawn mount ENOENT";
  const { checks } = await preflight({ ...context(), searchPath: ["/opt/bin"] });
  const [bad] = checks.filter(({ ok }) => ok === "failed");
  assert.deepEqual(bad, {
    name: "programs",
    ok: "failed",
    detail: "not in PATH: mount",
    remedy: "add /usr/bin to PATH",
  });
  assert.deepEqual(await files.list("/srv/podwright"), []);
});

test("a state directory of a newer podwright, or with a damaged mark, is not ready", async () => {
  const { files, context } = machine();
  files.put("/srv/podwright/format.json", '{"format":99,"podwright":"99.0.0"}');
  const check = await outcome(context(), "state directory");
  assert.equal(check?.ok, "failed");
  assert.match(check.detail, /^podwright 99\.0\.0 wrote \/srv\/podwright in format 99; /u);
  assert.match(check.remedy ?? "", /^install a podwright that reads format 99, or use another --state-dir/u);
  assert.ok((await preflightBesideRuntime(context())).some(({ name, ok }) => name === check.name && ok === "failed"));
  files.put("/srv/podwright/format.json", "{");
  assert.match((await outcome(context(), "state directory"))?.detail ?? "", /format\.json is damaged$/u);
});

test("a look at a state directory that does not exist says so, and creates nothing", async () => {
  const { files, mounts, context } = machine();
  files.put("/srv/other");
  const looked = async (): Promise<readonly string[]> => {
    const { checks } = await preflight({ ...context(), onlyLooks: true });
    const beside = await preflightBesideRuntime({ ...context(), onlyLooks: true });
    assert.ok(
      checks.every((check) => check.name !== "state directory" || beside.some(({ detail }) => detail === check.detail)),
    );
    assert.deepEqual(
      (await files.list("/srv")).map(({ name }) => name),
      ["other"],
    );
    return checks.map(({ name, ok, detail }) => `${name}: ${ok}: ${detail}`);
  };
  const found = await looked();
  const absent = "/srv/podwright does not exist yet, and would be created on";
  assert.ok(found.includes(`state directory: ok: ${absent} ext4`), found.join("\n"));
  const untried = "not tried, because /srv/podwright does not exist yet";
  assert.ok(found.includes(`overlayfs: ok: should work on ext4; ${untried}`), found.join("\n"));
  mounts.mounts.push(mount("/srv", "tmpfs", "rw", "noexec"));
  assert.ok((await looked()).includes(`state directory: failed: ${absent} /srv, mounted with noexec`));
  files.put("/srv/podwright/format.json", "{}");
  const check = (await preflight({ ...context(), onlyLooks: true })).checks.find(
    ({ name }) => name === "state directory",
  );
  assert.doesNotMatch(check?.detail ?? "", /does not exist/u);
});

test("a look at a state directory below a file fails as its creation would", async () => {
  const { files, context } = machine();
  files.put("/srv");
  const { checks } = await preflight({ ...context(), onlyLooks: true });
  const { detail } = checks.find(({ name }) => name === "state directory") ?? {};
  assert.equal(detail, "cannot create /srv/podwright: /srv is not a directory");
});

test("a busybox that is not a static program is rejected", async () => {
  const { files, context } = machine();
  files.put("/usr/bin/busybox", "#!/bin/sh\n", { mode: 0o755 });
  const check = await outcome(context(), "programs");
  assert.equal(check?.detail, "not a statically linked program: /usr/bin/busybox");
  assert.equal(check?.remedy, "run: apt-get install busybox-static");
});

test("programs are searched for in the given directories first", async () => {
  const { files, context } = machine();
  files.put("/opt/containerd/bin/containerd", "", { mode: 0o755 }).put("/opt/containerd/bin/ctr", "", { mode: 0o644 });
  const { facts } = await preflight({ ...context(), searchPath: ["relative", "/opt/containerd/bin"] });
  assert.equal(facts?.programs.containerd, "/opt/containerd/bin/containerd");
  assert.equal(facts?.programs.ctr, "/usr/bin/ctr");
});

test("a state directory on a file system without programs or devices is rejected", async () => {
  const { mounts, context } = machine();
  mounts.mounts.push(mount("/srv", "tmpfs", "rw", "nosuid", "nodev", "noexec"));
  const { checks } = await preflight(context());
  const check = checks.find(({ name }) => name === "state directory");
  assert.equal(check?.detail, "/srv/podwright is on /srv, mounted with noexec, nodev");
  // What would be tried in it is not.
  assert.ok(!checks.some(({ name }) => name === "overlayfs"));
});

test("an overlay that cannot be mounted is reported with the kernel's message, and nothing remains", async () => {
  const { files, mounts, context } = machine();
  mounts.refuse = "cannot mount overlay:\n wrong fs type";
  const check = await outcome(context(), "overlayfs");
  assert.match(check?.detail ?? "", /does not work in \/srv\/podwright: cannot mount overlay:; wrong fs type/);
  assert.match(check?.remedy ?? "", /--state-dir/);
  assert.deepEqual(await files.list("/srv/podwright"), []);
});

test("the overlay trial cleans up itself and earlier trials", async () => {
  const { files, mounts, context } = machine();
  files.put("/srv/podwright/podwright-overlay-trial-99/lower/file");
  mounts.mounts.push(mount("/srv/podwright/podwright-overlay-trial-99/merged", "overlay"));
  assert.equal((await outcome(context(), "overlayfs"))?.ok, "ok");
  assert.deepEqual(await files.list("/srv/podwright"), []);
  assert.ok(!mounts.mounts.some(({ fileSystem }) => fileSystem === "overlay"));
});

test("little disk space warns, very little fails, and an unknown amount warns", async () => {
  const df = (kibibytes: number): Partial<CommandResult> => ({
    stdout: `Filesystem x\n/dev/vda 100 50 ${kibibytes} 1% /\n`,
  });
  const { context } = machine();
  assert.equal((await outcome(context({ df: df(1024 * 1024) }), "disk space"))?.ok, "warning");
  const full = await outcome(context({ df: df(100 * 1024) }), "disk space");
  assert.deepEqual([full?.ok, full?.detail], ["failed", "100 MiB free for /srv/podwright"]);
  assert.equal((await outcome(context({ df: { stdout: "", exitCode: 1 } }), "disk space"))?.ok, "warning");
});

test("very little disk space prevents no start over stored pods, which free it", async () => {
  const df = { stdout: "Filesystem x\n/dev/vda 100 50 102400 1% /\n" };
  const { files, context } = machine();
  // What is left of a Secret is no pod.
  files.put("/srv/podwright/manifests/secret_default_web_0123456789abcdef.json", "{}");
  assert.equal((await outcome(context({ df }), "disk space"))?.ok, "failed");
  files.put("/srv/podwright/manifests/pod_default_web_0123456789abcdef.json", "{}");
  const full = await outcome(context({ df }), "disk space");
  assert.deepEqual([full?.ok, full?.detail], ["warning", "100 MiB free for /srv/podwright"]);
  assert.match(full?.remedy ?? "", /^free at least 200 MiB, e\.g\. with 'podwright gc'/u);
  assert.notEqual((await preflight(context({ df }))).facts, undefined);
});

test("a private root mount is a warning, with the command that makes it shared", async () => {
  const { mounts, context } = machine();
  assert.equal((await outcome(context(), "mount propagation"))?.ok, "ok");
  mounts.mounts.unshift({ ...mount("/", "ext4"), isShared: false });
  mounts.mounts.splice(1, mounts.mounts.length, ...mounts.mounts.slice(1).filter(({ target }) => target !== "/"));
  const check = await outcome(context(), "mount propagation");
  assert.equal(check?.ok, "warning");
  assert.match(check.remedy ?? "", /^run mount --make-rshared \//u);
});

test("iptables without access to the kernel's tables fails with its message", async () => {
  const { context } = machine();
  const broken = { exitCode: 3, stderr: "iptables: can't initialize table `nat'\nPerhaps upgrade your kernel\n" };
  const check = await outcome(context({ "/usr/sbin/iptables": broken }), "iptables");
  assert.equal(check?.detail, "does not work: iptables: can't initialize table `nat'; Perhaps upgrade your kernel");
});

test("a host that drops forwarded packets is detected", async () => {
  const { facts } = await preflight(
    machine().context({ "/usr/sbin/iptables": { stdout: "-P FORWARD DROP\n-A FORWARD -j DOCKER\n" } }),
  );
  assert.equal(facts?.openForwarding, true);
});

test("the error that prevents a start has one line with its remedy for every failure", async () => {
  const { files, mounts, context } = machine();
  mounts.mounts = [mount("/", "ext4")];
  await files.remove("/usr/sbin/runc");
  const result = await preflight(context());
  assert.throws(
    () => requireReady(result),
    (error) => {
      assert.ok(error instanceof PodwrightError);
      assert.equal(error.exitCode, 3);
      assert.deepEqual(error.message.split("\n"), [
        "control groups: no cgroup hierarchy is mounted; run: mount -t cgroup2 cgroup2 /sys/fs/cgroup",
        "programs: missing: runc; run: apt-get install runc",
      ]);
      return true;
    },
  );
});
