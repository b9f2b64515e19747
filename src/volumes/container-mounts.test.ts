import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import { MemoryRecorder } from "../../test/support/sources.ts";
import { podUid } from "../base/ids.ts";
import { Semaphore } from "../base/semaphore.ts";
import { SimClock } from "../sim/clock.ts";
import { MemoryFiles } from "../sim/files.ts";
import { silentLog, SimMounts } from "../sim/machine.ts";
import { SimVolumeFiles } from "../sim/volume-files.ts";
import type { MountedVolume } from "../runtime/config/mounted-volumes.ts";
import { ContainerMounts } from "./container-mounts.ts";
import { VolumePaths } from "./volume-paths.ts";

const features = () => ({ handler: "", recursiveReadOnlyMounts: false });

test("subPaths of a claim are below its volume's name, where the Go kubelet finds them, others below their own", async () => {
  const files = new MemoryFiles(new SimClock(0).incarnation());
  const mounts = new SimMounts();
  const volumeFiles = new SimVolumeFiles(files);
  const deps = {
    files,
    volumeFiles,
    mounts,
    journal: new MemoryRecorder(),
    log: silentLog,
    node: { seLinux: false },
    features,
  };
  for (const name of ["claimed", "plain"]) await files.makeDirectory(`/volumes/${name}/s`, 0o755);
  const volumeMounts = ["claimed", "plain"].map((name) => ({ name, mountPath: `/${name}`, subPath: "s" }));
  const volume = { readOnly: false, own: true };
  const mounted = new Map([
    ["claimed", { ...volume, hostPath: "/volumes/claimed", directoryName: "pvc-1" }],
    ["plain", { ...volume, hostPath: "/volumes/plain" }],
  ]);
  const starting = { pod: podWith({}), container: { name: "c", volumeMounts }, environment: [], mounted };
  const paths = new VolumePaths("/root", podUid("u"));
  const found = await new ContainerMounts(deps).of(starting, paths, new Semaphore(1), new AbortController().signal);
  assert.deepEqual(
    found.map(({ hostPath }) => hostPath),
    ["/root/pods/u/volume-subpaths/pvc-1/c/0", "/root/pods/u/volume-subpaths/plain/c/1"],
  );
});

test("with SELinux, the runtime labels no file system without labels", async () => {
  const files = new MemoryFiles(new SimClock(0).incarnation());
  const mounts = new SimMounts();
  const shared = {
    files,
    volumeFiles: new SimVolumeFiles(files),
    mounts,
    journal: new MemoryRecorder(),
    log: silentLog,
  };
  const mount = { source: "server:/", fileSystem: "nfs4" };
  await mounts.mount({ ...mount, target: "/volumes/remote", options: ["rw"] });
  await mounts.mount({ ...mount, target: "/volumes/disk", options: ["rw", "seclabel"] });
  // A mount within a volume says nothing about it.
  await mounts.mount({ ...mount, target: "/volumes/directory/mounted", options: ["rw"] });
  const names = ["remote", "disk", "directory"];
  const volumeMounts = names.map((name) => ({ name, mountPath: `/${name}` }));
  const mounted = new Map(names.map((name) => [name, { readOnly: false, own: true, hostPath: `/volumes/${name}` }]));
  const starting = { pod: podWith({}), container: { name: "c", volumeMounts }, environment: [], mounted };
  const paths = new VolumePaths("/root", podUid("u"));
  for (const seLinux of [false, true]) {
    const containerMounts = new ContainerMounts({ ...shared, node: { seLinux }, features });
    const found = await containerMounts.of(starting, paths, new Semaphore(1), new AbortController().signal);
    assert.deepEqual(
      found.map(({ selinuxRelabel = false }) => selinuxRelabel),
      seLinux ? [false, true, true] : [false, false, false],
    );
  }
});

