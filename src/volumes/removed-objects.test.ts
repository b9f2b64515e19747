import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { cause, needs, podOfVolumes, VolumesUnderTest } from "../../test/support/volumes.ts";
import { MemoryFiles } from "../sim/files.ts";
import { SimLoopDevices, SimMounts } from "../sim/machine.ts";
import { SimVolumeFiles } from "../sim/volume-files.ts";

const root = "/var/lib/kubelet";
const { signal } = new AbortController();

test("a container starts again with the old files after its object, or a key of it, is gone", async () => {
  const clock = new ManualClock();
  const files = new MemoryFiles(clock);
  const machine = { clock, files, mounts: new SimMounts(), loopDevices: new SimLoopDevices() };
  const fixture = new VolumesUnderTest(root, { ...machine, volumeFiles: new SimVolumeFiles(files) });
  fixture.objects.setConfigMap("settings", { level: "debug" });
  const text = async (path: string): Promise<string> =>
    new TextDecoder().decode(await files.read(`${root}/pods/u/volumes/kubernetes.io~configmap/${path}`, 1000));
  const items = [{ key: "level", path: "level" }];
  const pod = podOfVolumes([
    { name: "settings", configMap: { name: "settings" } },
    { name: "item", configMap: { name: "settings", items } },
  ]);
  await fixture.manager.mount(pod, needs, cause, signal);
  fixture.objects.setConfigMap("settings", { other: "1" });
  await fixture.manager.mount(pod, needs, cause, signal);
  assert.equal(await text("settings/other"), "1");
  assert.equal(await text("item/level"), "debug");
  fixture.objects.remove("settings");
  await fixture.manager.mount(pod, needs, cause, signal);
  assert.equal(await text("settings/other"), "1");
  assert.ok(fixture.outcomes.includes("MountVolume failed"));
  const other = podOfVolumes([{ name: "late", configMap: { name: "settings" } }]);
  await assert.rejects(fixture.manager.mount(other, needs, cause, signal), /configmap "settings" not found/);
  fixture.objects.setConfigMap("settings", { level: "info" });
  await fixture.manager.refresh(pod, cause, signal);
  assert.equal(await text("item/level"), "info");
});
