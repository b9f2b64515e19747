import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { cause, needs, podOfVolumes, VolumesUnderTest } from "../../test/support/volumes.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { MemoryFiles } from "../sim/files.ts";
import { SimLoopDevices, SimMounts } from "../sim/machine.ts";
import { SimVolumeFiles } from "../sim/volume-files.ts";

const root = "/var/lib/kubelet";
const signal = new AbortController().signal;

class Fixture extends VolumesUnderTest {
  readonly files: MemoryFiles;
  readonly mounts: SimMounts;

  constructor() {
    const clock = new ManualClock();
    const files = new MemoryFiles(clock);
    const mounts = new SimMounts();
    super(root, { clock, files, mounts, volumeFiles: new SimVolumeFiles(files), loopDevices: new SimLoopDevices() });
    this.files = files;
    this.mounts = mounts;
  }
}

test("volumes on huge pages are mounted once, found by the next run, and unmounted", async () => {
  const fixture = new Fixture();
  const containers = [
    {
      name: "app",
      volumeMounts: [{ name: "huge", mountPath: "/huge" }],
      resources: { requests: { "hugepages-2Mi": "4Mi" }, limits: { "hugepages-2Mi": "4Mi" } },
    },
  ];
  const pod = podOfVolumes([{ name: "huge", emptyDir: { medium: "HugePages" } }], { containers });
  await fixture.manager.mount(pod, needs, cause, signal);
  const target = `${root}/pods/u/volumes/kubernetes.io~empty-dir/huge`;
  const mount = { source: "nodev", target, fileSystem: "hugetlbfs", options: ["pagesize=2Mi"] };
  assert.deepEqual(await fixture.mounts.list(), [mount]);
  const next = fixture.restart();
  await next.mount(pod, needs, cause, signal);
  assert.deepEqual(await fixture.mounts.list(), [mount]);
  assert.deepEqual(fixture.outcomes, ["MountVolume done"]);
  // After a reboot of the machine the marker exists, and the mount does not.
  fixture.mounts.clear();
  await fixture.restart().mount(pod, needs, cause, signal);
  assert.deepEqual(await fixture.mounts.list(), [mount]);
  await fixture.restart().release(podRef(pod), { cause }, signal);
  assert.deepEqual(await fixture.mounts.list(), []);
  assert.equal(await fixture.files.stat(target), undefined);
});

test("a volume whose medium cannot be mounted is reported in upstream's words, with its name", async () => {
  for (const [medium, message] of [
    ["HugePages", "medium HugePages: hugePages storage requested, but there is no resource request for huge pages"],
    ["Disk", 'unknown storage medium "Disk"'],
  ] as const) {
    const fixture = new Fixture();
    const mounted = fixture.manager.mount(podOfVolumes([{ name: "v", emptyDir: { medium } }]), needs, cause, signal);
    await assert.rejects(mounted, { message: `MountVolume.SetUp failed for volume "v" : ${message}` });
    assert.deepEqual(fixture.outcomes, ["MountVolume failed"]);
  }
});

test("what a pod has mounted over its volume is not accessed when another of its containers starts", async (t) => {
  const fixture = new Fixture();
  const volumes = [
    { name: "disk", emptyDir: {} },
    { name: "memory", emptyDir: { medium: "Memory" } },
  ];
  const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }));
  const pod = podOfVolumes(volumes, { containers: [{ name: "app", volumeMounts }] });
  await fixture.manager.mount(pod, needs, cause, signal);
  const directories = volumes.map(({ name }) => `${root}/pods/u/volumes/kubernetes.io~empty-dir/${name}`);
  for (const target of directories) {
    await fixture.mounts.mount({ source: "server", target, fileSystem: "fuse.sshfs", options: [] });
  }
  const stat = t.mock.method(fixture.files, "stat");
  await fixture.manager.mount(pod, needs, cause, signal);
  const looked = stat.mock.calls.map(({ arguments: [path] }) => path);
  assert.ok(looked.length > 0);
  assert.deepEqual(
    looked.filter((path) => directories.includes(path)),
    [],
  );
});
