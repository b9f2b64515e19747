import assert from "node:assert/strict";
import { test } from "node:test";
import { dataClaim, disk, pod, RunClaimsScene, size, template, using } from "../../test/support/run-claims-scene.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { StorageManifest } from "../api/storage-manifest.ts";

const csiDisk = disk.replace("local: {path: /srv/disk}", "csi: {driver: d, volumeHandle: one}");
const inline = pod("inline", { csi: { driver: "d" } });
const plain = pod("plain", { emptyDir: {} });

function manifests(fixture: RunClaimsScene, ...texts: string[]): StorageManifest[] {
  return fixture.checked(...texts).map(({ manifest }) => manifest);
}

/** With a volume of a driver that nothing uses yet. */
async function withFreeDisk(): Promise<RunClaimsScene> {
  const fixture = await RunClaimsScene.started();
  await fixture.take(csiDisk);
  await fixture.restart();
  return fixture;
}

test("a claim that comes with its pod, and would be bound to a driver's volume that is there, needs the place", async () => {
  const fixture = await withFreeDisk();
  await fixture.claims.prepare(manifests(fixture, dataClaim), [plain]);
  assert.equal(fixture.taken, 0);
  await fixture.claims.prepare(manifests(fixture, dataClaim), [using("data")]);
  assert.equal(fixture.taken, 1);
});

test("so does one that was there before the volume, in either order, and that of an ephemeral volume", async () => {
  const named = dataClaim.replace("spec: {", "spec: {volumeName: disk, ");
  const early = await RunClaimsScene.started();
  await early.take(named);
  await early.claims.prepare([], [using("data")]);
  assert.equal(early.taken, 0, "it waits for its volume");
  await early.claims.prepare(manifests(early, csiDisk), [using("data")]);
  assert.equal(early.taken, 1);

  const late = await withFreeDisk();
  await late.claims.prepare([], [pod("db", { ephemeral: template })]);
  assert.equal(late.taken, 1);
  const taken = await withFreeDisk();
  await taken.take(dataClaim);
  await taken.claims.prepare([], [pod("db", { ephemeral: template })]);
  assert.equal(taken.taken, 0, "the volume is another claim's");
  const small = await RunClaimsScene.started();
  await small.take(csiDisk.replace("1Gi", "1Ki"));
  await small.claims.prepare(manifests(small, dataClaim), [using("data")]);
  assert.equal(small.taken, 0, `the volume does not have ${size}`);
});

test("an engine that starts takes the place for pods of earlier runs whose claims are bound only then", async () => {
  const fixture = await withFreeDisk();
  await fixture.claims.resume([plain]);
  assert.equal(fixture.taken, 0, "a free volume needs no driver");
  await fixture.claims.resume([pod("db", { ephemeral: template })]);
  assert.equal(fixture.taken, 1);
  assert.equal(fixture.needed, 0);
});

test("an engine that starts takes what one before it has left at the place, whatever its pods need", async () => {
  const fixture = await RunClaimsScene.started();
  fixture.isShown = true;
  await fixture.claims.resume([plain]);
  assert.equal(fixture.taken, 1);
  assert.equal(fixture.journal.messages("KubeletPlaceTaken").length, 1);
});

test("a place that an engine cannot take at its start is needed from then on", async () => {
  const fixture = await RunClaimsScene.started();
  fixture.obstacle = new PodwrightError(ExitCode.environment, "it belongs to another node agent");
  await fixture.claims.resume([plain]);
  assert.equal(fixture.needed, 0);
  await fixture.claims.resume([plain, inline]);
  assert.equal(fixture.needed, 1);
});

test("a request is refused for its pods that need the place, each of them; a volume without a pod can wait", async () => {
  const fixture = await RunClaimsScene.started();
  const remedy = "stop that agent first";
  fixture.obstacle = new PodwrightError(ExitCode.environment, "it belongs to another node agent", { remedy });
  const given = manifests(fixture, csiDisk, dataClaim);
  const pods = [plain, inline, using("data")];
  const error: unknown = await fixture.claims.prepare(given, pods).catch((reason: unknown) => reason);
  assert.ok(error instanceof PodwrightError);
  const detail = "it belongs to another node agent";
  assert.deepEqual([error.exitCode, error.message, error.remedy], [ExitCode.environment, detail, remedy]);
  assert.deepEqual(
    error.problems,
    ["inline", "web"].map((name) => ({ object: `Pod default/${name}`, path: [], detail })),
  );
  assert.equal(fixture.needed, 0);
  await fixture.claims.prepare(given, [plain]);
  assert.equal(fixture.needed, 1);
  fixture.obstacle = new Error("no memory");
  await assert.rejects(fixture.claims.prepare([], [inline]), { name: "PodwrightError", message: "no memory" });
});
