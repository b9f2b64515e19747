import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { MemoryFiles } from "../sim/files.ts";
import { readNodeFacts } from "./node-facts.ts";

const machine = { processors: 4, memoryBytes: 8n << 30n, hugePageSizes: [2n << 20n, 1n << 30n] };

async function diskWith(texts: Readonly<Record<string, string>>): Promise<MemoryFiles> {
  const files = new MemoryFiles(new ManualClock());
  for (const [path, text] of Object.entries(texts)) {
    await files.makeDirectory(path.slice(0, path.lastIndexOf("/")), 0o755);
    await files.write(path, text, 0o644);
  }
  return files;
}

test("a node's facts are read from where every Linux has them", async () => {
  const files = await diskWith({
    "/etc/machine-id": "0123\n",
    "/etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nID=debian\n',
    "/proc/meminfo": "MemTotal: 8388608 kB\nSwapTotal:       1024 kB\n",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "3\n",
    "/proc/sys/kernel/osrelease": "6.12.0\n",
    "/proc/sys/kernel/random/boot_id": "boot\n",
    "/sys/class/dmi/id/product_uuid": "system\n",
  });
  assert.deepEqual(await readNodeFacts(files, machine), {
    processors: 4,
    memoryBytes: 8n << 30n,
    swapBytes: 1n << 20n,
    hugePages: [
      { sizeBytes: 2n << 20n, count: 3n },
      { sizeBytes: 1n << 30n, count: 0n },
    ],
    kernelVersion: "6.12.0",
    osImage: "Debian GNU/Linux 13 (trixie)",
    machineId: "0123",
    systemUuid: "system",
    bootId: "boot",
  });
});

test("a machine's ID is its firmware's, its hypervisor's, or its system's, in this order", async () => {
  const places = {
    "/etc/machine-id": "0123\n",
    "/proc/device-tree/vm,uuid": "vm-uuid\0",
    "/proc/device-tree/system-id": "system-id\0",
    "/sys/class/dmi/id/product_uuid": "product-uuid\n",
  };
  const found: string[] = [];
  for (let count = 1; count <= Object.keys(places).length; count++) {
    const files = await diskWith(Object.fromEntries(Object.entries(places).slice(0, count)));
    found.push((await readNodeFacts(files, machine)).systemUuid);
  }
  assert.deepEqual(found, ["0123", "vm-uuid", "system-id", "product-uuid"]);
});

test("missing facts are read elsewhere, or empty", async () => {
  const files = await diskWith({ "/var/lib/dbus/machine-id": "dbus", "/usr/lib/os-release": "PRETTY_NAME=Tiny\n" });
  const { machineId, osImage, systemUuid, bootId, swapBytes } = await readNodeFacts(files, machine);
  assert.deepEqual([machineId, osImage, systemUuid, bootId, swapBytes], ["dbus", "Tiny", "", "", 0n]);
});
