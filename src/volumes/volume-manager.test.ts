import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { cause, needs, podOfVolumes, VolumesUnderTest } from "../../test/support/volumes.ts";
import { podWith } from "../../test/support/pods.ts";
import type { Volume } from "../api/volume.ts";
import { NotKnownYetError } from "../runtime/config/container-config-error.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { MountPropagation } from "../ports/gen/runtime/v1/api_pb.js";
import { MemoryFiles } from "../sim/files.ts";
import { SimLoopDevices, SimMounts } from "../sim/machine.ts";
import { SimVolumeFiles } from "../sim/volume-files.ts";

const signal = new AbortController().signal;
const root = "/var/lib/kubelet";

class Fixture extends VolumesUnderTest {
  readonly clock: ManualClock;
  readonly files: MemoryFiles;
  readonly mounts: SimMounts;

  constructor() {
    const clock = new ManualClock();
    const files = new MemoryFiles(clock);
    const mounts = new SimMounts();
    super(root, { clock, files, mounts, volumeFiles: new SimVolumeFiles(files), loopDevices: new SimLoopDevices() });
    this.clock = clock;
    this.files = files;
    this.mounts = mounts;
  }

  async text(path: string): Promise<string> {
    return new TextDecoder().decode(await this.files.read(`${root}/pods/u/volumes/${path}`, 1000));
  }

  async mode(path: string): Promise<string | undefined> {
    return (await this.files.stat(`${root}/pods/u/${path}`))?.mode.toString(8);
  }

  async mountTargets(): Promise<string[]> {
    return (await this.mounts.list()).map(({ target }) => target.replace(`${root}/pods/u/`, ""));
  }
}

const everyKind: readonly Volume[] = [
  { name: "scratch", emptyDir: {} },
  { name: "fast", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } },
  { name: "node", hostPath: { path: "/data", type: "DirectoryOrCreate" } },
  { name: "settings", configMap: { name: "settings" } },
  { name: "token", secret: { secretName: "token" } },
  { name: "about", downwardAPI: { items: [{ path: "name", fieldRef: { fieldPath: "metadata.name" } }] } },
  { name: "all", projected: { sources: [{ configMap: { name: "settings" } }, { secret: { name: "token" } }] } },
];

function filled(): Fixture {
  const fixture = new Fixture();
  fixture.objects.setConfigMap("settings", { level: "debug" });
  fixture.objects.setSecret("token", { token: "hunter2" });
  return fixture;
}

test("volumes of every type have upstream's paths and modes", async () => {
  const fixture = filled();
  const mounted = await fixture.manager.mount(podOfVolumes(everyKind), needs, cause, signal);
  const below = `${root}/pods/u/volumes/kubernetes.io~`;
  assert.deepEqual(Object.fromEntries([...mounted].map(([name, volume]) => [name, volume.hostPath])), {
    scratch: `${below}empty-dir/scratch`,
    fast: `${below}empty-dir/fast`,
    node: "/data",
    settings: `${below}configmap/settings`,
    token: `${below}secret/token`,
    about: `${below}downward-api/about`,
    all: `${below}projected/all`,
  });
  const modes = {
    "": "750",
    volumes: "750",
    plugins: "750",
    "volumes/kubernetes.io~empty-dir": "755",
    "volumes/kubernetes.io~empty-dir/scratch": "777",
    "plugins/kubernetes.io~empty-dir": "750",
    "plugins/kubernetes.io~empty-dir/scratch": "750",
    "plugins/kubernetes.io~empty-dir/scratch/ready": "644",
    "plugins/kubernetes.io~empty-dir/wrapped_settings/ready": "644",
  };
  for (const [path, mode] of Object.entries(modes)) assert.equal(await fixture.mode(path), mode, path);
  assert.equal(await fixture.text("kubernetes.io~configmap/settings/level"), "debug");
  assert.equal(await fixture.text("kubernetes.io~secret/token/token"), "hunter2");
  assert.equal(await fixture.text("kubernetes.io~downward-api/about/name"), "p");
  assert.equal(await fixture.text("kubernetes.io~projected/all/level"), "debug");
  assert.equal((await fixture.files.stat("/data"))?.mode, 0o755);
});

