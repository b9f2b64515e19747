import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { podUid } from "../../src/base/ids.ts";
import type { ClaimView } from "../../src/server/local-api.ts";
import type { FakeEngine } from "./fake-engine.ts";
import type { OptionRow } from "./option-rows.ts";

/** Of `podwright volumes`. */
export const volumeOptions: readonly OptionRow[] = [
  { shows: "volumes --json", line: "volumes ls --json", out: /^\{\n {2}"claims": \[[^]*"usedBytes": \d+/ },
  { shows: "volumes --json", line: "volumes inspect data --json", out: /^\{\n {2}"namespace": "default"/ },
  { shows: "volumes --json", line: "volumes inspect data", out: /^kind: PersistentVolumeClaim\n/ },
  { shows: "volumes --json", line: "volumes inspect none", exitCode: 2, error: /claim "none" not found in/ },
  {
    shows: "volumes --force",
    line: "volumes rm --force data",
    out: "removed claim data\n",
    check: ({ engine }) => assert.deepEqual(engine.removals.splice(0), ["default/data"]),
  },
  {
    shows: "volumes --force",
    line: "volumes rm data",
    exitCode: 1,
    error: /claim data is not removed\n[^]*--force/,
    check: ({ engine }) => assert.deepEqual(engine.removals, []),
  },
  {
    shows: "volumes --force",
    line: "volumes rm --force used",
    exitCode: 1,
    error: /claim used is used by web\n[^]*podwright stop --state-dir \S+ web/,
    check: ({ engine }) => assert.deepEqual(engine.removals, []),
  },
  {
    shows: "volumes --force",
    line: "volumes rm --force data none",
    exitCode: 2,
    error: /claim "none" not found in/,
    check: ({ engine }) => assert.deepEqual(engine.removals, []),
  },
  {
    shows: "volumes --force",
    line: "volumes rm --force data used",
    exitCode: 1,
    error: /claim used is used by web/,
    check: ({ engine }) => assert.deepEqual(engine.removals, []),
  },
  {
    shows: "volumes --json",
    line: "volumes rm --force --json data default/data",
    out: /^\{\n {2}"removed": \[\n {4}\{\n {6}"namespace": "default",\n {6}"name": "data"\n {4}\}\n {2}\]\n\}\n$/,
    check: ({ engine }) => assert.deepEqual(engine.removals.splice(0), ["default/data"]),
  },
  {
    shows: "volumes --json",
    line: "volumes copy-out --json small @/copied",
    out: /^\{\n {2}"namespace": "default",\n {2}"name": "small",\n {2}"copiedTo": "[^"]*\/copied",\n {2}"usedBy": \[\]\n\}\n$/,
    check: ({ stateDirectory }) => assert.deepEqual(readdirSync(join(stateDirectory, "copied")), ["file"]),
  },
  {
    shows: "volumes --json",
    line: "volumes ls",
    out: /\n\nFREE VOLUME .*\nspare +2Gi +ReadWriteOnce +- +default\/later +\/srv\n/,
  },
  { shows: "volumes --json", line: "volumes --json", out: /"volumes": \[\n {4}\{\n {6}"name": "spare"/ },
  {
    shows: "volumes --force",
    line: "volumes rm",
    exitCode: 2,
    error: /missing argument: 'podwright volumes rm CLAIM …'/,
  },
  { shows: "volumes --state-dir", line: "volumes --state-dir @", out: /NAMESPACE .*\ndefault +data .*\n/ },
  { shows: "volumes --state-dir", line: "volumes --state-dir @/none", error: /no claims/ },
];

/** Three claims, of which a pod uses one, and a volume without a claim. */
export async function prepareVolumes(engine: FakeEngine, stateDirectory: string): Promise<void> {
  const small = join(stateDirectory, "small");
  await rm(join(stateDirectory, "copied"), { recursive: true, force: true });
  await mkdir(small, { recursive: true });
  await writeFile(join(small, "file"), "content");
  engine.claimViews = [
    claimView("data", [], stateDirectory),
    claimView("used", ["web"], stateDirectory),
    claimView("small", [], small),
  ];
  engine.volumeViews = [
    {
      ...{ name: "spare", capacity: "2Gi", accessModes: ["ReadWriteOnce"], storageClass: "" },
      ...{ keptFor: "default/later", where: "/srv" },
    },
  ];
}

function claimView(name: string, pods: readonly string[], path: string): ClaimView {
  const usedBy = pods.map((pod) => ({ namespace: "default", name: pod, uid: podUid(`uid-${pod}`) }));
  const objects = [{ kind: "PersistentVolumeClaim", metadata: { name } }];
  const common = { namespace: "default", phase: "Bound", message: "", requested: "1Gi", isOwn: true } as const;
  return { ...common, name, accessModes: ["ReadWriteOnce"], volume: `pv-${name}`, path, where: path, usedBy, objects };
}
