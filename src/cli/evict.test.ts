import assert from "node:assert/strict";
import { test } from "node:test";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { podUid } from "../base/ids.ts";
import type { CommandContext } from "./context.ts";
import { evictCommand, type EvictOptions, previewLines } from "./evict.ts";

test("the eviction order has a line per pod, with the reason for its place", () => {
  const pod = (name: string, place: string, evictable = true) => {
    return { namespace: "default", name, uid: podUid(name), place, evictable };
  };
  const preview = {
    signal: "memory.available",
    standing: "memory.available is 1Gi of 8Gi; pods are evicted below 100Mi",
    pods: [pod("web", "uses 2Gi of memory"), pod("database", "uses 1Gi of memory, critical: never evicted", false)],
  };
  assert.deepEqual(previewLines(preview), [
    "memory.available is 1Gi of 8Gi; pods are evicted below 100Mi",
    "1  default/web       uses 2Gi of memory",
    "2  default/database  uses 1Gi of memory, critical: never evicted",
  ]);
  assert.deepEqual(previewLines({ ...preview, pods: [] }).at(-1), "no running pod can be evicted");
});

test("a confirmation is for all signals, and prints JSON on request", async () => {
  const printed: string[] = [];
  let confirmed = 0;
  const engine = { confirmEvictions: async () => ({ waited: ++confirmed === 1 }) };
  const context = {
    engine,
    terminal: { print: (text: string) => void printed.push(text) },
  } as unknown as CommandContext;
  const run = async (options: EvictOptions): Promise<ExitCode> => await evictCommand(context, options);
  const isBadInput = (error: unknown): boolean =>
    error instanceof PodwrightError && error.exitCode === ExitCode.badInput;
  await assert.rejects(run({ confirm: true, signal: "memory.available" }), isBadInput);
  await assert.rejects(run({ confirm: true, preview: true }), { message: /--preview or --confirm, not both$/u });
  await assert.rejects(run({}), { message: /needs either --preview or --confirm$/u });
  assert.equal(confirmed, 0);
  await run({ confirm: true });
  await run({ confirm: true, json: true });
  assert.deepEqual(printed, [
    "evictions by the current settings are now allowed",
    JSON.stringify({ waited: false }, undefined, 2),
  ]);
});
