import assert from "node:assert/strict";
import { test } from "node:test";
import type { StatsFiles } from "../ports/stats-files.ts";
import { machineOf } from "./cadvisor-view.ts";

async function identities(texts: Readonly<Record<string, string>>): Promise<readonly [string, string]> {
  const files: Pick<StatsFiles, "readTexts"> = { readTexts: async (paths) => paths.map((path) => texts[path]) };
  const { machineId, systemUuid } = await machineOf(files);
  return [machineId, systemUuid];
}

test("the machine's IDs in the metrics equal those of the Node object", async () => {
  const firmware = { "/sys/class/dmi/id/product_uuid": "dmi\n", "/etc/machine-id": "machine\n" };
  assert.deepEqual(await identities(firmware), ["machine", "dmi"]);
  assert.deepEqual(await identities({ ...firmware, "/sys/class/dmi/id/product_uuid": "" }), ["machine", "machine"]);
  const board = { "/proc/device-tree/vm,uuid": "board\0", "/var/lib/dbus/machine-id": "dbus\n" };
  assert.deepEqual(await identities(board), ["dbus", "board"]);
  assert.deepEqual(await identities({}), ["", ""]);
});
