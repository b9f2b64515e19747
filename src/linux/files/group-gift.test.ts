import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, lstatSync, mkdirSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import type { GroupRefusal } from "../../ports/volume-files.ts";
import { needsRoot, testDirectory } from "../processes/testing.ts";
import { OwnDisks } from "./far-storage.ts";
import { giveToGroup, GroupRefusals } from "./group-gift.ts";
import { systemMounts } from "./mounts.ts";

const gid = 4321;
const access = { gid, readOnly: false, onlyOnRootMismatch: false };

for (const [what, files] of [
  ["small", 3],
  ["large", 1_500],
] as const) {
  test(
    `files of a ${what} volume that storage lets nobody change keep their group`,
    { skip: needsRoot() },
    async () => {
      using directory = testDirectory();
      const target = directory.join("v");
      mkdirSync(target);
      await systemMounts.mount({ source: "podwright-test", target, fileSystem: "tmpfs", options: ["mode=755"] });
      try {
        for (let index = 0; index < files; index++) writeFileSync(`${target}/${index}`, "", { mode: 0o600 });
        await systemMounts.mount({ source: "", target, fileSystem: "", options: ["remount", "bind", "ro"] });
        const refusals: GroupRefusal[] = [];
        const onRefusal = (refusal: GroupRefusal): void => void refusals.push(refusal);
        assert.equal(await giveToGroup(target, { ...access, onRefusal }, new OwnDisks([target])), 0);
        assert.deepEqual(
          refusals.map((refusal) => refusal.files),
          [files + 1],
        );
        assert.match(refusals[0]?.problem ?? "", /^EROFS: /);
        assert.equal(lstatSync(`${target}/0`).gid, 0);
      } finally {
        await systemMounts.unmount(target);
      }
    },
  );
}

test("no error of a change ends the work, except that the file is gone", () => {
  const refusals = new GroupRefusals();
  const failure = (code: string): Error => Object.assign(new Error(`${code}: no`), { code });
  refusals.add([]);
  assert.equal(refusals.first, undefined);
  refusals.add([failure("ENOSPC"), failure("EROFS")]);
  for (const code of ["EDQUOT", "EPERM", "EIO", "EOVERFLOW", "ENOMEM"]) refusals.add([failure(code)]);
  assert.deepEqual(refusals.first, { files: 6, problem: "ENOSPC: no" });
  assert.throws(() => refusals.add([failure("ENOENT")]), /ENOENT/);
});

test("OnRootMismatch skips a volume whose top directory may not be read", { skip: needsRoot() }, async () => {
  using directory = testDirectory();
  const volume = directory.join("v");
  mkdirSync(volume);
  chownSync(volume, 1000, gid);
  chmodSync(volume, 0o2770);
  chmodSync(directory.path, 0o755);
  // Without a group or a capability that lets it read the directory, as the client of an export with root_squash.
  const user = 65_534;
  const program = `
    import { OwnDisks } from ${JSON.stringify(new URL("far-storage.ts", import.meta.url).href)};
    import { giveToGroup } from ${JSON.stringify(new URL("group-gift.ts", import.meta.url).href)};
    process.setgroups([]);
    process.setgid(${user});
    process.setuid(${user});
    const access = { gid: ${gid}, readOnly: false, onlyOnRootMismatch: true };
    const changed = await giveToGroup(process.argv[1], access, new OwnDisks());
    console.log("changed", changed);
  `;
  const output = execFileSync(process.execPath, ["--input-type=module", "--eval", program, volume], {
    encoding: "utf8",
  });
  assert.equal(output, "changed 0\n");
});
