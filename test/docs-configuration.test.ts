import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parseKubeletFlags } from "../src/config/flags.ts";
import { loadConfiguration } from "../src/config/load.ts";
import { systemFiles } from "../src/linux/files/files.ts";

const root = join(import.meta.dirname, "..");

/** Every KubeletConfiguration that a document shows, with the document's path. */
function shown(): { readonly path: string; readonly text: string }[] {
  return ["README.md", ...globSync("docs/**/*.md", { cwd: root })].flatMap((path) => {
    const blocks = readFileSync(join(root, path), "utf8").matchAll(/^```yaml\n(.*?)^```$/gmsu);
    const texts = [...blocks].map(([, text = ""]) => text);
    return texts.filter((text) => text.includes("kind: KubeletConfiguration")).map((text) => ({ path, text }));
  });
}

test("every kubelet configuration in the documents is valid, and every field of it is honoured", async () => {
  const directory = await mkdtemp(join(tmpdir(), "podwright-docs-"));
  try {
    const found = shown();
    assert.ok(found.length > 0);
    for (const { path, text } of found) {
      const file = join(directory, "kubelet.yaml");
      await writeFile(file, text);
      const reading = { files: systemFiles, workingDirectory: directory, cgroupVersion: 2 as const };
      const { warnings } = await loadConfiguration(reading, parseKubeletFlags(["--config", file]));
      assert.deepEqual(warnings, [], path);
    }
  } finally {
    await rm(directory, { recursive: true });
  }
});
