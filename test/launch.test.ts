import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { mallocSettings, nodeFlags } from "./support/launch.ts";

test("tests and benches start a node as bin/podwright does", async () => {
  const launcher = await readFile(join(import.meta.dirname, "../bin/podwright"), "utf8");
  assert.deepEqual(/^set -- (--.*) "\$entry"/m.exec(launcher)?.[1]?.split(" "), [...nodeFlags]);
  const settings = [...launcher.matchAll(/(MALLOC_\w+)="\$\{\1:-(\d+)\}"/g)].map(([, name, value]) => [name, value]);
  assert.deepEqual(Object.fromEntries(settings), mallocSettings);
});
