import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import type { Pod } from "../api/pod.ts";
import type { PathKind } from "../ports/volume-files.ts";
import { MemoryRecorder } from "../../test/support/sources.ts";
import { FileError } from "../ports/files.ts";
import { HostPathRemarks } from "./host-path-remarks.ts";

const podWith = (path: string, type?: string): Pod => ({
  metadata: { name: "a", namespace: "default", uid: podUid("u") },
  spec: { containers: [], volumes: [{ name: "v", hostPath: { path, ...(type !== undefined && { type }) } }] },
});

class Fixture {
  readonly journal = new MemoryRecorder();
  found: PathKind | undefined;
  readonly remarks = new HostPathRemarks({ journal: this.journal, volumeFiles: { kind: async () => this.found } });

  async look(pod: Pod, found: PathKind | undefined): Promise<string[]> {
    const before = this.journal.entries.length;
    this.found = found;
    for (const volume of pod.spec.volumes ?? []) await this.remarks.look(pod, volume);
    return this.journal.entries.slice(before).map(({ what, message }) => `${what}: ${message}`);
  }
}

test("a vanished socket is reported once with its volume and path, until it is back", async () => {
  const fixture = new Fixture();
  const pod = podWith("/run/x");
  const gone =
    "hostPath /run/x of volume v should be a socket: it does not exist, and the runtime creates an empty directory";
  const replaced = "hostPath /run/x of volume v should be a socket: it is a directory";
  assert.deepEqual(await fixture.look(pod, "socket"), []);
  assert.deepEqual(await fixture.look(pod, undefined), [`VolumeWarning: ${gone}`]);
  assert.deepEqual(await fixture.look(pod, undefined), []);
  assert.deepEqual(await fixture.look(pod, "directory"), [`VolumeWarningOver: ${gone}`, `VolumeWarning: ${replaced}`]);
  assert.deepEqual(await fixture.look(pod, "socket"), [`VolumeWarningOver: ${replaced}`]);
});

test("a path with the name of a socket must be one, any other may be missing at first", async () => {
  for (const path of ["/run/x.sock", "/run/x.socket", "/run/dbus/system_bus_socket"]) {
    const told = await new Fixture().look(podWith(path), "directory");
    assert.equal(told.length, 1, "made by a runtime in an earlier life");
  }
  assert.deepEqual(await new Fixture().look(podWith("/srv/socket"), "directory"), [], "a plain word");
  const other = new Fixture();
  assert.deepEqual(await other.look(podWith("/srv/data"), undefined), []);
  assert.deepEqual(await other.look(podWith("/srv/data"), "directory"), [], "the runtime has made it");
  assert.equal((await other.look(podWith("/srv/data"), undefined)).length, 1);
});

test("a path with a type is checked when the volume is set up, and an unreadable path is not reported", async () => {
  const fixture = new Fixture();
  assert.deepEqual(await fixture.look(podWith("/run/x.sock", "Socket"), undefined), []);
  assert.deepEqual(await fixture.look(podWith("/run/x.sock"), "other"), []);
});

test("a path that leads to storage that may hang is not looked at", async () => {
  const asked: unknown[] = [];
  const kind = async (path: string, options?: { readonly onlyOnOwnDisks?: boolean }): Promise<PathKind> => {
    asked.push([path, options]);
    throw new FileError("EREMOTE", path, "EREMOTE: elsewhere");
  };
  const journal = new MemoryRecorder();
  const remarks = new HostPathRemarks({ journal, volumeFiles: { kind } });
  const [volume] = podWith("/home/alice/x.sock").spec.volumes ?? [];
  if (volume !== undefined) await remarks.look(podWith("/home/alice/x.sock"), volume);
  assert.deepEqual([asked, journal.entries], [[["/home/alice/x.sock", { onlyOnOwnDisks: true }]], []]);
});