test("why a subPath cannot be mounted is reported once, and its end", async () => {
  const files = new MemoryFiles(new SimClock(0).incarnation());
  const [mounts, journal] = [new SimMounts(), new MemoryRecorder()];
  const volumeFiles = new SimVolumeFiles(files);
  const shared = { files, volumeFiles, mounts, journal, log: silentLog, node: { seLinux: false } };
  const containerMounts = new ContainerMounts({ ...shared, features });
  for (const path of ["/volumes/v", "/etc/secret"]) await files.makeDirectory(path, 0o755);
  await files.symlink("/etc/secret", "/volumes/v/s");
  const volumeMounts = [{ name: "v", mountPath: "/v", subPath: "s" }];
  const mounted = new Map([["v", { readOnly: false, own: true, hostPath: "/volumes/v" }]]);
  const pod = podWith({});
  const starting = { pod, container: { name: "c", volumeMounts }, environment: [], mounted };
  const paths = new VolumePaths("/root", podUid("u"));
  const start = (): Promise<unknown> =>
    containerMounts.of(starting, paths, new Semaphore(1), new AbortController().signal);
  const error = { message: 'failed to prepare subPath for volumeMount "v" of container "c"' };
  for (let tries = 0; tries < 2; tries++) await assert.rejects(start(), error);
  const reason =
    'subPath "s" of volumeMount "v" of container "c" cannot be mounted: EXDEV: the path leads out of the volume ' +
    "'/volumes/v'";
  assert.deepEqual(journal.messages("VolumeWarning"), [reason]);
  await files.remove("/volumes/v/s");
  await start();
  assert.deepEqual(journal.messages("VolumeWarningOver"), [reason]);
  await files.remove("/volumes/v/s");
  await files.symlink("/etc/secret", "/volumes/v/s");
  await assert.rejects(start(), error);
  containerMounts.forget(pod.metadata.uid);
  await assert.rejects(start(), error);
  assert.equal(journal.messages("VolumeWarning").length, 3, "nothing is remembered of a pod that is gone");
});

test("a mount is recursively read-only if the pod's own handler can do that, and none while it is unknown", async () => {
  const files = new MemoryFiles(new SimClock(0).incarnation());
  const containerMounts = new ContainerMounts({
    ...{ files, volumeFiles: new SimVolumeFiles(files), mounts: new SimMounts() },
    ...{ journal: new MemoryRecorder(), log: silentLog, node: { seLinux: false } },
    features: ({ spec }) => ({
      handler: spec.runtimeClassName === "unknown" ? undefined : spec.runtimeClassName,
      recursiveReadOnlyMounts: spec.runtimeClassName === "able",
    }),
  });
  const mounted = new Map([["v", { readOnly: false, own: true, hostPath: "/volumes/v" }]]);
  const paths = new VolumePaths("/root", podUid("u"));
  const mountFor = async (runtimeClassName: string, recursiveReadOnly: string): Promise<unknown> => {
    const volumeMounts = [{ name: "v", mountPath: "/v", readOnly: true, recursiveReadOnly }];
    const starting = { pod: podWith({ runtimeClassName }), container: { name: "c", volumeMounts } };
    const { signal } = new AbortController();
    const [mount] = await containerMounts.of(
      { ...starting, environment: [], mounted },
      ...([paths, new Semaphore(1), signal] as const),
    );
    return mount?.recursiveReadOnly;
  };
  assert.equal(await mountFor("able", "IfPossible"), true);
  assert.equal(await mountFor("able", "Enabled"), true);
  assert.equal(await mountFor("unable", "IfPossible"), undefined);
  await assert.rejects(mountFor("unable", "Enabled"), /not supported by the runtime/);
  const unknown = { name: "ContainerConfigError", message: 'runtimeclass.node.k8s.io "unknown" not found' };
  for (const mode of ["IfPossible", "Enabled"]) await assert.rejects(mountFor("unknown", mode), unknown);
  assert.equal(await mountFor("unknown", "Disabled"), undefined);
});

test("an image volume is mounted read-only by the runtime, which also finds its subPath", async () => {
  const files = new MemoryFiles(new SimClock(0).incarnation());
  const [mounts, journal] = [new SimMounts(), new MemoryRecorder()];
  const shared = { files, volumeFiles: new SimVolumeFiles(files), mounts, journal, log: silentLog };
  const containerMounts = new ContainerMounts({ ...shared, node: { seLinux: true }, features });
  const volumeMounts = [
    { name: "models", mountPath: "/models" },
    { name: "models", mountPath: "small", subPathExpr: "$(SIZE)/a" },
  ];
  const volume = { hostPath: "", readOnly: true, own: false };
  const image = { imageRef: "sha256:1", reference: "models:1" };
  const environment = [{ name: "SIZE", value: Buffer.from("small") }];
  const pod = podWith({}, { annotations: { a: "b" } });
  const paths = new VolumePaths("/root", podUid("u"));
  const mountsOf = (mounted: MountedVolume): Promise<unknown> => {
    const starting = {
      pod,
      container: { name: "c", volumeMounts },
      environment,
      mounted: new Map([["models", mounted]]),
    };
    return containerMounts.of(starting, paths, new Semaphore(1), new AbortController().signal);
  };
  const source = {
    hostPath: "",
    image: { image: "sha256:1", userSpecifiedImage: "models:1", annotations: { a: "b" } },
    readonly: true,
  };
  assert.deepEqual(await mountsOf({ ...volume, image }), [
    { containerPath: "/models", ...source },
    { containerPath: "/small", imageSubPath: "small/a", ...source },
  ]);
  await assert.rejects(mountsOf(volume), /an image volume has no image/);
});
