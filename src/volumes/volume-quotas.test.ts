import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { cause, needs, podOfVolumes, VolumesUnderTest } from "../../test/support/volumes.ts";
import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import type { LogFields, Logger } from "../ports/log.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { MemoryFiles } from "../sim/files.ts";
import { silentLog, SimLoopDevices, SimMounts } from "../sim/machine.ts";
import { SimProjectQuotas } from "../sim/project-quotas.ts";
import { SimVolumeFiles } from "../sim/volume-files.ts";
import { VolumeQuotas } from "./volume-quotas.ts";

const signal = new AbortController().signal;
const root = "/var/lib/kubelet";
const data: Volume = { name: "data", emptyDir: { sizeLimit: "1Mi" } };
const directory = `${root}/pods/u/volumes/kubernetes.io~empty-dir/data`;
const own = { hostUsers: false };
const line = `1048577:${directory}\n`;

/** A machine with project quotas, and the volumes of a kubelet with the feature. */
class Machine {
  readonly clock = new ManualClock();
  readonly files = new MemoryFiles(this.clock);
  readonly quotas = new SimProjectQuotas(this.files);
  readonly warnings: LogFields[] = [];
  volumes: VolumeQuotas;
  manager: VolumesUnderTest["manager"];

  constructor() {
    this.quotas.isOn = true;
    this.volumes = this.#start();
    this.manager = this.#manage();
  }

  /** The kubelet's next run. */
  restart(): void {
    this.volumes = this.#start();
    this.manager = this.#manage();
  }

  #start(): VolumeQuotas {
    const log: Logger = { ...silentLog, warn: (_message, fields = {}) => this.warnings.push(fields) };
    const { clock, files, quotas } = this;
    return new VolumeQuotas({ clock, files, quotas, log, rootDirectory: root });
  }

  #manage(): VolumesUnderTest["manager"] {
    const { clock, files, volumes } = this;
    const ports = { clock, files, mounts: new SimMounts(), loopDevices: new SimLoopDevices() };
    return new VolumesUnderTest(root, { ...ports, volumeFiles: new SimVolumeFiles(files), quotas: volumes }).manager;
  }

  async mount(pod: Pod): Promise<void> {
    await this.manager.mount(pod, needs, cause, signal);
  }

  async projects(): Promise<string> {
    return (await this.quotas.lists()).projects;
  }
}

test("an emptyDir on disk of a pod with a user namespace gets a project, which counts files without a name", async () => {
  const machine = new Machine();
  const pod = podOfVolumes([data], own);
  await machine.mount(pod);
  assert.deepEqual(await machine.quotas.lists(), { projects: line, projid: "volume1048577:1048577\n" });
  assert.equal(await machine.quotas.projectOf(directory), 1_048_577);
  await machine.quotas.fill(directory, 1000, 5000);
  assert.deepEqual(await machine.volumes.usage(pod, directory), { bytes: 6000, inodes: 1 });
  await machine.manager.release(podRef(pod), { cause }, signal);
  assert.deepEqual(await machine.quotas.lists(), { projects: "", projid: "" });
  assert.equal(await machine.files.stat(directory), undefined);
  assert.deepEqual(machine.volumes.problems, []);
});

test("each volume has a project of its own", async () => {
  const machine = new Machine();
  await machine.mount(podOfVolumes([data, { name: "more", emptyDir: {} }], own));
  assert.equal(await machine.projects(), `${line}1048578:${directory.replace("data", "more")}\n`);
});

test("other volumes and other pods have none, nor has any where the file system has no quotas", async () => {
  const others: readonly [Volume, Partial<Pod["spec"]>][] = [
    [data, {}],
    [data, { hostUsers: true }],
    [{ name: "data", emptyDir: { medium: "Memory" } }, own],
    [{ name: "data", downwardAPI: { items: [] } }, own],
  ];
  for (const [volume, spec] of others) {
    const machine = new Machine();
    const pod = podOfVolumes([volume], spec);
    await machine.mount(pod);
    assert.equal(await machine.projects(), "");
    assert.equal(await machine.volumes.usage(pod, directory), undefined);
  }
  const machine = new Machine();
  machine.quotas.isOn = false;
  await machine.mount(podOfVolumes([data], own));
  assert.equal(await machine.projects(), "");
  assert.deepEqual(machine.warnings, []);
});

test("the next run finds the quota again, and clears it, whoever assigned it", async () => {
  const machine = new Machine();
  const pod = podOfVolumes([data], own);
  await machine.mount(pod);
  await machine.quotas.fill(directory, 0, 7000);
  machine.restart();
  assert.deepEqual(await machine.volumes.usage(pod, directory), { bytes: 7000, inodes: 1 });
  machine.restart();
  await machine.manager.release(podRef(pod), { cause }, signal);
  assert.equal(await machine.projects(), "");
});

