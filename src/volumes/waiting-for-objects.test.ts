import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { cause, needs, podOfVolumes, VolumesUnderTest } from "../../test/support/volumes.ts";
import { NotKnownYetError } from "../runtime/config/container-config-error.ts";
import type { NeededObjects, ObjectLookup } from "../runtime/config/environment.ts";
import { MemoryFiles } from "../sim/files.ts";
import { SimLoopDevices, SimMounts } from "../sim/machine.ts";
import { SimVolumeFiles } from "../sim/volume-files.ts";

const signal = new AbortController().signal;
const pod = podOfVolumes([
  { name: "scratch", emptyDir: {} },
  { name: "settings", configMap: { name: "settings" } },
  { name: "account", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } },
]);
const settings = { data: new Map([["level", "debug"]]), binaryData: new Map() };

/** Objects of an API server that is available or not, and the requests for them. */
class Objects implements ObjectLookup {
  isThere = true;
  token = "one";
  readonly waits: string[] = [];
  renewals = 0;

  configMap(): typeof settings {
    if (!this.isThere) throw new NotKnownYetError("not known yet");
    return settings;
  }

  secret(): undefined {}

  serviceAccountToken(): { readonly token: string } {
    if (!this.isThere) throw new NotKnownYetError("not known yet");
    return { token: this.token };
  }

  async settle(_pod: unknown, { spec, tokensOf = [] }: NeededObjects): Promise<void> {
    const names = (volumes: readonly { readonly name: string }[]): string => volumes.map(({ name }) => name).join();
    this.waits.push(`${names(spec.volumes ?? [])}; tokens of ${names(tokensOf)}`);
  }

  renew(): void {
    this.renewals++;
  }
}

function volumesOf(objects: Objects) {
  const clock = new ManualClock();
  const files = new MemoryFiles(clock);
  const ports = {
    clock,
    files,
    mounts: new SimMounts(),
    volumeFiles: new SimVolumeFiles(files),
    loopDevices: new SimLoopDevices(),
  };
  const volumes = new VolumesUnderTest("/var/lib/kubelet", ports);
  volumes.restart({ objects });
  return { volumes, files };
}

test("only volumes without content wait for objects and tokens; a restarted container has all", async () => {
  const objects = new Objects();
  const { volumes } = volumesOf(objects);
  await volumes.manager.mount(pod, needs, cause, signal);
  assert.deepEqual(objects.waits, ["settings,account; tokens of settings,account"]);
  await volumes.manager.mount(pod, needs, cause, signal);
  objects.isThere = false;
  assert.equal((await volumes.restart({ objects }).mount(pod, needs, cause, signal)).size, 3);
  assert.deepEqual(objects.waits.slice(1), ["; tokens of ", "; tokens of "], "in the next life too");
  const more = { name: "more", configMap: { name: "settings" } };
  const grown = podOfVolumes([...(pod.spec.volumes ?? []), more]);
  await assert.rejects(volumes.manager.mount(grown, needs, cause, signal), /"more" : not known yet/);
  assert.equal(objects.waits[3], "more; tokens of more");
});

test("a pod with a new sandbox waits for all objects of its volumes, but for no token that it has", async () => {
  const objects = new Objects();
  const { volumes } = volumesOf(objects);
  await volumes.manager.mount(pod, needs, cause, signal);
  await volumes.manager.mount(pod, { spec: pod.spec }, cause, signal);
  assert.equal(objects.waits[1], "scratch,settings,account; tokens of ");
});

test("a sync of a running pod requests renewals, waits for nothing, and reports no pending ones", async () => {
  const objects = new Objects();
  const { volumes, files } = volumesOf(objects);
  const mounted = await volumes.manager.mount(pod, needs, cause, signal);
  const [before, renewals] = [objects.waits.length, objects.renewals];
  objects.isThere = false;
  const told = volumes.entries.length;
  assert.equal(await volumes.restart({ objects }).refresh(pod, cause, signal), true);
  assert.equal(objects.waits.length, before);
  assert.equal(objects.renewals, renewals + 1);
  assert.equal(volumes.entries.length, told);
  objects.isThere = true;
  objects.token = "two";
  await volumes.manager.refresh(pod, cause, signal);
  const file = `${mounted.get("account")?.hostPath}/token`;
  assert.equal(new TextDecoder().decode(await files.read(file, 100)), "two");
});
