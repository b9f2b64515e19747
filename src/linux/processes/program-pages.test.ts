import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import type { ForeignFunction } from "./c-library.ts";
import { programPages, unchangedFileRanges } from "./program-pages.ts";

const skip = process.getBuiltinModule("node:ffi") === undefined ? `Node.js ${process.version} has no node:ffi` : false;

function mapping(addresses: string, rights: string, inode: number, path: string, anonymous: string): string {
  return `${addresses} ${rights} 00000000 fe:00 ${inode}    ${path}
Size:               1024 kB
Rss:                 512 kB
Private_Dirty:         0 kB
Anonymous:      ${anonymous} kB
VmFlags: rd ex mr mw me
`;
}

test("only mappings that hold nothing but their file's content are released", () => {
  const smaps = [
    mapping("00400000-00500000", "r--p", 7, "/opt/a node/bin/node", "       0"),
    mapping("00500000-00900000", "r-xp", 7, "/opt/a node/bin/node", "       0"),
    mapping("00900000-00901000", "r--p", 7, "/opt/a node/bin/node", "      16"),
    mapping("00901000-00902000", "rw-p", 7, "/opt/a node/bin/node", "       0"),
    mapping("00a00000-00b00000", "rw-p", 0, "[heap]", "    1024"),
    mapping("7f0000000000-7f0000100000", "r-xp", 0, "", "       0"),
    mapping("7f0000100000-7f0000200000", "r--s", 9, "/shared", "       0"),
    mapping("7fff00000000-7fff00002000", "r-xp", 0, "[vdso]", "       0"),
    mapping("7fff00002000-7fff00003000", "r--p", 9, "/none told", "       0").replace("Anonymous", "Another"),
  ].join("");
  assert.deepEqual(unchangedFileRanges(smaps), [
    { from: 0x40_0000n, to: 0x50_0000n },
    { from: 0x50_0000n, to: 0x90_0000n },
  ]);
});

test("madvise is called for each such mapping", () => {
  const calls: (readonly (string | bigint | number)[])[] = [];
  const advise: ForeignFunction = (...values) => {
    calls.push(values);
    return 0;
  };
  programPages((name) => {
    assert.equal(name, "madvise");
    return advise;
  }).release();
  assert.ok(calls.length > 2, String(calls.length));
  for (const [from, length, advice] of calls) {
    assert.ok(typeof from === "bigint" && typeof length === "bigint" && length > 0n);
    assert.equal(from % 4096n, 0n);
    assert.equal(advice, 4);
  }
});

test("releasing pages reduces the resident memory, and the process continues", { skip }, async () => {
  const program = `
    import { readFileSync } from "node:fs";
    import { openCLibrary } from ${JSON.stringify(new URL("c-library.ts", import.meta.url).href)};
    import { programPages } from ${JSON.stringify(new URL("program-pages.ts", import.meta.url).href)};
    const fileKiB = () => Number(/^RssFile:\\s+(\\d+)/mu.exec(readFileSync("/proc/self/status", "utf8"))[1]);
    const { createHash } = await import("node:crypto");
    const pages = programPages(openCLibrary());
    const before = fileKiB();
    pages.release();
    const after = fileKiB();
    for (let time = 0; time < 20; time += 1) {
      pages.release();
      JSON.parse(JSON.stringify(process.report.getReport()));
      await new Promise((resolve) => setImmediate(resolve));
    }
    const digest = createHash("sha256").update("abc").digest("hex");
    console.log(JSON.stringify({ before, after, digest }));`;
  const args = ["--disable-warning=ExperimentalWarning", "--input-type=module-typescript", "--eval", program];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const { before, after, digest } = JSON.parse(stdout) as { before: number; after: number; digest: string };
  assert.equal(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  assert.ok(before > 20_000, `${before} KiB at first`);
  assert.ok(after < before / 2, `${after} of ${before} KiB are left`);
});