test("a project that has another path, or files, is not taken", async () => {
  const machine = new Machine();
  machine.quotas.othersTakeProject();
  const pod = podOfVolumes([data], own);
  await machine.mount(pod);
  assert.equal(await machine.quotas.projectOf(directory), 1_048_578);
  // An administrator cleared the list; the files are still the project's.
  await machine.quotas.editLists("/", async () => ({ projects: "1048577:/srv/1048577\n", projid: "" }));
  const second: Pod = { ...pod, metadata: { ...pod.metadata, uid: "v" as Pod["metadata"]["uid"] } };
  await machine.mount(second);
  assert.equal(await machine.quotas.projectOf(directory.replace("/u/", "/v/")), 1_048_579);
  assert.equal(machine.quotas.damage, undefined);
});

test("a directory that is not the listed project's, or has files already, is walked", async () => {
  const machine = new Machine();
  const pod = podOfVolumes([data], own);
  await machine.files.makeDirectory(directory, 0o777);
  // As an earlier volume of the path may have left it.
  await machine.quotas.editLists(directory, async (lists) => ({ ...lists, projects: line }));
  assert.equal(await machine.volumes.usage(pod, directory), undefined);
  await machine.files.write(`${directory}/kept`, "", 0o644);
  await machine.volumes.assign(pod, directory);
  assert.equal(await machine.quotas.projectOf(directory), 0);
});

test("while quotas are off the volume is walked, and measured by its quota again afterwards", async () => {
  const machine = new Machine();
  const pod = podOfVolumes([data], own);
  await machine.mount(pod);
  machine.quotas.isOn = false;
  assert.equal(await machine.volumes.usage(pod, directory), undefined);
  assert.equal(await machine.volumes.usage(pod, directory), undefined);
  assert.equal(machine.warnings.length, 1, "a problem that repeats is logged once");
  assert.deepEqual(machine.volumes.problems, [
    "cannot measure a volume by its quota: /var/lib/kubelet does not account for projects any more",
  ]);
  machine.restart();
  assert.equal(await machine.volumes.usage(pod, directory), undefined);
  machine.quotas.isOn = true;
  assert.deepEqual(await machine.volumes.usage(pod, directory), { bytes: 0, inodes: 1 });
  assert.deepEqual(machine.volumes.problems, []);
});

test("a quota that cannot be assigned leaves nothing, and the volume is set up without it", async () => {
  const machine = new Machine();
  machine.quotas.assign = async () => {
    throw new Error("cannot set limits: Operation not permitted");
  };
  const pod = podOfVolumes([data], own);
  await machine.mount(pod);
  assert.equal((await machine.files.stat(directory))?.type, "directory");
  assert.equal(await machine.projects(), "");
  assert.match(String(machine.warnings[0]?.["error"]), /Operation not permitted/);
  // One that seems to succeed and does not count is none either: it would show too little.
  machine.quotas.assign = async () => {};
  const other: Pod = { ...pod, metadata: { ...pod.metadata, uid: "v" as Pod["metadata"]["uid"] } };
  await machine.mount(other);
  assert.equal(await machine.projects(), "");
  assert.match(String(machine.warnings[1]?.["error"]), /does not count for project 1048577/);
});

test("a volume goes although its quota cannot be cleared; its line goes later, and so do those of other kubelets", async () => {
  const machine = new Machine();
  const pod = podOfVolumes([data], own);
  await machine.mount(pod);
  const edit = machine.quotas.editLists.bind(machine.quotas);
  machine.quotas.editLists = async () => {
    throw new Error("EROFS: read-only file system");
  };
  await machine.manager.release(podRef(pod), { cause }, signal);
  assert.equal(await machine.files.stat(directory), undefined);
  assert.equal(await machine.projects(), line);
  machine.quotas.editLists = edit;
  const left = `1048600:${root}/pods/old/volumes/kubernetes.io~configmap/settings\n`;
  const others = "1048601:/srv/gone\n1048602:/var/lib/other/pods/a\n";
  await edit("/", async (lists) => ({ ...lists, projects: `${lists.projects}${left}${others}` }));
  const stop = new AbortController();
  const run = machine.volumes.run(stop.signal);
  while (machine.clock.waits.length === 0) await Promise.resolve();
  assert.equal(await machine.projects(), others);
  stop.abort();
  await run;
});

test("a volume that is removed while its quota is looked for is not remembered", async () => {
  const machine = new Machine();
  const pod = podOfVolumes([data], own);
  await machine.mount(pod);
  machine.restart();
  const looked = Promise.withResolvers<number>();
  machine.quotas.projectOf = async () => await looked.promise;
  const usage = machine.volumes.usage(pod, directory);
  await machine.manager.release(podRef(pod), { cause }, signal);
  looked.resolve(1_048_577);
  assert.equal(await usage, undefined);
  // The next volume has the project now: of two known owners one would be wrong.
  const next: Pod = { ...pod, metadata: { ...pod.metadata, uid: "v" as Pod["metadata"]["uid"] } };
  await machine.mount(next);
  assert.equal(await machine.projects(), line.replace("/u/", "/v/"));
  assert.deepEqual(machine.warnings, []);
});
