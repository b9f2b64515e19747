import assert from "node:assert/strict";
import { test } from "node:test";
import { systemHashing } from "../../linux/files/hashing.ts";
import type { MountPoint } from "../../ports/mounts.ts";
import { runtimeLayout } from "../layout.ts";
import { FakeFiles, FakeMounts, FakeProcesses } from "../testing.ts";
import type { CheckContext } from "./check.ts";
import { checkOverlay, checkStateDirectory } from "./storage.ts";

/** A file system of this kind at `/`, whose mounts are recorded. */
class Disk extends FakeMounts {
  readonly targets: string[] = [];

  constructor(fileSystem: string) {
    super({ target: "/", source: "disk", fileSystem, options: ["rw"] });
  }

  override async mount(mount: MountPoint): Promise<void> {
    this.targets.push(mount.target);
    await super.mount(mount);
  }
}

function look(stateDirectory: string, files: FakeFiles, mounts = new Disk("ext4")): CheckContext {
  const layout = runtimeLayout(stateDirectory, systemHashing);
  return { files, mounts, processes: new FakeProcesses(), layout, searchPath: [], onlyLooks: true };
}

test("nothing is mounted or removed where a missing state directory would be created", async () => {
  for (const stateDirectory of ["/pods", "/tmp/pods"]) {
    const mounts = new Disk("ext4");
    const files = new FakeFiles().put("/tmp/podwright-overlay-trial-99/lower/file");
    files.link("/tmp/podwright-overlay-trial-1000", "/etc");
    const check = await checkOverlay(look(stateDirectory, files, mounts));
    const detail = `should work on ext4; not tried, because ${stateDirectory} does not exist yet`;
    assert.deepEqual([check.ok, check.detail], ["ok", detail]);
    assert.deepEqual(mounts.targets, []);
    assert.equal(files.text("/tmp/podwright-overlay-trial-99/lower/file"), "");
  }
});

test("the file system of a missing state directory says whether overlays can work", async () => {
  const found = async (fileSystem: string): Promise<string> => {
    const { ok, detail } = await checkOverlay(look("/pods", new FakeFiles(), new Disk(fileSystem)));
    return `${ok}: ${detail}`;
  };
  assert.equal(await found("overlay"), "failed: does not work on overlay");
  const untried = "not tried, because /pods does not exist yet";
  assert.equal(await found("zfs"), `warning: may not work on zfs; ${untried}`);
});

test("a state directory that is a link to nothing fails with the link's target", async () => {
  for (const stateDirectory of ["/srv/pods", "/srv/pods/below"]) {
    const files = new FakeFiles().put("/srv/other").link("/srv/pods", "/mnt/disk");
    const { ok, detail, remedy } = await checkStateDirectory(look(stateDirectory, files));
    const why = "/srv/pods is a symbolic link to /mnt/disk, which does not exist";
    assert.deepEqual([ok, detail], ["failed", `cannot create ${stateDirectory}: ${why}`]);
    assert.equal(remedy, "use another --state-dir");
  }
});
