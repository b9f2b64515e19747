import assert from "node:assert/strict";
import { test } from "node:test";
import { SimClock } from "../../sim/clock.ts";
import { MemoryFiles } from "../../sim/files.ts";
import { readNodeHosts } from "./node-hosts.ts";

test("a pod on the node's network gets the node's hosts file, or no start", async () => {
  const files = new MemoryFiles(new SimClock(0).incarnation());
  const refused = (reason: string) => ({
    name: "ContainerConfigError",
    message: `cannot read the node's /etc/hosts: ${reason}: '/etc/hosts'`,
  });
  await assert.rejects(readNodeHosts(files), refused("ENOENT: no such file or directory"));
  await files.makeDirectory("/etc", 0o755);
  await files.write("/etc/hosts", "127.0.0.1 localhost\n", 0o644);
  assert.equal(await readNodeHosts(files), "127.0.0.1 localhost\n");
  await files.write("/etc/hosts", new Uint8Array(10_485_761), 0o644);
  await assert.rejects(readNodeHosts(files), refused("EFBIG: longer than 10485760 bytes"));
});