test("secrets, downward API and memory volumes are on tmpfs that is not swapped, within their limit", async () => {
  const fixture = filled();
  await fixture.manager.mount(podOfVolumes(everyKind), needs, cause, signal);
  const mounts = (await fixture.mounts.list()).map(({ target, fileSystem, options }) => {
    return `${target.split("~")[1]} ${fileSystem} ${options.join()}`;
  });
  assert.deepEqual(mounts.toSorted(), [
    "downward-api/about tmpfs size=8589934592,noswap",
    "empty-dir/fast tmpfs size=1048576,noswap",
    "projected/all tmpfs size=8589934592,noswap",
    "secret/token tmpfs size=8589934592,noswap",
  ]);
});

test("a kernel without noswap gets the volume anyway, and it is reported", async () => {
  const fixture = new Fixture();
  const mount = fixture.mounts.mount.bind(fixture.mounts);
  fixture.mounts.mount = async (point) => {
    if (point.options.includes("noswap")) throw new Error("mount: bad option");
    await mount(point);
  };
  await fixture.manager.mount(podOfVolumes([{ name: "m", emptyDir: { medium: "Memory" } }]), needs, cause, signal);
  assert.equal((await fixture.mounts.list()).length, 1);
  assert.ok(fixture.entries.some((entry) => entry.what === "PossibleMemoryBackedVolumesOnDisk"));
});

test("each volume is an action of the journal; an existing one is not, also in the next run", async () => {
  const fixture = filled();
  const pod = podOfVolumes(everyKind);
  await fixture.manager.mount(pod, needs, cause, signal);
  assert.deepEqual(
    fixture.outcomes,
    everyKind.map(() => "MountVolume done"),
  );
  assert.ok(fixture.entries.every((entry) => entry.kind !== "action" || entry.cause === cause));
  await fixture.manager.mount(pod, needs, cause, signal);
  await fixture.restart().mount(pod, needs, cause, signal);
  assert.equal(fixture.outcomes.length, everyKind.length);
  assert.equal((await fixture.mounts.list()).length, 4, "nothing is mounted twice");
});

test("the content of an emptyDir survives restarts of podwright; a memory volume lost in a reboot is mounted again", async () => {
  const fixture = filled();
  const pod = podOfVolumes(everyKind);
  const mounted = await fixture.manager.mount(pod, needs, cause, signal);
  const scratch = mounted.get("scratch")?.hostPath ?? "";
  await fixture.files.write(`${scratch}/mine`, "kept", 0o600);
  for (const { target } of await fixture.mounts.list()) await fixture.mounts.unmount(target);
  await fixture.restart().mount(pod, needs, cause, signal);
  assert.equal(await fixture.text("kubernetes.io~empty-dir/scratch/mine"), "kept");
  assert.equal((await fixture.mounts.list()).length, 4);
});

test("a failed volume is named with its reason, the others are set up, and no value is shown", async () => {
  const fixture = filled();
  fixture.objects.remove("settings");
  await assert.rejects(fixture.manager.mount(podOfVolumes(everyKind), needs, cause, signal), {
    name: "VolumeError",
    message:
      'MountVolume.SetUp failed for volume "all" : configmap "settings" not found; ' +
      'MountVolume.SetUp failed for volume "settings" : configmap "settings" not found',
  });
  const told = fixture.entries.filter(({ what, result }) => what === "MountVolume" && result === "failed");
  const problem = 'MountVolume.SetUp failed for volume "settings" : configmap "settings" not found';
  assert.ok(
    told.some(({ message }) => message === problem),
    "an event is made from it",
  );
  assert.equal(await fixture.text("kubernetes.io~secret/token/token"), "hunter2");
  assert.equal(await fixture.mode("volumes/kubernetes.io~configmap/settings"), undefined, "nothing is half there");
  fixture.objects.setConfigMap("settings", { level: "info" });
  await fixture.manager.mount(podOfVolumes(everyKind), needs, cause, signal);
  assert.equal(await fixture.text("kubernetes.io~configmap/settings/level"), "info");
  assert.ok(!JSON.stringify(fixture.entries).includes("hunter2"));
});

