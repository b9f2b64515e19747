import assert from "node:assert/strict";
import { cp, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { podUid } from "../src/base/ids.ts";
import { Journal } from "../src/journal/journal.ts";
import { systemClock } from "../src/linux/processes/clock.ts";
import { systemFiles } from "../src/linux/files/files.ts";
import { takeStateFormat } from "../src/private-runtime/state-format.ts";
import { keptSpec } from "../src/runtime/layout/kept-spec.ts";
import { RunSource } from "../src/sources/run-source.ts";
import { runHere } from "./support/own-command.ts";
import { SourceHarness } from "./support/sources.ts";

const fixtures = join(import.meta.dirname, "fixtures/state");

/** The state directory that a podwright of that version had when it was stopped with two pods, one of which crashes. */
async function stateOf(version: string): Promise<{ readonly directory: string } & AsyncDisposable> {
  const directory = await mkdtemp(join(tmpdir(), "podwright-state-"));
  await cp(join(fixtures, version), directory, { recursive: true });
  return { directory, [Symbol.asyncDispose]: () => rm(directory, { recursive: true }) };
}

for (const version of await readdir(fixtures)) {
  test(`the pods of podwright ${version} are desired again, with their UIDs and their started specs`, async () => {
    await using state = await stateOf(version);
    await takeStateFormat(systemFiles, state.directory, "99.0.0");
    const harness = new SourceHarness();
    const random = { uniform: () => 0, bytes: () => new Uint8Array() };
    const source = new RunSource(
      Object.assign(harness, { files: systemFiles, random, objectsChanged: () => {}, hasEnded: () => false }),
      {
        directory: join(state.directory, "manifests"),
      },
    );
    await source.load();
    const delivered = harness.delivered.at(-1);
    assert.equal(delivered?.complete, true);
    const uids = await readdir(join(state.directory, "kubelet/pods"));
    assert.deepEqual(delivered?.pods.map(({ pod }) => pod.metadata.uid).toSorted(), uids.toSorted());
    assert.ok(source.objects.configMap("default", "greeting"));
    assert.ok(source.objects.secret("default", "account"));
    for (const uid of uids) {
      const kept = await keptSpec(systemFiles, { rootDirectory: join(state.directory, "kubelet") }, podUid(uid));
      assert.equal(kept?.spec.nodeName, "node1");
    }
  });

  test(`the journal of podwright ${version} is read, explained, and continued in its numbering`, async () => {
    await using state = await stateOf(version);
    const written = await readFile(join(state.directory, "journal/journal-1.jsonl"), "utf8");
    const last = Math.max(...[...written.matchAll(/"seq":(\d+)/gu)].map(([, seq]) => Number(seq)));
    const why = await runHere(["why", "crash", "--state-dir", state.directory]);
    assert.match(why.stdout, /container app exited with code 3/u);
    const journal = await Journal.open({
      files: systemFiles,
      clock: systemClock,
      directory: join(state.directory, "journal"),
      observe: () => {},
    });
    const seq = journal.record({ kind: "input", what: "StopRequested", message: "the next life" });
    assert.ok(seq > last, `${seq} after ${last}`);
    await journal.close();
  });
}
