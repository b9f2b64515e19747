import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podWith } from "../../test/support/pods.ts";
import { cause, needs, VolumesUnderTest } from "../../test/support/volumes.ts";
import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import { MemoryFiles } from "../sim/files.ts";
import { SimLoopDevices, SimMounts } from "../sim/machine.ts";
import { SimVolumeFiles } from "../sim/volume-files.ts";
import { nestedMountPoints } from "./nested-mount-points.ts";

function nested(...mounts: [name: string, mountPath: string][]): string[] {
  const volumeMounts = mounts.map(([name, mountPath]) => ({ name, mountPath }));
  return nestedMountPoints(podWith({ containers: [{ name: "c", volumeMounts }] }), "v");
}

test("a mount below the volume's own needs a directory in it", () => {
  assert.deepEqual(nested(["v", "/dir"], ["w", "/dir/nested/deep"]), ["nested/deep"]);
  assert.deepEqual(nested(["v", "/dir/"], ["w", "/dir//x/./y/"]), ["x/y"]);
});

test("a mount below another mount, beside the volume or above it needs none", () => {
  assert.deepEqual(nested(["v", "/dir"], ["w", "/dir/nested"], ["x", "/dir/nested/double"]), ["nested"]);
  assert.deepEqual(nested(["v", "/dir"], ["w", "/dir2"], ["x", "/"], ["y", "/dir/nested-vol"]), ["nested-vol"]);
});

test("a path with `..` never leads out of the volume", () => {
  assert.deepEqual(nested(["v", "/dir"], ["w", "/dir/../etc"]), []);
});

const { signal } = new AbortController();

class Fixture extends VolumesUnderTest {
  readonly files: MemoryFiles;

  constructor() {
    const clock = new ManualClock();
    const files = new MemoryFiles(clock);
    const mounts = new SimMounts();
    const volumeFiles = new SimVolumeFiles(files);
    super("/kubelet", { clock, files, mounts, volumeFiles, loopDevices: new SimLoopDevices() });
    this.files = files;
  }

  /** Types of what is in the volume, links as what they lead to. */
  async types(type: string, paths: readonly string[]): Promise<unknown> {
    const directory = `/kubelet/pods/u/volumes/kubernetes.io~${type}/v`;
    return await Promise.all(
      paths.map(async (path) => (await this.files.stat(await this.files.realPath(`${directory}/${path}`)))?.type),
    );
  }
}

const volumesOfFiles: readonly (readonly [type: string, Omit<Volume, "name">])[] = [
  ["configmap", { configMap: { name: "o", items: [{ key: "k", path: "dashboards/k" }] } }],
  ["secret", { secret: { secretName: "o", items: [{ key: "k", path: "dashboards/k" }] } }],
  [
    "projected",
    { projected: { sources: [{ configMap: { name: "o", items: [{ key: "k", path: "dashboards/k" }] } }] } },
  ],
  ["downward-api", { downwardAPI: { items: [{ path: "dashboards/k", fieldRef: { fieldPath: "metadata.name" } }] } }],
];

function podMounting(volume: Omit<Volume, "name">, inner: string, ephemeral?: string): Pod {
  const mountsAt = (mountPath: string) => [
    { name: "v", mountPath: "/etc/app" },
    { name: "inner", mountPath: `/etc/app/${mountPath}` },
  ];
  return podWith({
    containers: [{ name: "app", volumeMounts: mountsAt(inner) }],
    ...(ephemeral !== undefined && { ephemeralContainers: [{ name: "debug", volumeMounts: mountsAt(ephemeral) }] }),
    volumes: [
      { name: "v", ...volume },
      { name: "inner", emptyDir: {} },
    ],
  });
}

for (const [type, volume] of volumesOfFiles) {
  test(`another volume may be mounted in a ${type} volume where a path of that has the same first name`, async () => {
    const fixture = new Fixture();
    fixture.objects.setConfigMap("o", { k: "1" });
    fixture.objects.setSecret("o", { k: "1" });
    await fixture.manager.mount(podMounting(volume, "dashboards"), needs, cause, signal);
    assert.deepEqual(await fixture.types(type, ["dashboards"]), ["directory"]);
    await fixture.restart().mount(podMounting(volume, "dashboards"), needs, cause, signal);
    assert.deepEqual(fixture.outcomes, ["MountVolume done", "MountVolume done"], "it is set up once");
  });

  test(`an ephemeral container may mount another volume in a ${type} volume that is in use`, async () => {
    const fixture = new Fixture();
    fixture.objects.setConfigMap("o", { k: "1" });
    fixture.objects.setSecret("o", { k: "1" });
    await fixture.manager.mount(podMounting(volume, "a"), needs, cause, signal);
    for (const path of ["b", "b/c", "dashboards", "dashboards/d"]) {
      await fixture.manager.mount(podMounting(volume, "a", path), needs, cause, signal);
      assert.deepEqual(await fixture.types(type, ["a", path, "dashboards/k"]), ["directory", "directory", "file"]);
    }
    assert.equal(fixture.outcomes.length, 5, "where a directory is already, nothing is set up again");
  });
}