test("a hostPath of the wrong type is rejected in upstream's words", async () => {
  const fixture = new Fixture();
  await fixture.files.makeDirectory("/dir", 0o755);
  const cases = {
    File: "/dir is not a file",
    FileOrCreate: "/dir is not a file",
    Socket: "/dir is not a socket file",
    CharDevice: "/dir is not a character device",
    BlockDevice: "/dir is not a block device",
  };
  for (const [type, problem] of Object.entries(cases)) {
    const pod = podOfVolumes([{ name: "h", hostPath: { path: "/dir", type } }]);
    await assert.rejects(fixture.manager.mount(pod, needs, cause, signal), {
      message: `MountVolume.SetUp failed for volume "h" : hostPath type check failed: ${problem}`,
    });
  }
  const missing = podOfVolumes([{ name: "h", hostPath: { path: "/none", type: "Directory" } }]);
  await assert.rejects(fixture.manager.mount(missing, needs, cause, signal), /\/none is not a directory/);
  const file = podOfVolumes([{ name: "h", hostPath: { path: "/dir/f", type: "FileOrCreate" } }]);
  await fixture.manager.mount(file, needs, cause, signal);
  assert.equal((await fixture.files.stat("/dir/f"))?.mode, 0o644);
  await fixture.manager.mount(podOfVolumes([{ name: "h", hostPath: { path: "/anything" } }]), needs, cause, signal);
});

test("fsGroup is applied to volumes that the node creates for the pod, not to host paths", async () => {
  const fixture = filled();
  const mounted = await fixture.manager.mount(
    podOfVolumes(everyKind, { securityContext: { fsGroup: 2000 } }),
    needs,
    cause,
    signal,
  );
  const group = (name: string): number | undefined => fixture.files.ownerOf(mounted.get(name)?.hostPath ?? "")?.gid;
  for (const { name } of everyKind) assert.equal(group(name), name === "node" ? 0 : 2000, name);
  assert.equal(await fixture.mode("volumes/kubernetes.io~empty-dir/scratch"), "2777");
  const file = await fixture.files.realPath(`${mounted.get("token")?.hostPath}/token`);
  assert.equal(fixture.files.ownerOf(file)?.gid, 2000);
});

test("a container's mounts keep the order of its spec, and volumes of objects are always read-only", async () => {
  const fixture = filled();
  const pod = podOfVolumes(everyKind);
  const container = {
    name: "app",
    volumeMounts: [
      { name: "token", mountPath: "/token" },
      { name: "scratch", mountPath: "relative", mountPropagation: "HostToContainer" },
      { name: "scratch", mountPath: "/again", readOnly: true },
      { name: "settings", mountPath: "/settings", readOnly: false },
    ],
  };
  const mounted = await fixture.manager.mount(pod, needs, cause, signal);
  const below = `${root}/pods/u/volumes/kubernetes.io~`;
  assert.deepEqual(await fixture.manager.mountsFor(pod, container, [], mounted, signal), [
    { containerPath: "/token", hostPath: `${below}secret/token`, readonly: true },
    {
      containerPath: "/relative",
      hostPath: `${below}empty-dir/scratch`,
      propagation: MountPropagation.PROPAGATION_HOST_TO_CONTAINER,
    },
    { containerPath: "/again", hostPath: `${below}empty-dir/scratch`, readonly: true },
    { containerPath: "/settings", hostPath: `${below}configmap/settings`, readonly: true },
  ]);
});

test("with SELinux, a volume is labelled for its pod, a host path is not", async () => {
  const fixture = filled();
  fixture.mounts.hasLabels = true;
  const pod = podOfVolumes([...everyKind, { name: "node", hostPath: { path: "/srv" } }]);
  const manager = fixture.restart({ node: { rootDirectory: root, seLinux: true } });
  const volumeMounts = ["token", "scratch", "node"].map((name) => ({ name, mountPath: `/${name}` }));
  const mounted = await manager.mount(pod, needs, cause, signal);
  const mounts = await manager.mountsFor(pod, { name: "app", volumeMounts }, [], mounted, signal);
  assert.deepEqual(
    mounts.map(({ selinuxRelabel }) => selinuxRelabel === true),
    [true, true, false],
  );
});

