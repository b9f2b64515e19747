import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { FileError } from "../ports/files.ts";
import { MemoryFiles } from "../sim/files.ts";
import { SELinuxPolicy } from "./selinux-policy.ts";

const ofPolicy = "/etc/selinux/targeted/contexts/lxc_contexts";

async function filesWith(texts: Readonly<Record<string, string>>): Promise<MemoryFiles> {
  const files = new MemoryFiles(new ManualClock());
  for (const [path, text] of Object.entries(texts)) {
    await files.makeDirectory(path.slice(0, path.lastIndexOf("/")), 0o755);
    await files.write(path, text, 0o644);
  }
  return files;
}

test("the contexts are those of container engines, otherwise of the node's policy, otherwise none", async () => {
  const config = { "/etc/selinux/config": "SELINUX=enforcing\nSELINUXTYPE=targeted\n", [ofPolicy]: "file=f\n" };
  const engines = { "/usr/share/containers/selinux/contexts": "process=p\nfile=e\n" };
  const read = async (texts: Readonly<Record<string, string>>) => {
    return await new SELinuxPolicy(await filesWith(texts)).contexts();
  };
  assert.deepEqual(await read({ ...config, ...engines }), { process: "p", file: "e" });
  assert.deepEqual(await read(config), { process: "", file: "f" });
  assert.deepEqual(await read({}), { process: "", file: "" });
});

test("they are read once, and again only after a failure", async () => {
  let reads = 0;
  let isBroken = true;
  const policy = new SELinuxPolicy({
    read: async () => {
      reads++;
      if (isBroken) throw new FileError("EIO", "/x", "EIO: by command");
      return new TextEncoder().encode("process=p\nfile=f\n");
    },
  });
  await assert.rejects(policy.contexts(), /EIO/);
  isBroken = false;
  for (let time = 0; time < 2; time++) assert.deepEqual(await policy.contexts(), { process: "p", file: "f" });
  assert.equal(reads, 2);
});
