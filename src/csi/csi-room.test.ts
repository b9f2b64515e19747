import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { Collection } from "../objects/collection.ts";
import { MemoryFiles } from "../sim/files.ts";
import { simHashing } from "../sim/hashing.ts";
import { silentLog, SimLoopDevices, SimMounts } from "../sim/machine.ts";
import { SimVolumeFiles } from "../sim/volume-files.ts";
import { CsiRoom } from "./csi-room.ts";
import { CsiNames } from "./names.ts";

const rootDirectory = "/state/kubelet";

class Fixture {
  readonly clock = new ManualClock();
  readonly files = new MemoryFiles(this.clock);
  readonly mounts = new SimMounts();
  needed = 0;

  /** The next run of the engine finds what is on disk. */
  async load(): Promise<void> {
    const { clock, files, mounts } = this;
    const random = { uniform: () => 0, bytes: (count: number) => new Uint8Array(count) };
    const volumeFiles = new SimVolumeFiles(files, () => false);
    const ports = { clock, files, mounts, random, hashing: simHashing, loopDevices: new SimLoopDevices(), volumeFiles };
    const room = new CsiRoom(
      {
        ...{ ports, journal: { record: () => 0 }, log: silentLog, called: () => {}, client: undefined },
        plugins: { connect: () => assert.fail("there is no driver") },
        driverObjects: new Collection(),
        place: { problem: undefined, taken: new Promise(() => {}), need: () => void this.needed++ },
      },
      { nodeName: "node1", rootDirectory, syncFrequencyMs: 60_000, asksVolumeHealth: false },
    );
    await room.load();
    await room.close();
  }
}

test("volumes of drivers that an earlier run left on disk need the place, whoever wants their pods", async () => {
  const fixture = new Fixture();
  await fixture.files.makeDirectory(`${rootDirectory}/pods/u/volumes/kubernetes.io~empty-dir/scratch`, 0o750);
  await fixture.load();
  assert.equal(fixture.needed, 0);
  const volume = `${rootDirectory}/pods/u/volumes/kubernetes.io~csi/disk`;
  await fixture.files.makeDirectory(`${volume}/mount`, 0o750);
  await fixture.mounts.mount({ source: "disk", target: `${volume}/mount`, fileSystem: "ext4", options: [] });
  await fixture.load();
  assert.equal(fixture.needed, 1, "its data file is missing");
  const data = { driverName: "d", volumeHandle: "one", specVolID: "disk", volumeLifecycleMode: "Persistent" };
  await fixture.files.write(`${volume}/vol_data.json`, JSON.stringify(data), 0o600);
  await fixture.load();
  assert.equal(fixture.needed, 2);
});

test("a volume that is only staged needs the place", async () => {
  const fixture = new Fixture();
  const names = new CsiNames(simHashing, rootDirectory, "node1");
  names.resolve(rootDirectory);
  const directory = names.staged("d", "one");
  await fixture.files.makeDirectory(`${directory}/globalmount`, 0o750);
  const data = { driverName: "d", volumeHandle: "one" };
  await fixture.files.write(`${directory}/vol_data.json`, JSON.stringify(data), 0o600);
  await fixture.load();
  assert.equal(fixture.needed, 1);
});