test("a subPath is mounted from its bind mount, and its error shows nothing of the node", async () => {
  const fixture = filled();
  const pod = podOfVolumes(everyKind);
  const mounted = await fixture.manager.mount(pod, needs, cause, signal);
  const volumeMounts = [
    { name: "token", mountPath: "/t" },
    { name: "scratch", mountPath: "/s", subPathExpr: "$(POD)" },
  ];
  const environment = [{ name: "POD", value: new TextEncoder().encode("web-0") }];
  const mounts = await fixture.manager.mountsFor(pod, { name: "app", volumeMounts }, environment, mounted, signal);
  assert.equal(mounts[1]?.hostPath, `${root}/pods/u/volume-subpaths/scratch/app/1`);
  await fixture.files.symlink("/etc/secret", `${mounted.get("scratch")?.hostPath}/evil`);
  await fixture.files.makeDirectory("/etc/secret", 0o700);
  const hostile = { name: "app", volumeMounts: [{ name: "scratch", mountPath: "/s", subPath: "evil" }] };
  await assert.rejects(fixture.manager.mountsFor(pod, hostile, [], mounted, signal), {
    name: "ContainerConfigError",
    message: 'failed to prepare subPath for volumeMount "scratch" of container "app"',
  });
  const told = fixture.entries.find(({ what }) => what === "VolumeWarning")?.message ?? "";
  assert.match(told, /^subPath "evil" of volumeMount "scratch" .* cannot be mounted: EXDEV: the path leads out/u);
});

test("an unknown volume is an error of the container", async () => {
  const { manager } = new Fixture();
  const container = { name: "app", volumeMounts: [{ name: "none", mountPath: "/n" }] };
  await assert.rejects(manager.mountsFor(podWith({}), container, [], new Map(), signal), {
    message: 'cannot find volume "none" to mount into container "app"',
  });
});

test("a refresh brings changed objects and labels to the pod, and does nothing without changes", async () => {
  const fixture = filled();
  const pod = podOfVolumes(everyKind);
  await fixture.manager.mount(pod, needs, cause, signal);
  const before = fixture.entries.length;
  await fixture.manager.refresh(pod, cause, signal);
  assert.equal(fixture.entries.length, before);
  fixture.objects.setConfigMap("settings", { level: "info", more: "1" });
  await fixture.manager.refresh({ ...pod, metadata: { ...pod.metadata, name: "renamed" } }, cause, signal);
  assert.equal(await fixture.text("kubernetes.io~configmap/settings/level"), "info");
  assert.equal(await fixture.text("kubernetes.io~projected/all/more"), "1");
  assert.equal(await fixture.text("kubernetes.io~downward-api/about/name"), "renamed");
  assert.deepEqual(
    fixture.outcomes.slice(-3),
    Array.from({ length: 3 }, () => "UpdateVolume done"),
  );
});

test("a refresh keeps the old files if the object is gone, reports it once, and skips unmounted volumes", async () => {
  const fixture = filled();
  const pod = podOfVolumes(everyKind);
  await fixture.manager.refresh(pod, cause, signal);
  assert.equal(await fixture.mode("volumes/kubernetes.io~configmap"), undefined);
  await fixture.manager.mount(pod, needs, cause, signal);
  fixture.objects.remove("token");
  for (let look = 0; look < 3; look++) await fixture.manager.refresh(pod, cause, signal);
  assert.equal(await fixture.text("kubernetes.io~secret/token/token"), "hunter2");
  assert.deepEqual(fixture.outcomes.filter((outcome) => outcome === "UpdateVolume failed").length, 2);
  const messages = fixture.entries.filter(({ what, result }) => what === "UpdateVolume" && result === "failed");
  assert.ok(
    messages.some(
      ({ message }) => message === 'MountVolume.SetUp failed for volume "token" : secret "token" not found',
    ),
    JSON.stringify(messages),
  );
});

