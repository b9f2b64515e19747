import assert from "node:assert/strict";
import { chmod, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { connectCri } from "../../src/cri/client.ts";
import { systemClock } from "../../src/linux/processes/clock.ts";
import { systemHashing } from "../../src/linux/files/hashing.ts";
import { systemMounts } from "../../src/linux/files/mounts.ts";
import { systemProcesses } from "../../src/linux/processes/processes.ts";
import type { Cri } from "../../src/ports/cri.ts";
import { PodSandboxState } from "../../src/ports/gen/runtime/v1/api_pb.js";
import { DEMO_IMAGE, PAUSE_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import { ensurePrivateRuntime } from "../../src/private-runtime/containerd.ts";
import { SUBNET_CLAIM_DIRECTORY, runtimeLayout } from "../../src/private-runtime/layout.ts";
import type { RuntimeLayout } from "../../src/private-runtime/layout.ts";
import { preflight, requireReady } from "../../src/private-runtime/preflight/preflight.ts";
import type { MachineFacts } from "../../src/private-runtime/preflight/preflight.ts";
import { stopPrivateRuntime } from "../../src/private-runtime/stop.ts";
import { machine } from "../support/machine.ts";

/** Directories with a containerd each: the system's, and what scripts/fetch-runtimes.sh brought. */
const root = resolve(import.meta.dirname, "../..");
const runtimes = [undefined, "trixie", "sid"].flatMap((suite) => {
  if (suite === undefined) return [{ suite: "system", searchPath: [] }];
  const directory = join(root, ".cache/runtimes", suite, "usr/bin");
  return existsSync(join(directory, "containerd")) ? [{ suite, searchPath: [directory] }] : [];
});

interface Fixture {
  readonly layout: RuntimeLayout;
  readonly facts: MachineFacts;
}

/** A state directory of its own; whatever the test leaves is taken away after it. */
async function prepare(t: TestContext, searchPath: readonly string[] = []): Promise<Fixture> {
  const directory = await mkdtemp(join(tmpdir(), "podwright-runtime-"));
  const layout = runtimeLayout(directory, systemHashing);
  const result = await preflight({ ...machine, layout, searchPath });
  const facts = requireReady(result);
  t.after(async () => {
    await removeAllSandboxes(layout).catch(() => {});
    for (const { pid, arguments: words } of await systemProcesses.list()) {
      if (words.some((word) => word === layout.containerd.socket || word === layout.containerd.config)) {
        systemProcesses.kill(pid, "SIGKILL");
      }
    }
    await stopPrivateRuntime(machine, layout, facts.programs);
    await rm(layout.runDirectory, { recursive: true, force: true });
    await rm(directory, { recursive: true, force: true });
  });
  return { layout, facts };
}

async function removeAllSandboxes(layout: RuntimeLayout): Promise<void> {
  using cri = connectCri(layout.containerd.endpoint, systemClock);
  for (const { id } of (await cri.runtime.listPodSandbox({})).items) await removeSandbox(cri, id);
}

async function removeSandbox(cri: Cri, podSandboxId: string): Promise<void> {
  await cri.runtime.stopPodSandbox({ podSandboxId });
  await cri.runtime.removePodSandbox({ podSandboxId });
}

async function runSandbox(cri: Cri, layout: RuntimeLayout): Promise<{ id: string; config: object; ip: string }> {
  const config = {
    metadata: { name: "trial", uid: "trial-uid", namespace: "default", attempt: 0 },
    logDirectory: join(layout.stateDirectory, "logs"),
    linux: { cgroupParent: `${layout.cgroupRoot}/trial`, securityContext: {} },
  };
  const { podSandboxId } = await cri.runtime.runPodSandbox({ config });
  const { status } = await cri.runtime.podSandboxStatus({ podSandboxId });
  return { id: podSandboxId, config, ip: status?.network?.ip ?? "" };
}

/** What of the layout is still on the machine. */
async function traces({
  stateDirectory,
  containerd,
  cni,
  runDirectory,
  cgroupRoot,
  instance,
}: RuntimeLayout): Promise<string[]> {
  const processes = (await systemProcesses.list())
    .filter(({ arguments: words }) => words.some((word) => [containerd.socket, containerd.config].includes(word)))
    .map(({ pid, arguments: words }) => `process ${pid} ${words.join(" ")}`);
  const mounts = (await systemMounts.list())
    .filter(({ target }) => target.startsWith(`${stateDirectory}/`) || target.startsWith(`${runDirectory}/`))
    .map(({ target }) => `mount ${target}`);
  const interfaces = (await readdir("/sys/class/net")).filter((name) => name === cni.bridge);
  const paths = [runDirectory, `${SUBNET_CLAIM_DIRECTORY}/${instance}`].filter((path) => existsSync(path));
  const cgroups = (await machine.cgroups.exists(cgroupRoot)) ? [`cgroup ${cgroupRoot}`] : [];
  return [...processes, ...mounts, ...interfaces, ...paths, ...cgroups];
}

for (const { suite, searchPath } of runtimes) {
  test(`a private containerd (${suite}) starts, runs a pod from its own images, and stops without a trace`, async (t) => {
    const { layout, facts } = await prepare(t, searchPath);
    const first = await ensurePrivateRuntime(machine, layout, facts);
    assert.equal(first.started, true);
    const again = await ensurePrivateRuntime(machine, layout, facts);
    assert.deepEqual(again, { ...first, started: false });

    using cri = connectCri(first.endpoint, systemClock);
    for (const image of [PAUSE_IMAGE, DEMO_IMAGE]) {
      assert.ok((await cri.images.imageStatus({ image: { image } })).image, image);
    }
    const { id, config, ip } = await runSandbox(cri, layout);
    const subnet = (await readFile(layout.cni.subnetFile, "utf8")).trim();
    assert.equal(ip.split(".").slice(0, 3).join("."), subnet.split(".").slice(0, 3).join("."));

    const { containerId } = await cri.runtime.createContainer({
      podSandboxId: id,
      config: { metadata: { name: "shell" }, image: { image: DEMO_IMAGE }, command: ["sleep", "60"], linux: {} },
      sandboxConfig: config,
    });
    await cri.runtime.startContainer({ containerId });
    const { stdout, exitCode } = await cri.runtime.execSync({
      containerId,
      cmd: ["sh", "-c", "id -un; stat -c %a /tmp"],
      timeout: 10n,
    });
    assert.equal(exitCode, 0);
    assert.match(Buffer.from(stdout).toString(), /^root\n1777\n$/);

    assert.deepEqual(await stopPrivateRuntime(machine, layout, facts.programs), {
      stopped: false,
      sandboxes: 1,
    });
    assert.equal(systemProcesses.isAlive(first.pid), true);

    await removeSandbox(cri, id);
    assert.deepEqual(await stopPrivateRuntime(machine, layout, facts.programs), {
      stopped: true,
      leftovers: [],
    });
    assert.deepEqual(await traces(layout), []);
  });
}

test("containerd leads its own session, so a signal to podwright's terminal does not reach it", async (t) => {
  const { layout, facts } = await prepare(t);
  const { pid } = await ensurePrivateRuntime(machine, layout, facts);
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  const [, , processGroup, session, terminal] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  assert.deepEqual({ processGroup, session, terminal }, { processGroup: pid, session: pid, terminal: 0 });
});

test("after containerd was killed, its pods prevent its cleanup, and the next start adopts them", async (t) => {
  const { layout, facts } = await prepare(t);
  const { endpoint, pid } = await ensurePrivateRuntime(machine, layout, facts);
  using cri = connectCri(endpoint, systemClock);
  const { id } = await runSandbox(cri, layout);
  systemProcesses.kill(pid, "SIGKILL");
  while (systemProcesses.isAlive(pid)) await systemClock.sleep("death", 10);

  assert.deepEqual(await stopPrivateRuntime(machine, layout, facts.programs), { stopped: false, sandboxes: 1 });
  const second = await ensurePrivateRuntime(machine, layout, facts);
  assert.equal(second.started, true);
  const { items } = await cri.runtime.listPodSandbox({ filter: { state: { state: PodSandboxState.SANDBOX_READY } } });
  assert.deepEqual(
    items.map((sandbox) => sandbox.id),
    [id],
  );
  await removeSandbox(cri, id);
  assert.deepEqual(await stopPrivateRuntime(machine, layout, facts.programs), { stopped: true, leftovers: [] });
});

test("two state directories run side by side on subnets of their own", async (t) => {
  const [left, right] = [await prepare(t), await prepare(t)];
  await Promise.all([left, right].map(({ layout, facts }) => ensurePrivateRuntime(machine, layout, facts)));
  const subnets = await Promise.all([left, right].map(({ layout }) => readFile(layout.cni.subnetFile, "utf8")));
  assert.notEqual(subnets[0], subnets[1]);
  const stopped = await stopPrivateRuntime(machine, left.layout, left.facts.programs);
  assert.deepEqual(stopped, { stopped: true, leftovers: [] });
  using cri = connectCri(right.layout.containerd.endpoint, systemClock);
  assert.ok((await cri.runtime.version({})).runtimeName);
});

test("a containerd that exits during its start is reported at once with the end of its log", async (t) => {
  const { layout, facts } = await prepare(t);
  const broken = join(layout.stateDirectory, "containerd-broken", "containerd");
  await machine.files.makeDirectory(dirname(broken), 0o755);
  await writeFile(broken, "#!/bin/sh\necho 'containerd: cannot find the moon' >&2\nexit 1\n");
  await chmod(broken, 0o755);
  const programs = { ...facts.programs, containerd: broken };
  await assert.rejects(
    ensurePrivateRuntime(machine, layout, { ...facts, programs }),
    /did not become ready: it exited\n {2}containerd: cannot find the moon/,
  );
  assert.deepEqual(await stopPrivateRuntime(machine, layout, programs), { stopped: true, leftovers: [] });
  assert.deepEqual(await traces(layout), []);
});