test("a change made while podwright was down reaches the pod at the first sync", async () => {
  const fixture = filled();
  const pod = podOfVolumes(everyKind);
  await fixture.manager.mount(pod, needs, cause, signal);
  fixture.objects.setSecret("token", { token: "hunter3" });
  await fixture.restart().refresh(pod, cause, signal);
  assert.equal(await fixture.text("kubernetes.io~secret/token/token"), "hunter3");
});

test("unmount removes bind mounts, memory and directories, keeps host paths, and may be repeated", async () => {
  const fixture = filled();
  const pod = podOfVolumes(everyKind);
  const mounted = await fixture.manager.mount(pod, needs, cause, signal);
  const volumeMounts = [{ name: "node", mountPath: "/n", subPath: "sub" }];
  await fixture.manager.mountsFor(pod, { name: "app", volumeMounts }, [], mounted, signal);
  await fixture.files.write("/data/precious", "x", 0o600);
  const manager = fixture.restart();
  await manager.release(podRef(pod), { cause }, signal);
  assert.deepEqual(await fixture.mountTargets(), []);
  assert.deepEqual(await fixture.files.list(`${root}/pods/u/volumes`), []);
  assert.deepEqual(await fixture.files.list(`${root}/pods/u/plugins`), []);
  assert.equal(await fixture.mode("volume-subpaths"), undefined);
  assert.ok(await fixture.files.stat("/data/precious"));
  assert.equal(fixture.outcomes.at(-1), "UnmountVolumes done");
  const before = fixture.entries.length;
  await manager.release(podRef(pod), { cause }, signal);
  assert.equal(fixture.entries.length, before, "nothing there is nothing to be said");
});

test("a mount that hangs times out with the names of the volumes, and the next attempt waits for its end", async () => {
  const fixture = new Fixture();
  const gate = Promise.withResolvers<void>();
  const mount = fixture.mounts.mount.bind(fixture.mounts);
  fixture.mounts.mount = async (point) => {
    await gate.promise;
    await mount(point);
  };
  const pod = podOfVolumes([
    { name: "slow", emptyDir: { medium: "Memory" } },
    { name: "quick", emptyDir: {} },
  ]);
  const first = fixture.manager.mount(pod, needs, cause, signal);
  first.catch(() => {});
  await fixture.clock.advance(123_000);
  await assert.rejects(first, {
    name: "VolumeError",
    message:
      /^unable to attach or mount volumes: unmounted volumes=\[slow\], unattached volumes=\[\], failed to process volumes=\[\]: volumes of pod ns\/p: timed out after 123 s$/,
  });
  const second = fixture.manager.mount(pod, needs, cause, signal);
  gate.resolve();
  assert.equal((await second).size, 2);
  assert.equal((await fixture.mounts.list()).length, 1, "one mount, not two");
});

test("after a start without an API server volumes keep an earlier run's files, and new ones wait", async () => {
  const fixture = filled();
  const pod = podOfVolumes(everyKind.filter(({ secret, configMap, projected }) => secret ?? configMap ?? projected));
  await fixture.manager.mount(pod, needs, cause, signal);
  const unknown = (): never => {
    throw new NotKnownYetError("not known yet");
  };
  const later = fixture.restart({ objects: { configMap: unknown, secret: unknown } });
  assert.equal((await later.mount(pod, needs, cause, signal)).size, 3);
  assert.equal(await fixture.text("kubernetes.io~secret/token/token"), "hunter2");
  const other = { ...pod, metadata: { ...pod.metadata, uid: podUid("v") } };
  await assert.rejects(later.mount(other, needs, cause, signal), /not known yet/);
  const known = fixture.restart({
    objects: { configMap: () => undefined, secret: () => undefined },
  });
  await assert.rejects(
    known.mount(pod, needs, cause, signal),
    /not found/,
    "what is known to be gone is no longer good",
  );
});
